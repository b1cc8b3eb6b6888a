//! The commands as a shell runs them: what they print, and how they end.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{recording, root, sample};

fn vramscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vramscope")).args(arguments).output().expect("the program starts")
}

/// What a command prints when it is done.
pub fn done(arguments: &[&str]) -> String {
    let output = vramscope(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The one sentence on stderr of a command that ends with `code`.
pub fn fails(code: i32, arguments: &[&str]) -> String {
    let output = vramscope(arguments);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    text
}

fn leak() -> String {
    sample("val_without_no_grad").display().to_string()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

#[test]
fn a_report_gives_the_figures() {
    let json = done(&["report", &leak(), "--from", "step:8", "--to", "step:16", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["schema"], "vramscope.report/1");
    assert_eq!(report["survivors"]["recording_end"]["bytes"], 601_661_440);
    assert_eq!(report["survivors"]["range_end"]["count"], 431);
    assert_eq!(report["groups"][0]["key"], "record.py:63 validate");
    assert_eq!(report["groups"][0]["count"], 242);
    assert!(report["command"].as_str().unwrap().ends_with("--from step:8 --to step:16 --format json"));
    let only_range = ["report", &leak(), "--from", "step:8", "--to", "step:16", "--free-by", "range-end"];
    assert!(done(&only_range).contains("**not freed by the end of the range**"));
}

/// A trace of a machine without a GPU was reported as holding nothing, as the GPUs' memory was asked about.
#[test]
fn what_has_no_gpu_is_told_by_its_host_memory() {
    let trace = root().join("tests/fixtures/traces/torch-1.13.1-full.json.gz").display().to_string();
    let text = done(&["report", &trace]);
    assert!(text.contains("host memory") && text.contains("gen.py:18 step"), "{text}");
    assert!(done(&["report", &leak()]).contains("GPU memory"));
}

/// A log that comes late: the lag is told, and applied when asked for, not before.
#[test]
fn a_lag_is_applied_on_request() {
    let late = jiff::SignedDuration::from_millis(1500);
    let log = std::fs::read_to_string(sample("val_without_no_grad").join("nvidia-smi-gpu.csv")).unwrap();
    let log: Vec<String> = log
        .lines()
        .map(|line| match line.split_once(',') {
            Some((time, rest)) if time.starts_with('2') => {
                let time = jiff::civil::DateTime::strptime("%Y/%m/%d %H:%M:%S%.f", time).unwrap();
                format!("{},{rest}", (time + late).strftime("%Y/%m/%d %H:%M:%S%.3f"))
            }
            _ => line.to_owned(),
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "gpu.csv", log.join("\n").as_bytes());
    let snapshot = sample("val_without_no_grad").join("snapshot.pickle.gz").display().to_string();
    let inspect = |more: &[&str]| -> serde_json::Value {
        let arguments = [&["inspect", &snapshot, &log, "--format", "json"], more].concat();
        let all: serde_json::Value = serde_json::from_str(&done(&arguments)).unwrap();
        let files = all["files"].as_array().unwrap();
        files.iter().find(|file| file["name"].as_str().unwrap().ends_with("gpu.csv")).unwrap().clone()
    };
    let (told, applied) = (inspect(&[]), inspect(&["--apply-lag"]));
    let lag_ns = told["lag_ns"].as_i64().unwrap();
    assert!((lag_ns - 1_500_000_000).abs() < 300_000_000, "{lag_ns}");
    let moved_ns = applied["offset_ns"].as_i64().unwrap() - told["offset_ns"].as_i64().unwrap();
    assert_eq!(moved_ns, -lag_ns);
}

#[test]
fn the_language_can_be_named_before_and_after_the_command() {
    let leak = leak();
    for language in ["en", "zh-CN"] {
        let before = done(&["--language", language, "inspect", &leak]);
        assert_eq!(before, done(&["inspect", &leak, "--language", language]));
    }
}

#[test]
fn the_format_follows_the_files_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kept.html");
    done(&["report", &leak(), "-o", &path.display().to_string()]);
    assert!(std::fs::read_to_string(path).unwrap().starts_with("<!DOCTYPE html>"));

    let written = |command: &[&str], name: &str| {
        let path = folder.path().join(name).display().to_string();
        done(&[command, &["-o", &path]].concat());
        std::fs::read(path).unwrap()
    };
    let (leak, steps) = (leak(), "SELECT step FROM steps");
    assert!(written(&["query", &leak, steps], "q.parquet").starts_with(b"PAR1"));
    assert!(written(&["query", &leak, steps], "q.JSON").starts_with(b"["));
    assert!(written(&["query", &leak, steps], "q.csv").starts_with(b"step\n"));
    assert!(written(&["compare", &leak, &leak], "c.md").starts_with(b"**"));
    assert!(written(&["compare", &leak, &leak], "c.json").starts_with(b"{"));
    assert!(written(&["report", &leak, "--format", "json"], "r.x").starts_with(b"{"));
    for (command, name, formats) in [
        (&["report", &leak][..], "x.pdf", "html, md, json, csv, svg, png"),
        (&["export", &leak, "--table", "steps"], "s.json", "csv, parquet"),
        (&["query", &leak, steps], "q.html", "text, csv, json, parquet"),
        (&["compare", &leak, &leak], "c.csv", "text, md, json"),
    ] {
        let path = folder.path().join(name);
        let refused = fails(2, &[command, &["-o", &path.display().to_string()]].concat());
        assert!(refused.contains(&format!("there are {formats}, ")) && refused.contains(name), "{refused}");
        assert!(!path.exists());
    }
}

/// A recording can't be made again.
#[test]
fn an_output_never_replaces_what_it_is_made_from() {
    let folder = tempfile::tempdir().unwrap();
    let own = write(
        folder.path(),
        "own.log",
        b"step 0 memory_allocated: 1.0 MiB\nstep 1 memory_allocated: 2.0 MiB\n",
    );
    let run = folder.path().display().to_string();
    let around = folder.path().join("../").join(folder.path().file_name().unwrap()).join("own.log");
    let before = std::fs::read(&own).unwrap();
    for command in [
        &["report", &own, "--format", "md", "-o", &own][..],
        &["report", &own, "--format", "md", "-o", &around.display().to_string()],
        &["report", &run, "--format", "md", "-o", &own],
        &["export", &run, "--table", "samples", "--format", "csv", "-o", &own],
        &["query", &own, "SELECT bytes FROM samples", "--format", "csv", "-o", &own],
        &["compare", &run, &leak(), "--format", "md", "-o", &own],
    ] {
        let refused = fails(2, command);
        assert!(refused.contains("the output would replace a file that it is made from: "), "{refused}");
    }
    assert_eq!(std::fs::read(&own).unwrap(), before);
    // What lies beside it may be written again.
    let report = folder.path().join("report.md").display().to_string();
    done(&["report", &run, "-o", &report]);
    done(&["report", &run, "-o", &report]);
}

#[test]
fn a_failed_write_names_the_file_that_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no").join("x.html").display().to_string();
    let failed = fails(1, &["report", &leak(), "-o", &path]);
    assert!(
        failed.starts_with("vramscope: the file can't be written (")
            && failed.ends_with(&format!(": {path}\n"))
    );
    assert!(!failed.contains(".vramscope-"), "{failed}");
}

#[cfg(unix)]
#[test]
fn devices_and_links_stay_what_they_are() {
    use std::os::unix::fs::FileTypeExt as _;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    done(&["report", &leak(), "-o", &pipe.display().to_string()]);
    assert!(
        String::from_utf8_lossy(&reader.wait_with_output().unwrap().stdout).contains("record.py:63 validate")
    );
    assert!(pipe.metadata().unwrap().file_type().is_fifo());

    let (file, link) = (folder.path().join("real.md"), folder.path().join("link.md"));
    std::fs::write(&file, "older").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    done(&["report", &leak(), "-o", &link.display().to_string()]);
    assert!(link.is_symlink() && std::fs::read_to_string(file).unwrap().contains("record.py:63 validate"));
}

#[test]
fn wrong_usage_ends_with_two() {
    let missing = fails(2, &["report", &leak(), "--from", "step:900"]);
    assert!(missing.contains("no step 900; there are steps 0 to "), "{missing}");
    assert_eq!(missing.lines().count(), 1);
    assert!(fails(2, &["report", &leak(), "--from", "yesterday"]).contains("not a time: `yesterday`"));
    assert!(
        fails(2, &["report", &leak(), "--from", "step:9", "--to", "step:8"]).contains("the range is empty")
    );
    assert!(fails(2, &["report", &leak(), "--device", "7"]).contains("no device `7`; there are"));
    assert!(
        fails(2, &["report", &leak(), "--source", "nobody"])
            .contains("no process or source is named `nobody`")
    );
    assert!(fails(2, &["inspect", &leak(), "--offset", "nobody=1s"]).contains("no source is named `nobody`"));
    assert!(fails(2, &["inspect", &leak(), "--offset", "=5s"]).contains("NAME=DURATION"));
    fails(2, &["report"]);
    fails(2, &["frobnicate", "--now"]);
}

#[test]
fn logs_are_read_by_the_users_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "own.log", b"round 7 took 12.5 GB\nround 8 took 13 GB\n");
    assert!(fails(1, &["inspect", &log]).contains("text without memory figures"));
    let pattern = r"round (?P<step>\d+) took (?P<allocated>[\d.]+ GB)";
    let text = done(&["inspect", &log, "--log-pattern", pattern]);
    assert!(text.contains("recognised: line 1: step 7, allocated 12.50 GiB"), "{text}");
    let none = fails(1, &["inspect", &log, "--log-pattern", "nothing"]);
    assert!(none.contains("without what your pattern looks for"), "{none}");
    assert!(fails(2, &["inspect", &log, "--log-pattern", "("]).contains("unclosed group"));
}

#[test]
fn a_redacted_command_tells_no_pattern() {
    let folder = tempfile::tempdir().unwrap();
    let log = write(folder.path(), "own.log", b"alice=7 MB\nalice=8 MB\n");
    let pattern = r"alice=(?P<mem>\d+ MB)";
    for arguments in [&["--log-pattern", pattern][..], &[&format!("--log-pattern={pattern}")]] {
        let text = done(&[&["report", &log, "--redact", "--format", "json"], arguments].concat());
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        let command = report["command"].as_str().unwrap();
        assert!(command.contains("PATTERN") && !text.contains("alice"), "{text}");
    }
}

#[test]
fn gpus_of_a_drivers_log_are_numbered_as_the_run_saw_them() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "timestamp, index, memory.used [MiB]\n2026/12/01 11:22:03.379, 0, 1 MiB\n2026/12/01 11:22:03.379, 3, 7 MiB\n";
    let log = write(folder.path(), "gpu.csv", rows.as_bytes());
    let sql = "SELECT device, bytes FROM samples ORDER BY device";
    let seen = done(&["query", &log, sql, "--visible-devices", "3", "--format", "csv"]);
    assert_eq!(seen, format!("device,bytes\ncuda:0,{}\ncuda:1,{}\n", 7 << 20, 1 << 20));
}

