//! Many ranks: opened one by one, all of them in a table, the worst in full.

use std::path::Path;

use crate::cli::{done, fails};
use crate::support::{root, sample};

pub const RANKS: u32 = 40;
pub const LEAKING: u32 = 17;

/// A run of many small ranks, of which one leaks.
pub fn run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let small = root().join("tests/fixtures/snapshots/modern_protocol_5.pickle");
    for rank in 0..RANKS {
        let leak = sample("val_without_no_grad").join("snapshot.pickle.gz");
        let snapshot = if rank == LEAKING { &leak } else { &small };
        std::fs::copy(snapshot, folder.path().join(format!("snapshot_rank{rank}.pickle"))).unwrap();
    }
    std::fs::write(folder.path().join("notes.txt"), "nothing that tells of memory").unwrap();
    folder
}

pub fn report(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&done(&[&["report", "--format", "json"], arguments].concat())).unwrap()
}

pub fn path(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn the_worst_of_many_ranks_is_marked_and_reported_in_full() {
    let folder = run();
    let folder = path(folder.path());
    let worst = report(&[&folder]);
    let processes = worst["processes"].as_array().unwrap();
    assert_eq!(processes.len(), RANKS as usize);
    let outliers: Vec<&serde_json::Value> =
        processes.iter().filter(|process| process["is_outlier"] == true).map(|rank| &rank["rank"]).collect();
    assert_eq!(outliers, [&serde_json::Value::from(LEAKING)]);
    assert_eq!(processes[0]["rank"], LEAKING, "the one that keeps the most comes first");
    assert!(processes[0]["finding"].as_str().is_some_and(|finding| !finding.is_empty()));
    assert!(
        worst["summary"].as_str().unwrap().starts_with("1 of 40 ranks stand out. rank 17: vramscope found")
    );
    assert_eq!(worst["groups"][0]["key"], "record.py:63 validate");
    assert_eq!(worst["sources"].as_array().unwrap().len(), 1, "what is not shown is not held");

    // The same file alone gives the same figures.
    let file = format!("{folder}/snapshot_rank{LEAKING}.pickle");
    let alone = report(&[&file]);
    for key in ["survivors", "groups", "allocations", "findings", "range"] {
        assert_eq!(worst[key], alone[key], "{key}");
    }

    let command = worst["command_for_another"].as_str().unwrap();
    let source = command.split(" --source ").nth(1).unwrap().trim_matches('\'');
    let another = report(&[&folder, "--source", source]);
    assert_eq!(another["selection"], format!("{source}, GPU memory"));
    assert_eq!(another["processes"].as_array().unwrap().len(), RANKS as usize);
    assert!(fails(2, &["report", &folder, "--source", "rank 99"]).contains("there are rank 0, rank 1,"));
    assert!(fails(2, &["report", &folder, "--from", "step:900"]).contains("no step 900"));

    for format in ["md", "html"] {
        let text = done(&["report", &folder, "--format", format]);
        assert!(text.contains("rank 17") && text.contains("stands out"), "{format}");
        assert!(text.contains("--source"), "{format}");
    }
}

/// A run keeps its model from the first step on: that is no growth, however large it is.
#[test]
fn what_is_set_up_once_is_no_growth_per_step() {
    let folder = tempfile::tempdir().unwrap();
    for (rank, name) in ["healthy", "healthy", "val_without_no_grad"].into_iter().enumerate() {
        let to = folder.path().join(format!("snapshot_rank{rank}.pickle.gz"));
        std::fs::copy(sample(name).join("snapshot.pickle.gz"), to).unwrap();
    }
    let report = report(&[&path(folder.path()), "--one-by-one"]);
    let growth = |at: usize| report["processes"][at]["growth_per_step_bytes"].as_i64().unwrap();
    assert_eq!(report["processes"][0]["rank"], 2);
    // 286.9 MiB stay after every 4th step.
    assert!((60 << 20..80 << 20).contains(&growth(0)), "{}", growth(0));
    assert_eq!(report["processes"][0]["outlier_by"], serde_json::json!(["growth", "kept"]));
    for healthy in [1, 2] {
        assert!(growth(healthy).abs() < 64 << 10, "{}", growth(healthy));
        let outlier_by = report["processes"][healthy]["outlier_by"].to_string();
        assert!(!outlier_by.contains("growth"), "{outlier_by}");
    }
}

#[test]
fn few_ranks_are_opened_at_once_unless_asked_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        let small = root().join("tests/fixtures/snapshots/modern_protocol_5.pickle");
        std::fs::copy(small, folder.path().join(format!("snapshot_rank{rank}.pickle"))).unwrap();
    }
    let folder = path(folder.path());
    assert!(report(&[&folder]).get("command_for_another").is_none());
    let one_by_one = report(&[&folder, "--one-by-one"]);
    assert!(one_by_one["summary"].as_str().unwrap().starts_with("None of 2 ranks stand out"));
    assert_eq!(one_by_one["sources"].as_array().unwrap().len(), 1);
}

