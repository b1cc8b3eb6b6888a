//! Profiler traces: every release and every way it breaks its JSON, damage, odd wrappings, attribution.
//!
//! The fixtures were made with the releases that their names say, on a CPU. Event counts are of Python's `json` where it
//! reads the file, else of the text `"ph": "`.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};

use proptest::prelude::*;
use serde_json::Value;
use vramscope::import::{self, Input, Progress};
use vramscope::model::{BEFORE_NS, Clock, NEVER_NS, Phase, Quantity, Recording, Stacks};

use crate::support::root;

/// Each fixture, its events, and how many of them need repair.
const FIXTURES: &[(&str, u64, u64)] = &[
    ("torch-1.13.1-filename_evil.json.gz", 39, 6),
    ("torch-1.13.1-full.json.gz", 5365, 0),
    ("torch-1.13.1-meta_backslash.json.gz", 14, 0),
    ("torch-1.13.1-meta_json_bad.json.gz", 14, 0),
    ("torch-1.13.1-name_backslash.json.gz", 56, 1),
    ("torch-1.13.1-name_ctrl.json.gz", 56, 1),
    ("torch-1.13.1-name_json.json.gz", 56, 1),
    ("torch-1.13.1-name_newline.json.gz", 56, 1),
    ("torch-1.13.1-name_quote.json.gz", 56, 1),
    ("torch-1.13.1-name_tab.json.gz", 56, 1),
    ("torch-2.0.1-filename_evil.json.gz", 47, 1),
    ("torch-2.0.1-meta_backslash.json.gz", 14, 0),
    ("torch-2.0.1-meta_json_bad.json.gz", 14, 0),
    ("torch-2.0.1-name_backslash.json.gz", 59, 1),
    ("torch-2.0.1-name_ctrl.json.gz", 59, 1),
    ("torch-2.0.1-name_json.json.gz", 59, 1),
    ("torch-2.0.1-name_newline.json.gz", 59, 1),
    ("torch-2.0.1-name_quote.json.gz", 59, 1),
    ("torch-2.0.1-name_tab.json.gz", 59, 1),
    ("torch-2.3.1-filename_evil.json.gz", 51, 1),
    ("torch-2.3.1-meta_backslash.json.gz", 14, 0),
    ("torch-2.3.1-meta_json_bad.json.gz", 14, 0),
    ("torch-2.3.1-name_ctrl.json.gz", 63, 1),
    ("torch-2.3.1-name_json.json.gz", 63, 1),
    ("torch-2.3.1-name_newline.json.gz", 63, 1),
    ("torch-2.3.1-name_quote.json.gz", 63, 1),
    ("torch-2.3.1-name_tab.json.gz", 63, 1),
    ("torch-2.4.1-filename_evil.json.gz", 53, 1),
    ("torch-2.4.1-meta_json_bad.json.gz", 14, 0),
    ("torch-2.4.1-meta_quote.json.gz", 14, 0),
    ("torch-2.4.1-name_ctrl.json.gz", 107, 1),
    ("torch-2.4.1-name_json.json.gz", 107, 1),
    ("torch-2.4.1-name_quote.json.gz", 107, 1),
    ("torch-2.4.1-name_tab.json.gz", 107, 1),
    ("torch-2.6.0-filename_evil.json.gz", 54, 1),
    ("torch-2.6.0-meta_json_bad.json.gz", 14, 0),
    ("torch-2.6.0-meta_quote.json.gz", 14, 0),
    ("torch-2.6.0-name_ctrl.json.gz", 108, 1),
    ("torch-2.6.0-name_json.json.gz", 108, 1),
    ("torch-2.6.0-name_quote.json.gz", 108, 1),
    ("torch-2.6.0-name_tab.json.gz", 108, 1),
    ("torch-2.8.0-filename_evil.json.gz", 53, 1),
    ("torch-2.8.0-meta_json_bad.json.gz", 14, 0),
    ("torch-2.8.0-meta_quote.json.gz", 14, 0),
    ("torch-2.8.0-name_json.json.gz", 122, 1),
    ("torch-2.8.0-name_quote.json.gz", 122, 1),
    ("torch-2.11.0-filename_evil.json.gz", 52, 1),
    ("torch-2.11.0-full.json.gz", 5932, 0),
    ("torch-2.11.0-meta_json_bad.json.gz", 14, 0),
    ("torch-2.11.0-meta_quote.json.gz", 14, 0),
    ("torch-2.11.0-name_json.json.gz", 72, 1),
    ("torch-2.11.0-name_quote.json.gz", 72, 1),
];