#[test]
fn an_input_that_cannot_be_used_ends_with_one_and_the_rest_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let image = write(folder.path(), "shot.json", b"\x89PNG\r\n\x1a\n0000");
    let empty = write(folder.path(), "empty.pickle", b"");
    let message = fails(1, &["report", &image]);
    assert_eq!(
        message.trim_end(),
        format!("vramscope: this is a PNG image, which is none of the kinds that can be opened: {image}")
    );
    assert!(fails(1, &["report", &empty]).contains("the file is empty"));
    assert!(fails(1, &["inspect", "no/such/file"]).contains("no/such/file"));

    let both =
        vramscope(&["report", &leak(), &image, "--from", "step:8", "--to", "step:16", "--format", "json"]);
    assert_eq!(both.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!(report["survivors"]["recording_end"]["count"], 244);
    assert!(String::from_utf8_lossy(&both.stderr).contains("this is a PNG image"));

    // What lies in a folder by chance is left out without a fuss.
    let found = done(&["inspect", &leak(), "--format", "json"]);
    let inspection: serde_json::Value = serde_json::from_str(&found).unwrap();
    assert_eq!(inspection["processes"].as_array().unwrap().len(), 1);
    let trace = inspection["files"].as_array().unwrap().iter().find(|file| file["kind"] == "trace").unwrap();
    assert!(trace["steps"].as_u64() > Some(0) && trace["allocations"].as_u64() > Some(0), "{trace}");
    assert_eq!(inspection["links"][0]["matched"], inspection["links"][0]["allocations"]);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let all = ["report", &leak(), "--format", "json", "--all"];
    // The writer of Parquet says that the file is out of specification.
    let table = ["export", &leak(), "--table", "allocations", "--format", "parquet"];
    for args in [&all[..], &table] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramscope"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn sql_sees_the_tables_and_nothing_else() {
    let sql = "SELECT call_site, COUNT(*) AS n, SUM(size_bytes) AS bytes FROM allocations \
               WHERE state = 'kept' AND step >= 8 AND step < 16 GROUP BY call_site ORDER BY bytes DESC LIMIT 1";
    let answer: serde_json::Value =
        serde_json::from_str(&done(&["query", &leak(), sql, "--format", "json"])).unwrap();
    assert_eq!(answer[0]["call_site"], "record.py:63 validate");
    assert_eq!((answer[0]["n"].as_u64(), answer[0]["bytes"].as_u64()), (Some(242), Some(599_891_968)));
    assert!(done(&["query", &leak(), "SHOW TABLES"]).contains("allocations"));
    assert!(
        done(&["query", &leak(), "SELECT op FROM allocations WHERE op LIKE '%norm%' LIMIT 3"])
            .contains("norm")
    );

    let folder = tempfile::tempdir().unwrap();
    let secret = write(folder.path(), "secret.csv", b"word\nhunter2\n");
    for sql in [
        format!("SELECT * FROM read_csv('{secret}')"),
        format!("SELECT * FROM \"READ_CSV\"('{secret}')"),
        format!("SELECT * FROM steps JOIN read_csv/**/('{secret}') ON 1=1"),
        format!("SELECT * FROM '{secret}'"),
        format!("SELECT * FROM \"{secret}\""),
        format!("CREATE TABLE t AS SELECT * FROM read_csv('{secret}')"),
        format!("COPY steps TO '{secret}'"),
    ] {
        let output = vramscope(&["query", &leak(), &sql]);
        assert_eq!(output.status.code(), Some(1), "{sql}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("hunter2"), "{sql}");
    }
    assert_eq!(std::fs::read(folder.path().join("secret.csv")).unwrap(), b"word\nhunter2\n");
    for sql in [
        "DROP TABLE steps",
        "/* x */ truncate TABLE steps",
        "DELETE FROM steps",
        "EXPLAIN SELECT 1",
        "SHOW COLUMNS",
    ] {
        assert!(fails(1, &["query", &leak(), sql]).contains("a query only reads"), "{sql}");
    }
    let columns = "column,type\nprocess,text\nrank,integer\nstep,integer\n";
    for sql in ["DESCRIBE steps", "describe \"steps\";", "SHOW COLUMNS FROM steps"] {
        assert!(done(&["query", &leak(), sql, "--format", "csv"]).starts_with(columns), "{sql}");
    }
    assert!(fails(1, &["query", &leak(), "DESCRIBE chairs"]).contains("no table is named chairs"));
    assert!(fails(1, &["query", &leak(), "SELECT nothing FROM steps"]).contains("nothing"));
    assert!(fails(1, &["query", &leak(), "tell me"]).contains("not SQL"));
}

/// The example of the help gives what the report gives: private pools are no leak.
#[test]
fn the_examples_figure_is_the_reports() {
    let help = done(&["query", "--help"]);
    let example = help.split('"').find(|part| part.starts_with("SELECT call_site")).unwrap();
    let mut runs = vec![sample("val_without_no_grad")];
    runs.extend(recording("streams_and_graphs"));
    for run in runs {
        let run = run.display().to_string();
        let sql = example.replace("LIMIT 10", "");
        let rows: Vec<serde_json::Value> =
            serde_json::from_str(&done(&["query", &run, &sql, "--format", "json"])).unwrap();
        let bytes: u64 = rows.iter().map(|row| row["bytes"].as_u64().unwrap()).sum();
        let report: serde_json::Value =
            serde_json::from_str(&done(&["report", &run, "--from", "0%", "--format", "json"])).unwrap();
        assert_eq!(report["survivors"]["recording_end"]["bytes"], bytes, "{run}");
    }
}

/// A report beside the recordings is full of figures, which are no log's.
#[test]
fn what_vramscope_wrote_is_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for language in ["en", "zh-CN"] {
        for name in ["r.html", "r.md", "r.json", "r.csv", "r.svg", "r.png"] {
            let output = path(&format!("{language}.{name}"));
            done(&["--language", language, "report", &leak(), "-o", &output]);
        }
    }
    for table in ["allocations", "events", "ops", "samples", "steps", "segments", "stacks"] {
        done(&["export", &leak(), "--table", table, "-o", &path(&format!("{table}.csv"))]);
        let ranks = ["--partition", "rank", "--format", "csv"];
        done(&[&["export", &leak(), "--table", table, "-o", &path(table)], &ranks[..]].concat());
    }
    done(&["compare", &leak(), &leak(), "-o", &path("c.json")]);
    let page = "<html><body>memory_allocated: 5.0 GiB, CUDA out of memory</body></html>";
    write(folder.path(), "page.html", page.as_bytes());
    let inspection = fails(1, &["inspect", &folder.path().display().to_string()]);
    assert!(inspection.contains("nothing here can be opened"), "{inspection}");
    assert!(fails(1, &["report", &path("en.r.html")]).contains("a report or a table that vramscope wrote"));
    assert!(fails(1, &["report", &path("zh-CN.r.md")]).contains("a report or a table that vramscope wrote"));
    assert!(fails(1, &["report", &path("page.html")]).contains("a web page"));
}

