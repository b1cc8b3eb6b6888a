//! Logs against the runs that wrote them: zones, points, summaries, stacks, and what fills the driver's figure.

use std::path::{Path, PathBuf};

use serde_json::Value;
use vramscope::align::{self, clock};
use vramscope::analysis::driver_gap;
use vramscope::import::{Input, Progress, import_path};
use vramscope::model::{
    AlignmentMethod, Clock, Device, Quantity, Recording, Series, Session, SourceKind, Step, TimeRange,
};

use crate::support::{open, recording, root, sample};

const MINUTE_NS: i64 = 60_000_000_000;

const RUNS: [&str; 13] = [
    "aux_loss_running_sum",
    "custom_loss_keeps_ctx",
    "expandable_metrics",
    "fragmentation",
    "healthy",
    "hook_activations",
    "long_run",
    "loss_list",
    "ring_truncated",
    "runs_out_of_memory",
    "streams_and_graphs",
    "val_without_no_grad",
    "workers_touch_cuda",
];

/// The run's own account.
fn truth(folder: &Path) -> Option<Value> {
    let file = ["truth.json", "truth.json.gz"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file())?;
    let input = Input::open(&file).ok()?;
    let text = input.read_all(&Progress::default(), 1 << 30).ok()?;
    serde_json::from_slice(&text.bytes).ok()
}

/// What a POSIX TZ such as `IST-5:30` or `EST5EDT` means in winter: minutes to add to UTC, against the sign in the name.
fn zone_minutes(posix: &str) -> i64 {
    let digits_at = posix.find(|c: char| c == '-' || c == '+' || c.is_ascii_digit()).unwrap_or(posix.len());
    let rest = &posix[digits_at..];
    let end =
        rest[1.min(rest.len())..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 1);
    let (sign, number) = match rest[..end].strip_prefix('-') {
        Some(number) => (1, number),
        None => (-1, rest[..end].trim_start_matches('+')),
    };
    let (hours, minutes) = number.split_once(':').unwrap_or((number, "0"));
    sign * (hours.parse().unwrap_or(0) * 60 + minutes.parse::<i64>().unwrap_or(0))
}

/// The steps of the run's own account: allocated and reserved at their ends.
struct TruthSteps {
    steps: Vec<Step>,
    series: Vec<Series>,
}

fn truth_steps(truth: &Value) -> TruthSteps {
    let mut allocated = Series::new(Quantity::Allocated, Device::cuda(0), true);
    let mut reserved = Series::new(Quantity::Reserved, Device::cuda(0), true);
    let mut steps = Vec::new();
    for step in truth["steps"].as_array().unwrap() {
        let ns = |key: &str| step[key].as_i64().unwrap();
        steps.push(Step { number: ns("step"), range: TimeRange::new(ns("t0_ns"), ns("t1_ns")) });
        allocated.push(ns("t1_ns"), ns("allocated"));
        reserved.push(ns("t1_ns"), ns("reserved"));
    }
    TruthSteps { steps, series: vec![allocated, reserved] }
}

#[test]
fn posix_zones_are_read_with_their_sign() {
    assert_eq!(["IST-5:30", "CST-8", "EST5EDT", ""].map(zone_minutes), [330, 480, -300, 0]);
}

/// By the steps' figures alone, as with a trace or snapshot that covers little more.
#[test]
fn zones_are_found_from_the_steps_figures() {
    for run in RUNS {
        let Some(folder) = recording(run) else { continue };
        let Some(truth) = truth(&folder) else { continue };
        let TruthSteps { steps, series } = truth_steps(&truth);
        let span = TimeRange::new(steps[0].range.start_ns, truth["dumped_ns"].as_i64().unwrap());
        let process = clock::RefProcess { rank: None, series: &series, steps: &steps, covers_run: true };
        let reference = clock::Reference::new(vec![process], Some(span));
        // The longest run printed nothing.
        let is_written = |name: &&str| folder.join(name).metadata().is_ok_and(|file| file.len() > 0);
        let names: Vec<&str> = ["nvidia-smi-gpu.csv", "nvidia-smi-apps.csv", "train.log"]
            .into_iter()
            .filter(is_written)
            .collect();
        let logs: Vec<Recording> =
            names.iter().map(|name| import_path(&folder.join(name), &Progress::default()).unwrap()).collect();
        let placed = clock::align_logs(&reference, &logs.iter().collect::<Vec<_>>());
        for (name, placed) in names.iter().zip(placed) {
            let expected = -zone_minutes(truth["tz"].as_str().unwrap()) * MINUTE_NS;
            println!("{run}/{name}: {:.2} {}", placed.alignment.confidence, placed.alignment.evidence);
            assert_eq!(placed.alignment.offset_ns, expected, "{run}/{name}: {}", placed.alignment.evidence);
        }
    }
}