fn fixture(name: &str) -> Vec<u8> {
    let path = root().join("tests/fixtures/traces").join(name);
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut content).unwrap();
    content
}

fn try_open(content: &[u8]) -> Option<Recording> {
    import::import(&Input::from_bytes("trace", content.to_vec()), &Progress::default()).ok()
}

fn open(content: &[u8]) -> Recording {
    import::import(&Input::from_bytes("trace", content.to_vec()), &Progress::default()).unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// All that is known of each allocation, as text: ids and their order don't matter.
fn facts(recording: &Recording) -> BTreeSet<String> {
    recording
        .allocations
        .iter()
        .map(|row| {
            let text = |id| recording.strings.get(id);
            let op = recording.ops.get(row.op).unwrap_or_default();
            let stack: Vec<String> = recording
                .stacks
                .frames(row.stack)
                .map(|frame| Stacks::format_frame(&recording.strings, frame))
                .collect();
            format!(
                "{:x} {} {} {} {} {} < {} of {} {} {} {} {} {} {:?} {}",
                row.address,
                row.size_bytes,
                row.alloc_ns,
                row.free_completed_ns,
                row.device,
                text(op.name),
                text(op.outer),
                text(op.forward),
                text(op.shapes),
                text(op.dtypes),
                text(op.module),
                text(op.annotation),
                text(op.inferred_tensor),
                op.phase,
                stack.join(" < ")
            )
        })
        .collect()
}

fn warns(recording: &Recording, code: &str) -> bool {
    recording.warnings.iter().any(|warning| warning.code == code)
}

#[test]
fn every_release_opens_with_all_its_events() {
    for &(name, events, repaired) in FIXTURES {
        let recording = open(&fixture(name));
        assert_eq!(
            (recording.events, recording.lost.repaired, recording.lost.events),
            (events, repaired, 0),
            "{name}"
        );
        assert_eq!(warns(&recording, "broken-json"), repaired > 0, "{name}");
        assert_eq!(recording.clock, Clock::Unix, "{name}");
        assert!(recording.process.pid.is_some(), "{name}");
    }
}

#[test]
fn repaired_names_come_back_as_they_were() {
    for (name, text) in [
        ("torch-1.13.1-name_quote.json.gz", "say \"hi\""),
        ("torch-2.11.0-name_quote.json.gz", "say \"hi\""),
        ("torch-2.6.0-name_json.json.gz", "{\"a\": 1}"),
        ("torch-2.0.1-name_backslash.json.gz", "C:\\tmp\\x"),
        ("torch-2.3.1-name_newline.json.gz", "a\nb"),
    ] {
        let recording = open(&fixture(name));
        let names: Vec<&str> = recording.annotations.iter().map(|a| recording.strings.get(a.name)).collect();
        assert!(names.contains(&text), "{name}: {names:?}");
    }
}

#[test]
fn allocations_carry_op_stack_annotation_and_phase() {
    let recording = open(&fixture("torch-2.11.0-full.json.gz"));
    let text = |id| recording.strings.get(id);
    let mut phases = BTreeSet::new();
    let mut of_forward = 0;
    for row in recording.allocations.iter().filter(|row| row.alloc_ns != BEFORE_NS) {
        let Some(op) = recording.ops.get(row.op) else { continue };
        phases.insert(op.phase);
        let frames: Vec<String> = recording
            .stacks
            .frames(row.stack)
            .map(|frame| Stacks::format_frame(&recording.strings, frame))
            .collect();
        // The annotation begins inside `__enter__`, which has returned by the time that anything is allocated.
        assert!(
            text(op.annotation) != "## forward ##"
                || !frames.iter().any(|frame| frame.ends_with("__enter__")),
            "{frames:?}"
        );
        if text(op.annotation) == "## forward ##" && text(op.module).contains(" > ") {
            of_forward += 1;
            assert!(frames.last().is_some_and(|frame| frame.ends_with("<module>")), "{frames:?}");
        }
        assert!(op.phase != Phase::Backward || text(op.annotation) == "## backward ##");
    }
    assert!(of_forward > 10, "{of_forward}");
    assert_eq!(phases, BTreeSet::from([Phase::Forward, Phase::Backward, Phase::Optimizer]));
    assert!(
        recording.ops.iter().any(|op| text(op.forward).starts_with("aten::")),
        "backward ops find their forward op"
    );
}

#[test]
fn stacks_of_old_traces_come_from_their_texts() {
    let recording = open(&fixture("torch-1.13.1-full.json.gz"));
    let with_stack = recording.allocations.iter().filter(|row| !row.stack.is_empty()).count();
    assert!(with_stack * 10 > recording.allocations.len() * 9, "{with_stack}");
    let is_stripped = recording.allocations.iter().all(|row| {
        recording.stacks.frames(row.stack).all(|frame| !recording.strings.get(frame.function).contains("0x"))
    });
    assert!(is_stripped, "addresses differ in every run");
}

#[test]
fn allocations_add_up_to_the_totals_that_the_trace_tells() {
    for name in ["torch-1.13.1-full.json.gz", "torch-2.11.0-full.json.gz"] {
        let recording = open(&fixture(name));
        let curve = recording.series.iter().find(|series| series.quantity == Quantity::Allocated).unwrap();
        let mut changes: Vec<(i64, i64)> = Vec::new();
        for row in recording.allocations.iter() {
            let bytes = row.size_bytes as i64;
            changes.extend((row.alloc_ns != BEFORE_NS).then_some((row.alloc_ns, bytes)));
            changes.extend((row.free_completed_ns != NEVER_NS).then_some((row.free_completed_ns, -bytes)));
        }
        assert_eq!(changes.len(), curve.len(), "{name}");
        changes.sort_unstable();
        let net: i64 = changes.iter().map(|change| change.1).sum();
        let first = changes.first().unwrap();
        assert_eq!(*curve.bytes.last().unwrap() - (curve.bytes[0] - first.1), net, "{name}");
    }
}

#[test]
fn memory_timelines_agree_in_both_forms() {
    let levels = open(&fixture("torch-2.11.0-timeline.json.gz"));
    let changes = open(&fixture("torch-2.11.0-timeline-raw.json.gz"));
    assert_eq!((levels.events, changes.events), (1101, 1728));
    let last = |recording: &Recording| -> Vec<(String, i64)> {
        let ends = recording
            .series
            .iter()
            .map(|series| (series.quantity.label().to_owned(), *series.bytes.last().unwrap()));
        ends.filter(|&(_, bytes)| bytes != 0).collect()
    };
    assert_eq!(last(&levels), [("parameters".to_owned(), 268_328), ("optimizer state".to_owned(), 536_712)]);
    assert_eq!(last(&changes), last(&levels));
}

#[test]
fn the_order_of_events_in_the_file_does_not_matter() {
    let mut document: Value = serde_json::from_slice(&fixture("torch-2.11.0-full.json.gz")).unwrap();
    let in_order = facts(&open(document.to_string().as_bytes()));
    let events = document["traceEvents"].as_array_mut().unwrap();
    let mut seed = 7_u64;
    for index in (1..events.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        events.swap(index, (seed >> 33) as usize % (index + 1));
    }
    assert_eq!(facts(&open(document.to_string().as_bytes())), in_order);
}

/// Two allocations, one of them freed, in an op, in a Python function.
const EVENTS: &str = r#"{"ph":"X","cat":"python_function","name":"train.py(3): step","pid":7,"tid":7,"ts":1000.000,"dur":90.5,"args":{"Python id":1,"Python parent id":null}},
{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":7,"tid":7,"ts":1001.250,"dur":50,"args":{"Input Dims":[[4,8]],"Input type":["float"]}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1002.125,"args":{"Addr":-4096,"Bytes":512,"Device Id":1,"Device Type":1,"Total Allocated":512,"Total Reserved":2097152}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1003.5,"args":{"Addr":139000000000000,"Bytes":1024,"Device Id":1,"Device Type":1,"Total Allocated":1536,"Total Reserved":2097152}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1060,"args":{"Addr":-4096,"Bytes":-512,"Device Id":1,"Device Type":1,"Total Allocated":1024,"Total Reserved":2097152}}"#;

const BASE: &str = "\"baseTimeNanoseconds\": 1790857026000000000";

#[test]
fn every_wrapping_gives_the_same_allocations() {
    let plain = open(format!("{{{BASE}, \"traceEvents\": [{EVENTS}]}}").as_bytes());
    let expected = facts(&plain);
    assert_eq!(expected.len(), 2);
    assert!(
        expected.iter().any(|fact| fact.starts_with("fffffffffffff000 512 1790857026001002125 ")),
        "{expected:?}"
    );
    assert!(
        expected.iter().all(|fact| fact.contains("cuda:1 aten::relu") && fact.ends_with("train.py:3 step"))
    );

    let crlf = EVENTS.replace('\n', "\r\n");
    let strings =
        EVENTS.replace("\"ts\":1002.125", "\"ts\":\"1002.125\"").replace("\"pid\":7", "\"pid\":\"7\"");
    let odd = EVENTS
        .replace("\"Bytes\":1024", "\"Bytes\":3,\"x\":NaN,\"y\":-Infinity,\"Bytes\":1024")
        .replace("aten::relu", "aten::relu\",\"zz\":\"a\\u0041");
    for (what, text) in [
        ("base last", format!("{{\"traceEvents\": [{EVENTS}], \"traceName\": \"x\", {BASE}}}")),
        ("mark and CRLF", format!("\u{feff}{{\r\n{BASE},\r\n\"traceEvents\": [{crlf}]}}")),
        ("nested", format!("{{{BASE}, \"traceEvents\": [{{\"traceEvents\": [{EVENTS}, {{}}]}}]}}")),
        ("comma and no end", format!("{{{BASE}, \"traceEvents\": [{EVENTS},")),
        ("texts for numbers", format!("{{{BASE}, \"traceEvents\": [{strings}]}}")),
        ("twice and NaN", format!("{{{BASE}, \"traceEvents\": [{odd}]}}")),
        ("a name of another list", format!("{{\"traceEvents\": 3, {BASE}, \"traceEvents\": [{EVENTS}]}}")),
    ] {
        let recording = open(text.as_bytes());
        assert_eq!(facts(&recording), expected, "{what}");
        assert_eq!(warns(&recording, "cut"), what == "comma and no end", "{what}");
        assert_eq!(facts(&open(&gzip(text.as_bytes()))), expected, "{what}, compressed");
    }
    let array = open(format!("[{EVENTS}]").as_bytes());
    assert_eq!((array.clock, array.allocations.len()), (Clock::Relative, 2));
}

#[test]
fn beginnings_and_ends_make_slices() {
    let text = EVENTS
        .replace(
            "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"pid\":7,\"tid\":7,\"ts\":1001.250,\"dur\":50,",
            "{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":1051.250},{\"ph\":\"B\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"pid\":7,\"tid\":7,\"ts\":1001.250,",
        );
    let recording = open(format!("[{text},{{\"ph\":\"E\",\"pid\":7,\"tid\":7,\"ts\":1051.250}}]").as_bytes());
    let relu = recording.strings.find("aten::relu").unwrap();
    let row = recording.slices.name.iter().position(|&name| name == relu).unwrap();
    assert_eq!(recording.slices.end_ns[row] - recording.slices.start_ns[row], 50_000);
    assert!(
        recording.allocations.op.iter().all(|&op| recording.ops.get(op).is_some_and(|op| op.name == relu))
    );
}

#[test]
fn several_members_and_documents_are_read_as_one() {
    let document = |base: i64| {
        format!(
            "{{\"baseTimeNanoseconds\": {base}, \"traceEvents\": [{EVENTS}], \"distributedInfo\": {{\"rank\": 1}}}}\n"
        )
    };
    let (first, second) = (document(1_790_857_026_000_000_000), document(1_790_857_027_000_000_000));
    let joined = [first.as_bytes(), second.as_bytes()].concat();
    let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    for content in [joined, members] {
        let recording = open(&content);
        assert_eq!((recording.events, recording.allocations.len()), (10, 4));
        assert_eq!(recording.allocations.alloc_ns[3] - recording.allocations.alloc_ns[1], 1_000_000_000);
        assert!(warns(&recording, "several-documents"));
    }
}

#[test]
fn a_trace_without_memory_says_how_to_record_it() {
    let recording = open(
        br#"{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":1,"dur":1}]}"#,
    );
    let text = &recording.warnings.iter().find(|warning| warning.code == "no-memory-events").unwrap().text;
    assert!(text.contains("profile_memory=True"), "{text}");
}

#[test]
fn traces_without_addresses_are_paired_by_size() {
    let event = |ts: u32, bytes: i64| {
        format!(
            "{{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":{ts},\"args\":{{\"Device Type\":1,\"Device Id\":0,\"Bytes\":{bytes}}}}}"
        )
    };
    let events = [event(1, 512), event(2, 1024), event(3, -512), event(4, -2048)].join(",");
    let recording = open(format!("{{\"traceEvents\": [{events}]}}").as_bytes());
    let rows: Vec<(u64, bool, bool)> = recording
        .allocations
        .iter()
        .map(|row| (row.size_bytes, row.alloc_ns == BEFORE_NS, row.free_completed_ns == NEVER_NS))
        .collect();
    assert_eq!(rows, [(2048, true, false), (512, false, false), (1024, false, true)]);
    assert!(warns(&recording, "guessed-pairs"));
}

#[test]
fn events_at_zero_are_left_out_and_counted() {
    let zero = r#"{"ph":"X","cat":"cpu_op","name":"aten::add","pid":7,"tid":7,"ts":0.000,"dur":0.000}"#;
    let far = EVENTS.replace("\"ts\":1", "\"ts\":52473025931");
    let recording = open(format!("{{{BASE}, \"traceEvents\": [{zero},{far},{zero}]}}").as_bytes());
    assert_eq!((recording.events, recording.lost.events), (7, 2));
    assert!(recording.span.unwrap().duration_ns() < 1_000_000_000);
}

#[test]
fn a_cut_trace_keeps_every_whole_event() {
    let content = fixture("torch-2.11.0-name_quote.json.gz");
    let end = content.windows(5).position(|window| window == b"\n  ],").unwrap();
    let start = content.windows(14).position(|window| window == b"\"traceEvents\":").unwrap();
    let mut before = 0;
    for cut in (start + 40..end).step_by(97) {
        let Some(recording) = try_open(&content[..cut]) else {
            assert_eq!(before, 0, "cut at {cut}");
            continue;
        };
        let whole = content[..cut].windows(6).filter(|window| window == b"\n  },\n").count() as u64;
        assert!(
            recording.events >= whole && recording.events <= whole + 1,
            "cut at {cut}: {} of {whole}",
            recording.events
        );
        assert!(warns(&recording, "cut"), "cut at {cut}");
        before = recording.events;
    }
    let packed = gzip(&content);
    let recording = open(&packed[..packed.len() * 2 / 3]);
    assert!(recording.events > 10 && warns(&recording, "cut"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_end_in_a_recording_or_a_sentence(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        try_open(&[b"{\"traceEvents\": [", bytes.as_slice()].concat());
        try_open(&[b"[[", bytes.as_slice()].concat());
    }

    #[test]
    fn any_pieces_of_json_end_in_a_recording_or_a_sentence(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..60)
    ) {
        try_open(format!("{{\"traceEvents\": [{}", pieces.concat()).as_bytes());
    }
}

/// What events are made of, whole and torn.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\n  {",
    "},\n",
    "\"ph\":\"X\"",
    "\"ph\":\"B\"",
    "\"ph\":\"E\"",
    "\"ph\":\"i\"",
    "\"cat\":\"cpu_op\"",
    "\"cat\":\"python_function\"",
    "\"cat\":\"user_annotation\"",
    "\"name\":\"[memory]\"",
    "\"name\":\"a.py(1): f\"",
    "\"name\":\"nn.Module: M_0\"",
    "\"ts\":",
    "\"dur\":",
    "\"pid\":1",
    "\"tid\":1",
    "\"args\":{",
    "\"Addr\":5",
    "\"Bytes\":",
    "-9223372036854775808",
    "18446744073709551615",
    "1e999",
    "-1",
    "0",
    "512",
    "1.5",
    "\"Python id\":1",
    "\"Python parent id\":1",
    "\"Input Dims\":[[1]]",
    "\"Concrete Inputs\":[\"[",
    "\"Sequence number\":3",
    "\"Fwd thread id\":1",
    "\"traceEvents\":[",
    "null",
    "inf",
    "\u{e9}",
    "#3",
];