#[test]
fn every_table_goes_to_csv_and_parquet() {
    let folder = tempfile::tempdir().unwrap();
    for table in ["allocations", "events", "ops", "samples", "steps", "segments", "stacks"] {
        let csv = done(&["export", &leak(), "--table", table]);
        assert!(csv.lines().count() > 10, "{table} has rows");
        let path = folder.path().join(format!("{table}.parquet"));
        done(&["export", &leak(), "--table", table, "-o", &path.display().to_string()]);
        assert!(std::fs::read(path).unwrap().starts_with(b"PAR1"));
    }
    let ranks = folder.path().join("ranks");
    let target = ranks.display().to_string();
    done(&["export", &leak(), "--table", "steps", "--partition", "rank", "-o", &target]);
    assert!(ranks.join("rank=0/part-0.parquet").is_file());
    let again = fails(2, &["export", &leak(), "--table", "steps", "--partition", "rank", "-o", &target]);
    assert!(again.contains("holds the ranks of an earlier export already: "), "{again}");
    assert!(fails(2, &["export", &leak(), "--table", "steps", "--partition", "rank"]).contains("-o"));
    fails(2, &["export", &leak(), "--table", "chairs"]);
}

#[test]
fn runs_are_compared_by_call_site() {
    let healthy = sample("healthy").display().to_string();
    let comparison: serde_json::Value =
        serde_json::from_str(&done(&["compare", &healthy, &leak(), "--format", "json"])).unwrap();
    let first = &comparison["differences"][0];
    assert_eq!(first["call_site"], "record.py:63 validate");
    assert_eq!((first["before"]["count"].as_u64(), first["after"]["count"].as_u64()), (Some(0), Some(726)));
    assert_eq!(first["delta_bytes"], first["after"]["bytes"]);
    let same: serde_json::Value =
        serde_json::from_str(&done(&["compare", &leak(), &leak(), "--format", "json"])).unwrap();
    assert!(same["differences"].as_array().unwrap().iter().all(|difference| difference["delta_bytes"] == 0));
    assert!(done(&["compare", &healthy, &leak()]).contains("record.py:63 validate"));
}

#[test]
fn help_version_completions_and_man_page() {
    assert!(done(&["--help"]).contains("EXAMPLES"));
    assert!(done(&["report", "--help"]).contains("step:8"));
    assert!(done(&["--version"]).starts_with(concat!("vramscope ", env!("CARGO_PKG_VERSION"))));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(done(&["completions", shell]).contains("vramscope"));
    }
    assert!(done(&["man"]).contains(".TH"));
    assert!(done(&["record"]).contains("_record_memory_history"));
}
