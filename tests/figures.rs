//! The figures that were counted independently, from the recordings' own pickles and the scripts' own account.

use vramscope::analysis::{
    Category, FreeBy, GroupBy, Query, Selection, by_category, group, kept, live, totals,
};
use vramscope::model::{Session, TimeRange};

use crate::support::{open, open_index, recording, sample};

/// From the start of one step to the start of another.
fn steps(session: &Session, from: i64, to: i64) -> TimeRange {
    let process = &session.processes[0];
    let start_of = |number: i64| {
        let step = process.steps.iter().find(|step| step.number == number);
        step.unwrap_or_else(|| panic!("no step {number}")).range.start_ns
    };
    TimeRange::new(start_of(from), start_of(to))
}

#[test]
fn the_leak_sample_keeps_what_its_script_kept() {
    let index = open_index(&sample("val_without_no_grad"));
    let session = &index.session;
    assert_eq!(session.processes.len(), 1, "trace and snapshot are of one process");
    let range = steps(session, 8, 16);
    let sums = totals(session, Selection::default(), range);
    assert_eq!((sums.recording_end.count, sums.recording_end.bytes), (244, 601_661_440));
    assert_eq!((sums.range_end.count, sums.range_end.bytes), (431, 769_644_840));

    let query = Query { selection: Selection::default(), range, free_by: FreeBy::RecordingEnd };
    let groups = group(&index, &kept(session, &query), GroupBy::CallSite);
    assert_eq!(groups[0].key, "record.py:63 validate");
    assert_eq!((groups[0].count, groups[0].bytes), (242, 599_891_968));
    assert!(groups[0].ops.iter().any(|op| op.contains("batch_norm")), "{:?}", groups[0].ops);
}

#[test]
fn the_healthy_sample_keeps_nothing_after_its_warm_up() {
    let session = open(&sample("healthy"));
    let sums = totals(&session, Selection::default(), steps(&session, 10, 29));
    assert_eq!(sums.recording_end.count, 0);
    assert!(sums.allocated.count > 0);
}

#[test]
fn fragmentation_is_no_leak() {
    let Some(folder) = recording("fragmentation") else { return };
    let session = open(&folder);
    assert_eq!(totals(&session, Selection::default(), steps(&session, 20, 59)).recording_end.count, 0);
}

#[test]
fn the_long_run_keeps_every_fiftieth_output() {
    let Some(folder) = recording("long_run") else { return };
    let session = open(&folder);
    let sums = totals(&session, Selection::default(), steps(&session, 500, 1499));
    assert_eq!((sums.recording_end.count, sums.recording_end.bytes), (20, 10_485_760));
}

#[test]
fn every_allocation_of_a_trace_finds_its_twin_in_the_snapshot() {
    for (name, allocations) in [
        ("val_without_no_grad", 6_566),
        ("expandable_metrics", 3_740),
        ("streams_and_graphs", 30),
        ("custom_loss_keeps_ctx", 195),
    ] {
        let in_repository = sample(name);
        let folder = if in_repository.is_dir() { Some(in_repository) } else { recording(name) };
        let Some(folder) = folder else { continue };
        let session = open(&folder);
        assert_eq!(session.links.len(), 1, "{name}");
        let link = &session.links[0];
        assert_eq!((link.allocations, link.matched), (allocations, allocations), "{name}");
    }
}

#[test]
fn ranks_of_one_run_stay_apart() {
    let Some(folder) = recording("ddp") else { return };
    let session = open(&folder);
    let labels: Vec<&str> = session.processes.iter().map(|process| process.label.as_str()).collect();
    assert_eq!(labels, ["rank 0", "rank 1"]);
    assert!(
        session.processes.iter().all(|process| process.sources.len() == 2),
        "each has its trace and snapshot"
    );
}

/// Counted from the snapshot's blocks by a few lines of Python: by frames of `torch/optim`, by no frame of Python (the
/// autograd thread), and the rest. Adam keeps two tensors for each gradient, which follows from its definition.
#[test]
fn what_is_live_at_the_end_is_told_by_category() {
    let index = open_index(&sample("healthy"));
    let rows = live(&index.session, Selection::default(), index.session.span.end_ns);
    let found: Vec<(Category, u64, u64)> =
        by_category(&index, &rows).into_iter().map(|(kind, sum)| (kind, sum.count, sum.bytes)).collect();
    let expected = [
        (Category::OptimizerState, 374, 335_966_800),
        (Category::Parameters, 370, 168_212_752),
        (Category::Gradients, 187, 167_983_400),
    ];
    assert_eq!(found, expected);
}