#[test]
fn zones_and_points_of_whole_sessions_are_right() {
    for run in RUNS.iter().filter(|run| **run != "long_run") {
        let Some(folder) = recording(run) else { continue };
        let Some(truth) = truth(&folder) else { continue };
        let session = open(&folder);
        let expected = -zone_minutes(truth["tz"].as_str().unwrap()) * MINUTE_NS;
        for source in session.sources.iter().filter(|source| source.recording.clock == Clock::LocalWall) {
            let alignment = &source.alignment;
            assert_eq!(alignment.offset_ns, expected, "{run}/{}: {}", source.name, alignment.evidence);
        }
        points_lie_within_a_step(run, &session, &truth);
    }
}

/// Each printed figure stands for its step: right in bytes, and within one step in time.
fn points_lie_within_a_step(run: &str, session: &Session, truth: &Value) {
    let of_run = truth_steps(truth);
    let source = session.sources.iter().find(|source| source.kind() == SourceKind::TrainingLog).unwrap();
    let series = &source.recording.series;
    let allocated = series.iter().find(|series| series.quantity == Quantity::Allocated).unwrap();
    for (row, (step, &bytes)) in of_run.steps.iter().zip(&of_run.series[0].bytes).enumerate() {
        let printed = allocated.bytes[row];
        assert!((printed - bytes).abs() <= 60_000, "{run} step {}: {printed} for {bytes}", step.number);
        let time_ns = allocated.times_ns[row] + source.alignment.offset_ns;
        let neighbours = TimeRange::new(
            of_run.steps[row.saturating_sub(1)].range.start_ns,
            of_run.steps[(row + 1).min(of_run.steps.len() - 1)].range.end_ns + 50_000_000,
        );
        let off_ns = (time_ns - step.range.end_ns).abs();
        assert!(
            neighbours.contains(time_ns) || off_ns < 1_000_000_000 && !has_steps(session),
            "{run} step {}: off by {off_ns} ns; {}",
            step.number,
            source.alignment.evidence
        );
    }
}

fn has_steps(session: &Session) -> bool {
    session.processes.iter().any(|process| !process.steps.is_empty())
}