#[test]
fn many_ranks_become_a_dataset_rank_by_rank() {
    let folder = run();
    let target = tempfile::tempdir().unwrap();
    let export = |from: &Path, to: &str, format: &str| {
        let to = target.path().join(to);
        let options = ["--table", "allocations", "--partition", "rank", "--format", format, "-o", &path(&to)];
        done(&[&["export", &path(from)], options.as_slice()].concat());
        to
    };
    let parquet = export(folder.path(), "parquet", "parquet");
    for rank in 0..RANKS {
        let part = std::fs::read(parquet.join(format!("rank={rank}/part-0.parquet"))).expect("it is there");
        assert!(part.starts_with(b"PAR1"));
    }
    assert_eq!(std::fs::read_dir(&parquet).unwrap().count(), RANKS as usize);

    // A rank's part is what its file alone gives.
    let all = export(folder.path(), "all", "csv");
    let one = export(&folder.path().join(format!("snapshot_rank{LEAKING}.pickle")), "one", "csv");
    let part = |folder: &Path| std::fs::read(folder.join(format!("rank={LEAKING}/part-0.csv"))).unwrap();
    assert!(part(&all) == part(&one));
}

/// The sample keeps 286.9 MiB after every fourth step: the slope over four steps would be that of the other three.
#[test]
fn of_few_steps_the_growth_is_their_change() {
    let leak = path(&sample("val_without_no_grad").join("snapshot.pickle.gz"));
    for (to, steps) in [("step:12", 4), ("step:16", 8)] {
        let report = report(&[&leak, "--from", "step:8", "--to", to]);
        // The curve counts blocks as the allocator rounds them, the net what was asked for.
        let net_bytes = report["survivors"]["net_bytes"].as_i64().unwrap();
        let growth = report["processes"][0]["growth_per_step_bytes"].as_i64().unwrap();
        assert!(net_bytes > 256 << 20);
        assert!(
            (growth - net_bytes / steps).abs() < 4 << 20,
            "{growth} against {net_bytes} in {steps} steps"
        );
        let per_step = report["groups"][0]["steps"]["per_step_bytes"].as_i64().unwrap();
        assert!(to == "step:12" || (growth - per_step).abs() < 8 << 20, "{growth} against {per_step}");
    }
}

/// What grows in a log of another day can't be looked into.
#[test]
fn a_log_of_another_time_suggests_no_range() {
    let snapshot = path(&sample("healthy").join("snapshot.pickle.gz"));
    let log = path(&sample("val_without_no_grad").join("train.log"));
    let alone = report(&[&log]);
    assert!(alone["range"]["label"].as_str().unwrap().contains("per second"), "{}", alone["range"]);
    let report = report(&[&snapshot, &log]);
    assert!(report["survivors"]["allocated"]["count"].as_u64().unwrap() > 0, "{}", report["summary"]);
}

/// Its figures are missing from the table, so the report must say so itself: stderr is not sent along.
#[test]
fn a_rank_that_cannot_be_read_is_told_in_the_report() {
    let folder = run();
    let broken = folder.path().join("snapshot_rank7.pickle");
    std::fs::write(&broken, b"\x80\x05cos\nsystem\n(S'true'\ntR.").unwrap();
    let run = path(folder.path());
    let written = |more: &[&str]| {
        let program = std::process::Command::new(env!("CARGO_BIN_EXE_vramscope"));
        let output = { program }.arg("report").arg(&run).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let report: serde_json::Value = serde_json::from_str(&written(&["--format", "json"])).unwrap();
    assert_eq!(report["left_out"][0]["name"], path(&broken));
    assert_eq!(report["left_out"][0]["rank"], 7);
    let cause = report["left_out"][0]["cause"].as_str().unwrap();
    assert!(!cause.is_empty() && !cause.contains("snapshot_rank7"), "{cause}");
    for format in ["md", "html"] {
        let text = written(&["--format", format]);
        assert!(text.contains("rank 7, ") && text.contains("snapshot_rank7.pickle"), "{text}");
        let text = written(&["--format", format, "--redact"]);
        assert!(text.contains("rank 7, ") && !text.contains("snapshot_rank7.pickle"), "{text}");
    }
    // One file of few is told as well.
    let few = [&path(&folder.path().join("snapshot_rank1.pickle")), &path(&broken)];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_vramscope")).arg("report").args(few).output();
    assert!(String::from_utf8(output.unwrap().stdout).unwrap().contains("rank 7, "));
}

/// Runs without rank numbers in their names lie in folders of their own.
#[test]
fn runs_of_the_same_file_name_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    for run in ["first", "second"] {
        let small = root().join("tests/fixtures/snapshots/modern_protocol_5.pickle");
        std::fs::create_dir(folder.path().join(run)).unwrap();
        std::fs::copy(small, folder.path().join(run).join("snapshot.pickle")).unwrap();
    }
    let folder = path(folder.path());
    let all = report(&[&folder, "--one-by-one"]);
    let mut names: Vec<&str> = all["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["first/snapshot.pickle", "second/snapshot.pickle"]);
    let one = report(&[&folder, "--one-by-one", "--source", "second/snapshot.pickle"]);
    assert_eq!(one["sources"][0]["name"], "second/snapshot.pickle");
    assert!(all["command_for_another"].as_str().unwrap().contains("--source"));
}
