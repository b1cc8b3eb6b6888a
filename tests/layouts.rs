//! Memory snapshots in every layout that PyTorch has had, cut anywhere, and pickles that would run something.
//!
//! `tests/fixtures/make_snapshots.py` writes the fixtures and, independently of the reader, what they hold.

use std::sync::Arc;

use vramscope::align::{self, Opened};
use vramscope::analysis::{DeviceFilter, Index, Selection, Totals, UserCode, totals};
use vramscope::import::{self, Input, Progress};
use vramscope::model::{MarkerKind, NEVER_NS, ProcessId, Quantity, Recording, TimeRange};

use crate::support::{open, recording, root};

fn read(name: &str, bytes: Vec<u8>) -> Result<Recording, String> {
    import::import(&Input::from_bytes(name, bytes), &Progress::default()).map_err(|error| error.to_string())
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(root().join("tests/fixtures/snapshots").join(format!("{name}.pickle"))).unwrap()
}

#[test]
fn every_layout_gives_what_was_written() {
    let text = std::fs::read_to_string(root().join("tests/fixtures/snapshots/expected.json")).unwrap();
    let expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert!(expected.len() > 20);
    for (name, expected) in expected {
        let recording = read(&name, fixture(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let pair = |key: &str| {
            let list = expected[key].as_array().unwrap();
            Totals { count: list[0].as_u64().unwrap(), bytes: list[1].as_u64().unwrap() }
        };
        assert_eq!(recording.events, expected["events"].as_u64().unwrap(), "{name}");
        assert_eq!(recording.allocations.len() as u64, expected["allocations"].as_u64().unwrap(), "{name}");
        let alive = recording.allocations.iter().filter(|row| row.free_completed_ns == NEVER_NS);
        let rounded: u64 = alive.map(|row| row.rounded_bytes).sum();
        assert_eq!(rounded, expected["rounded_alive"].as_u64().unwrap(), "{name}");
        match expected.get("warning").and_then(|code| code.as_str()) {
            Some(code) => {
                assert!(
                    recording.warnings.iter().any(|warning| warning.code == code),
                    "{name}: {:?}",
                    recording.warnings
                );
            }
            None => assert_eq!(recording.warnings, [], "{name}"),
        }
        if let Some(oom) = expected.get("oom") {
            let MarkerKind::OutOfMemory { requested_bytes, free_bytes, .. } = recording.markers[0].kind
            else {
                panic!("{name}: no out-of-memory marker");
            };
            assert_eq!((requested_bytes, free_bytes), (oom[0].as_u64(), oom[1].as_u64()), "{name}");
        }
        let opened = [Opened::new(&name, Arc::new(recording))];
        let index = Index::new(Arc::new(align::build(&opened)), UserCode::default());
        let session = &index.session;
        let sums =
            totals(session, Selection::default(), TimeRange { start_ns: i64::MIN + 1, end_ns: i64::MAX });
        assert_eq!(sums.recording_end, pair("kept"), "{name}");
        assert_eq!(sums.apart.before_recording, pair("before"), "{name}");
        // Blocks that only a segment shows to wait for a stream were allocated before the recording.
        if expected["events"] != 0 && name != "layout_2_0" {
            assert_eq!(sums.apart.pending_free, pair("pending"), "{name}");
        }
        if expected.get("host").is_some() {
            let host = Selection { device: DeviceFilter::Host, ..Selection::default() };
            let sums = totals(session, host, TimeRange { start_ns: i64::MIN + 1, end_ns: i64::MAX });
            assert_eq!(sums.recording_end, pair("host"), "{name}");
        }
        if expected.get("private").is_some() {
            assert_eq!(sums.apart.private_pool, pair("private"), "{name}");
        }
        if let Some(call_site) = expected.get("call_site").and_then(|text| text.as_str()) {
            let row = session.processes[0].allocations.get(0);
            assert_eq!(index.label(index.call_site(ProcessId(0), row.stack)), call_site, "{name}");
            assert_eq!(index.label(index.op(ProcessId(0), row.op, row.stack)), expected["op"], "{name}");
        }
    }
}

#[test]
fn a_snapshot_cut_anywhere_gives_what_came_before() {
    let whole = fixture("modern_protocol_4");
    let mut most_events = 0;
    for length in 1..whole.len() {
        match read("cut", whole[..length].to_vec()) {
            Ok(recording) => {
                assert!(recording.events >= most_events, "more bytes never give fewer events");
                most_events = recording.events;
                assert!(recording.warnings.iter().any(|warning| warning.code == "cut"), "at {length}");
            }
            Err(error) => assert!(error.ends_with(": cut"), "{error}"),
        }
    }
    assert_eq!(most_events, 7, "cut behind the events, they are all there");
}

/// A pickle is a program: whatever would import or call is refused by name and byte, before anything else happens.
#[test]
fn nothing_in_a_pickle_is_ever_run() {
    for (opcode, bytes) in [
        ("GLOBAL", &b"\x80\x02}q\x00cos\nsystem\nq\x01."[..]),
        ("STACK_GLOBAL", b"\x80\x04}\x94\x8c\x02os\x94\x8c\x06system\x94\x93\x94."),
        ("REDUCE", b"\x80\x04}\x94)R."),
        ("BUILD", b"\x80\x04}\x94}b."),
        ("INST", b"\x80\x02}q\x00(ios\nsystem\n."),
        ("OBJ", b"\x80\x02}q\x00(o."),
        ("NEWOBJ", b"\x80\x04}\x94)\x81."),
        ("NEWOBJ_EX", b"\x80\x04}\x94)}\x92."),
        ("EXT1", b"\x80\x02}q\x00\x82\x01."),
        ("PERSID", b"\x80\x02}q\x00P1\n."),
        ("BINPERSID", b"\x80\x02}q\x00Q."),
    ] {
        let error = read("evil.pickle", bytes.to_vec()).unwrap_err();
        assert!(error.contains(&format!("opcode {opcode} at byte ")), "{opcode}: {error}");
        assert!(error.ends_with(": evil.pickle"), "{error}");
    }
}

/// Length fields, memo cycles and deep nesting cost no more than the bytes they are written in.
#[test]
fn hostile_pickles_stay_small() {
    let huge_text = b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc".to_vec();
    let huge_long = b"\x80\x04\x8b\xff\xff\xff\x7f".to_vec();
    let mut deep = b"\x80\x04".to_vec();
    deep.extend(b"]\x94(".repeat(200_000));
    // A list that holds itself, as the frames of an event.
    let cycle = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94]\x94(}\x94(\x8c\x06action\x94\
        \x8c\x05alloc\x94\x8c\x04addr\x94K\x05\x8c\x04size\x94K\x07\x8c\x06frames\x94]\x94h\x0ah\x0aa\x8c\x01x\x94K\x00u}\x94eau.";
    for bytes in [huge_text, huge_long, deep] {
        assert!(read("hostile", bytes).is_err());
    }
    // Reads, with or without the odd event, and ends.
    let _ = read("cycle", cycle.to_vec());
}