/// Printed before the first step and when the last one was done, as the run's own account tells.
#[test]
fn summaries_without_times_are_placed_by_their_figures() {
    let session = open(&sample("val_without_no_grad"));
    let truth =
        std::fs::read_to_string(root().join("tests/fixtures/truth/val_without_no_grad.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let steps = truth["steps"].as_array().unwrap();
    let time_of = |name: &str| {
        let source = session.sources.iter().find(|source| source.name == name).unwrap();
        assert_eq!(source.alignment.method, AlignmentMethod::Level, "{}", source.alignment.evidence);
        source.span().unwrap().start_ns
    };
    assert!(time_of("memory_summary_start.txt") < steps[0]["t0_ns"].as_i64().unwrap());
    // The last step's end lies after the last event that was recorded.
    assert!(time_of("memory_summary_end.txt") > steps.last().unwrap()["t0_ns"].as_i64().unwrap());
}

#[test]
fn logs_of_ranks_without_times_are_placed_by_their_steps() {
    let Some(folder) = recording("ddp") else { return };
    let session = open(&folder);
    for rank in 0..2 {
        let name = format!("rank{rank}.log");
        let source = session.sources.iter().find(|source| source.name.ends_with(&name)).unwrap();
        println!("{name}: {:?}", source.alignment);
        assert_eq!(source.recording.process.rank, Some(rank));
        assert_eq!(source.alignment.method, AlignmentMethod::Steps, "{}", source.alignment.evidence);
        let truth: Value = serde_json::from_str(
            &std::fs::read_to_string(folder.join(format!("truth_rank{rank}.json"))).unwrap(),
        )
        .unwrap();
        let steps = truth["steps"].as_array().unwrap();
        let series = &source.recording.series;
        let allocated = series.iter().find(|series| series.quantity == Quantity::Allocated).unwrap();
        for (step, (&time_ns, &bytes)) in steps.iter().zip(allocated.times_ns.iter().zip(&allocated.bytes)) {
            assert_eq!(bytes, step["allocated"].as_i64().unwrap());
            let off_ns = (time_ns - step["t1_ns"].as_i64().unwrap()).abs();
            let length_ns = step["t1_ns"].as_i64().unwrap() - step["t0_ns"].as_i64().unwrap();
            assert!(off_ns <= length_ns.max(50_000_000), "step {}: {off_ns} of {length_ns}", step["step"]);
        }
    }
}

#[test]
fn summaries_agree_with_the_counters() {
    for run in RUNS {
        let Some(folder) = recording(run) else { continue };
        let read = |name: &str| {
            let recording = import_path(&folder.join(name), &Progress::default()).unwrap();
            assert_eq!(recording.kind, SourceKind::MemorySummary, "{run}/{name}");
            recording.summaries[0].clone()
        };
        let (table, counters) = (read("memory_summary_end.txt"), read("memory_stats_end.json"));
        for (of_table, of_counters) in [
            (table.allocated_bytes, counters.allocated_bytes),
            (table.reserved_bytes, counters.reserved_bytes),
            (table.inactive_split_bytes, counters.inactive_split_bytes),
            (table.requested_bytes, counters.requested_bytes),
        ] {
            let (of_table, exact) = (of_table.unwrap(), of_counters.unwrap());
            // The table cuts to whole KiB or MiB.
            assert!(exact >= of_table && exact - of_table < 1 << 20, "{run}: {of_table} for {exact}");
        }
        assert_eq!(table.allocations, counters.allocations, "{run}");
        assert_eq!((table.ooms, table.alloc_retries), (counters.ooms, counters.alloc_retries), "{run}");
    }
}

#[test]
fn stacks_of_every_form_are_read() {
    let Some(folder) = recording("hook_activations") else { return };
    let read = |name: &str| {
        let recording = import_path(&folder.join(name), &Progress::default()).unwrap();
        assert_eq!(recording.kind, SourceKind::PySpy, "{name}");
        recording
    };
    let text = read("pyspy-dump.txt");
    let (json, locals) = (read("pyspy-dump.json"), read("pyspy-dump-locals.txt"));
    let depth = |recording: &Recording| recording.stacks.frames(recording.stack_counts[0].0).count();
    // The text was dumped a moment before the two others.
    assert_eq!((depth(&text), depth(&json), depth(&locals)), (52, 60, 60));
    assert_eq!(text.process.pid, Some(1004));
    let folded = read("pyspy.folded");
    // 15 stacks, and a line for samples without Python frames.
    assert_eq!((folded.stack_counts.len(), folded.events, folded.lost.events), (15, 16, 0));
    let scope = read("pyspy.speedscope.json");
    assert_eq!(scope.span.map(TimeRange::duration_ns), Some(100_000_000));
    let chrome = read("pyspy.chrometrace.json");
    // 24 events: 12 frames begin and end.
    assert_eq!(chrome.slices.len(), 12);
    assert_eq!(chrome.span, Some(TimeRange::new(286_760_000, 1_889_476_000)));
}

#[test]
fn growth_by_workers_is_told_from_growth_of_the_allocator() {
    let Some(folder) = recording("workers_touch_cuda") else { return };
    let session = open(&folder);
    let gap = driver_gap(&session, Device::cuda(0)).unwrap();
    assert_eq!(gap.own_pids, [835]);
    let pids: Vec<u64> = gap.others.iter().map(|other| other.pid).collect();
    assert_eq!(pids.len(), 3, "{pids:?}");
    let truth = truth(&folder).unwrap();
    let steps = &truth_steps(&truth).steps;
    let range = TimeRange::new(steps[0].range.end_ns, steps.last().unwrap().range.end_ns);
    let growth = gap.growth(range).unwrap();
    println!("{growth:?}");
    assert!(growth.driver_used_bytes > 2_400 << 20);
    assert!(growth.other_processes_bytes * 10 > growth.driver_used_bytes * 9);
    assert!(growth.reserved_bytes < 64 << 20);
    for row in 0..gap.times_ns.len() {
        let others: i64 = gap.others.iter().map(|other| other.bytes[row]).sum();
        assert_eq!(gap.driver_used[row], gap.reserved[row] + others + gap.context[row] + gap.rest[row]);
    }
}

#[test]
fn every_fixture_opens_as_what_it_is() {
    let folder = root().join("tests/fixtures/logs");
    for (name, kind, clock, points) in [
        ("gpu-utf16.csv", SourceKind::NvidiaSmi, Clock::LocalWall, 3),
        ("gpu-daylight.csv", SourceKind::NvidiaSmi, Clock::LocalWall, 6),
        ("gpu-broken.csv", SourceKind::NvidiaSmi, Clock::LocalWall, 3),
        ("dmon.txt", SourceKind::NvidiaSmi, Clock::LocalWall, 3),
        ("train-ranks.log", SourceKind::TrainingLog, Clock::Unix, 2),
        ("train-bar.log", SourceKind::TrainingLog, Clock::Relative, 3),
    ] {
        let log = import_path(&folder.join(name), &Progress::default()).unwrap();
        assert_eq!((log.kind, log.clock), (kind, clock), "{name}");
        assert_eq!(log.series[0].len(), points, "{name}: {:?}", log.series[0]);
        assert!(log.series.iter().all(|series| series.times_ns.is_sorted()), "{name}");
        assert!(!align::build(&[opened(folder.join(name), log)]).sources.is_empty());
    }
    let refused =
        import_path(&folder.join("gpu-no-memory.csv"), &Progress::default()).unwrap_err().to_string();
    assert!(refused.starts_with("the CSV has no memory column: query memory.used"), "{refused}");
}

fn opened(path: PathBuf, recording: Recording) -> align::Opened {
    align::Opened::new(path, recording.into())
}