/// The allocations that events and segments leave alive add up to what the run itself counted at its end.
#[test]
fn what_is_alive_adds_up_to_what_the_run_counted() {
    for name in ["val_without_no_grad", "healthy"] {
        let session = open(&crate::support::sample(name).join("snapshot.pickle.gz"));
        let truth =
            std::fs::read_to_string(root().join(format!("tests/fixtures/truth/{name}.json"))).unwrap();
        check_against_truth(name, &session, &truth);
    }
    for name in [
        "aux_loss_running_sum",
        "expandable_metrics",
        "fragmentation",
        "loss_list",
        "ring_truncated",
        "streams_and_graphs",
    ] {
        let Some(folder) = recording(name) else { continue };
        let truth = std::fs::read_to_string(folder.join("truth.json")).unwrap();
        let snapshot = ["snapshot.pickle.gz", "snapshot.pickle"]
            .map(|file| folder.join(file))
            .into_iter()
            .find(|path| path.exists());
        check_against_truth(name, &open(&snapshot.unwrap()), &truth);
    }
}

fn check_against_truth(name: &str, session: &vramscope::model::Session, truth: &str) {
    let truth: serde_json::Value = serde_json::from_str(truth).unwrap();
    let process = &session.processes[0];
    let alive = || process.allocations.iter().filter(|row| row.free_completed_ns == NEVER_NS);
    let steps = truth["steps"].as_array().unwrap();
    let counted = steps.last().unwrap()["allocated"].as_u64().unwrap();
    assert_eq!(alive().map(|row| row.rounded_bytes).sum::<u64>(), counted, "{name}");
    let blocks = process
        .segments
        .iter()
        .flat_map(|segment| &segment.blocks)
        .filter(|block| block.state != vramscope::model::BlockState::Inactive);
    assert_eq!(
        alive().map(|row| row.size_bytes).sum::<u64>(),
        blocks.map(|block| block.requested_bytes).sum::<u64>(),
        "{name}"
    );

    // The curves, played again from the events, agree with the run to the byte at every step that they cover.
    let curve = |wanted: vramscope::model::Quantity| {
        let series =
            process.series.iter().find(|series| series.quantity == wanted && !series.device.is_host());
        series.unwrap_or_else(|| panic!("{name}: no curve of {wanted:?}"))
    };
    let (allocated, reserved) =
        (curve(vramscope::model::Quantity::Allocated), curve(vramscope::model::Quantity::Reserved));
    let mut compared = 0;
    for step in steps {
        let end_ns = step["t1_ns"].as_i64().unwrap();
        if step["t0_ns"].as_i64().unwrap() >= process.recorded.start_ns {
            assert_eq!(allocated.at(end_ns), step["allocated"].as_i64(), "{name}, step {}", step["step"]);
            assert_eq!(reserved.at(end_ns), step["reserved"].as_i64(), "{name}, step {}", step["step"]);
            compared += 1;
        }
    }
    assert!(compared > 5, "{name}");
}

/// The session of one fixture.
fn session_of(name: &str) -> Index {
    let recording = Arc::new(read(name, fixture(name)).unwrap());
    let opened = [Opened::new(name, recording)];
    Index::new(Arc::new(align::build(&opened)), UserCode::default())
}

#[test]
fn native_frames_that_pass_a_call_on_are_folded_and_kept() {
    let index = session_of("cpp_frames");
    let stack = index.session.processes[0].allocations.get(0).stack;
    let folded = index.stack_lines(ProcessId(0), stack);
    assert!(folded[0].starts_with("at::_ops::empty_memory_format::call"), "{folded:?}");
    assert!(folded[1].contains("functional.py"), "{folded:?}");
    let whole = index.frames(ProcessId(0), stack, true);
    assert_eq!(whole.len(), folded.len() + 1);
}

#[test]
fn an_out_of_memory_event_tells_what_the_process_could_have_had() {
    let index = session_of("out_of_memory");
    let process = &index.session.processes[0];
    let MarkerKind::OutOfMemory { allocated_bytes, reserved_bytes, capacity_bytes, .. } =
        process.markers[0].kind
    else {
        panic!("no out-of-memory marker");
    };
    assert_eq!(allocated_bytes, Some(1024));
    assert_eq!(reserved_bytes, Some(2 << 20));
    assert_eq!(capacity_bytes, Some((2 << 20) + (3 << 20)), "reserved and what the driver had free");
    assert!(process.series.iter().any(|series| series.quantity == Quantity::Capacity));
}
