//! Files made to take all memory or time, through the real program.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::program;

/// Makes a report of a file: a status of 0 or 1, in time, in a bounded memory.
fn withstand(name: &str, path: &Path) {
    let started = Instant::now();
    let result = program::report(path, "json");
    println!("{name}: {result:?}, {:?}", started.elapsed());
    assert!(result.is_ok(), "{name}: {result:?}");
}

fn bomb(name: &str, bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    withstand(name, file.path());
}

/// So many bytes of a piece, repeated, in a gzip or zstd file behind a head.
fn packed(name: &str, head: &[u8], piece: &[u8], total: usize, is_zstd: bool) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let chunk = piece.repeat((1 << 20) / piece.len());
    let write = |out: &mut dyn std::io::Write| {
        out.write_all(head).unwrap();
        for _ in 0..total / chunk.len() {
            out.write_all(&chunk).unwrap();
        }
    };
    if is_zstd {
        let mut zstd = Command::new("zstd");
        zstd.args(["-q", "-c"]).stdin(Stdio::piped()).stdout(file.as_file().try_clone().unwrap());
        let Ok(mut child) = zstd.spawn() else {
            println!("skipped: no zstd here");
            return;
        };
        write(&mut child.stdin.take().unwrap());
        assert!(child.wait().unwrap().success());
    } else {
        let mut encoder = flate2::write::GzEncoder::new(file.as_file_mut(), flate2::Compression::fast());
        write(&mut encoder);
        encoder.finish().unwrap().flush().unwrap();
    }
    withstand(name, file.path());
}

const PICKLE: &[u8] = b"\x80\x04";
const TRACE: &[u8] = b"{\"schemaVersion\": 1, \"traceEvents\": [\n";
const INFLATED_BYTES: usize = 512 << 20;
/// Without optimisation a million lines take ten seconds.
const TEXT_BYTES: usize = if cfg!(debug_assertions) { 24 << 20 } else { INFLATED_BYTES };

#[cfg(target_os = "linux")]
#[test]
fn small_files_that_inflate_to_large_ones() {
    for (name, head, piece) in [
        ("pickle of nothing", PICKLE, &b"\0"[..]),
        ("pickle of dicts", PICKLE, b"}"),
        ("pickle of numbers", PICKLE, b"K\x01"),
        ("pickle of lists of numbers", PICKLE, b"](K\x01K\x01K\x01K\x01e0"),
        ("trace of blanks", TRACE, b" "),
        ("trace of one string", b"{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"", b"x"),
        ("log of one line", b"step 1 memory_allocated: 12.5 GB ", b"x"),
        ("log of lines", b"", b"step 1 memory_allocated: 12.5 GB\n"),
        ("nvidia-smi of lines", b"timestamp, memory.used [MiB]\n", b"2026/01/01 00:00:00.000, 5 MiB\n"),
    ] {
        let total =
            if name.contains("of lines") || name.contains("one line") { TEXT_BYTES } else { INFLATED_BYTES };
        packed(name, head, piece, total, false);
    }
    packed("zstd pickle of dicts", PICKLE, b"}", INFLATED_BYTES, true);
    packed("zstd log", b"step 1 memory_allocated: 12.5 GB ", b"x", TEXT_BYTES, true);
}

#[cfg(target_os = "linux")]
#[test]
fn pickles_that_nest_and_hold_themselves() {
    const MANY: usize = 3_000_000;
    let nested = |opening: &[u8], closing: &[u8]| {
        [PICKLE, &opening.repeat(MANY), &closing.repeat(MANY), b"."].concat()
    };
    bomb("lists in lists, open", &nested(b"](", b""));
    bomb("lists in lists", &nested(b"]", b"a"));
    bomb("tuples in tuples", &nested(b"\x85", b""));
    bomb("tuples in tuples", &[PICKLE, b"N", &b"\x85".repeat(MANY), b"."].concat());
    bomb("dicts in dicts", &nested(b"}\x8c\x08segments", b"s"));
    bomb("marks", &nested(b"(", b"t"));
    for cycle in [
        &b"]\x94h\x00a."[..],
        b"}\x94\x8c\x08segmentsh\x00s.",
        b"}\x94(\x8c\x08segments]\x94h\x01a\x8c\x0ddevice_traces]\x94(h\x02h\x00eu.",
        b"}\x94(\x8c\x0ddevice_traces]\x94]\x94(}\x94(\x8c\x06frames]\x94h\x04a\x8c\x06actionh\x03ueau.",
    ] {
        bomb("a cycle", &[PICKLE, cycle].concat());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_million_distinct_strings() {
    let mut pickle = [PICKLE, b"}\x94\x8c\x08segments](" as &[u8]].concat();
    for number in 0..1_000_000 {
        let text = format!("string number {number}");
        pickle.extend([&[0x8c, text.len() as u8], text.as_bytes(), b"\x94"].concat());
    }
    pickle.extend(b"es.");
    bomb("a pickle of distinct strings", &pickle);

    let mut trace = TRACE.to_vec();
    for number in 0..1_000_000 {
        let _ = writeln!(
            trace,
            "{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op{number}\",\"pid\":1,\"tid\":1,\"ts\":{number},\"dur\":5000000}},"
        );
    }
    bomb("a trace of distinct ops, each within the one before", &trace);

    let log: String = (0..200_000)
        .map(|number| format!("step {number} gpu{number} memory_allocated: {number} MB\n"))
        .collect();
    bomb("a log of distinct devices", log.as_bytes());
    let log: String =
        (0..50_000).map(|number| format!("[rank{number}] step {number} memory_allocated: 5 GB\n")).collect();
    bomb("a log of distinct ranks", log.as_bytes());
    let log: String = (0..50_000)
        .map(|number| format!("2026/12/01 00:00:00.0, GPU-{number}, {number}, python, 5 MiB\n"))
        .collect();
    let header = "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n";
    bomb("a driver's log of distinct processes and boards", format!("{header}{log}").as_bytes());
    bomb(
        "a driver's log of distinct processes",
        format!("{header}{}", log.replace("GPU-", "GPU-0, ").replace(", python", "")).as_bytes(),
    );
}

/// Names of sources are told apart, and each curve looked at, in time that grows with the number of files.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_of_many_logs() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..10_000 {
        std::fs::write(folder.path().join(format!("{number}.log")), "step 1 memory_allocated: 5 GB\n")
            .unwrap();
    }
    withstand("a folder of logs", folder.path());
}

/// What one event names is shown with each allocation.
#[cfg(target_os = "linux")]
#[test]
fn long_names_and_deep_stacks_of_many_allocations() {
    let memory = |count: usize| -> String {
        let event = |number: usize| {
            format!(
                "{{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":50000,\
                 \"args\":{{\"Device Type\":1,\"Device Id\":0,\"Addr\":{},\"Bytes\":512}}}},\n",
                (number + 1) * 512
            )
        };
        (0..count).map(event).collect()
    };
    let slice = |cat: &str, name: &str, start: usize| {
        let end = 200_000 - 2 * start;
        format!(
            "{{\"ph\":\"X\",\"cat\":\"{cat}\",\"name\":\"{name}\",\"pid\":1,\"tid\":1,\"ts\":{start},\"dur\":{end}}},\n"
        )
    };
    let trace = |slices: String, count: usize| [TRACE, slices.as_bytes(), memory(count).as_bytes()].concat();
    let long = "z".repeat(1_000_000);
    bomb("an op of a long name", &trace(slice("cpu_op", &long, 1), 3000));
    let calls = (1..10).map(|start| slice("python_function", &format!("{long}.py(3): f"), start)).collect();
    bomb("calls of long names", &trace(calls, 3000));
    let calls = |name: &str| -> String {
        (1..10_000)
            .map(|start| slice("python_function", &name.replace('#', &start.to_string()), start))
            .collect()
    };
    bomb("calls within calls", &trace(calls("train.py(#): f"), 3000));
    bomb("modules within modules", &trace(calls("nn.Module: M#"), 3000));
}

#[cfg(target_os = "linux")]
#[test]
fn text_that_nests() {
    const MANY: usize = 2_000_000;
    let event =
        |args: String| format!("{{\"traceEvents\": [{{\"ph\": \"X\", \"name\": \"a\", \"args\": {args}");
    bomb("arrays", "[".repeat(MANY).as_bytes());
    bomb("objects", "{\"a\":".repeat(MANY).as_bytes());
    bomb("args of arrays", event("[".repeat(MANY)).as_bytes());
    bomb("args of objects", event("{\"a\":".repeat(MANY)).as_bytes());
    bomb("events in events", "{\"traceEvents\": [".repeat(MANY / 10).as_bytes());
    bomb("quotes", event("\"".repeat(MANY)).as_bytes());
    bomb(
        "events of nothing but a beginning",
        format!("{}{}", "{\"traceEvents\": [", "{\"ph\":\"X\",\"name\":\"".repeat(MANY / 10)).as_bytes(),
    );
    bomb("backslashes", event("\"\\".repeat(MANY)).as_bytes());
    // Found by mutations: each list that ended early became a document, and each document moved all the bytes behind it.
    bomb("a document behind a document", "{\"traceEvents\": []}\n".repeat(MANY / 8).as_bytes());
    let slice = "\n  {\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1\n  }";
    let document = format!("{{\"traceEvents\": [{slice},{slice}]}}\n");
    bomb("a document of two events behind another", document.repeat(MANY / 80).as_bytes());
    let xml = "<?xml version=\"1.0\" ?><nvidia_smi_log><gpu id=\"0\"><fb_memory_usage><used>5 MiB</used>";
    bomb("elements", format!("{xml}{}", "<a>".repeat(MANY)).as_bytes());
    let entities = format!("<!DOCTYPE x [<!ENTITY a \"{}\">]>", "&b;".repeat(1000));
    bomb("entities", xml.replace("<nvidia", &format!("{entities}<nvidia")).as_bytes());
}

/// A short text with its opcode.
fn short(text: &str) -> Vec<u8> {
    [&[0x8c, text.len() as u8], text.as_bytes()].concat()
}

/// What is large and stands in a pickle once but is named in it a thousand times would be gone through each time.
#[cfg(target_os = "linux")]
#[test]
fn pickles_that_name_something_large_again_and_again() {
    const MANY: usize = 30_000;
    let event = |action: &str, rest: &[u8]| {
        [
            b"}(",
            &short("action")[..],
            &short(action),
            &short("addr"),
            b"K\x01",
            &short("size"),
            b"K\x01",
            rest,
            b"u",
        ]
        .concat()
    };
    let traces = |of: &[u8]| [PICKLE, b"}", &short("device_traces"), b"](", of, b"es."].concat();
    let alloc = event("alloc", b"");

    let shared = [b"]\x94(", &alloc.repeat(MANY)[..], b"e", &b"h\x00".repeat(MANY)].concat();
    bomb("a trace of many devices", &traces(&shared));

    let block =
        [b"}(", &short("size")[..], b"K\x01", &short("state"), &short("active_allocated"), b"u"].concat();
    let segment = [b"}(", &short("total_size")[..], b"K\x01", &short("blocks"), b"h\x00u"].concat();
    let segments = [
        PICKLE,
        b"]\x94(",
        &block.repeat(MANY),
        b"e0}",
        &short("segments"),
        b"](",
        &segment.repeat(MANY),
        b"es.",
    ];
    bomb("blocks of many segments", &segments.concat());

    let frames = [&short("frames")[..], b"h\x00"].concat();
    let numbers = [b"]\x94(", &b"K\x01".repeat(1_000_000)[..], b"e0"].concat();
    let with_frames = traces(&[b"](", &event("alloc", &frames).repeat(MANY)[..], b"e"].concat());
    bomb("frames that are none", &[PICKLE, &numbers, &with_frames[2..]].concat());

    let items = [short("a"), b"K\x01".to_vec()].concat().repeat(300_000);
    let dict = [b"}\x94(", &items[..], b"u0]"].concat();
    bomb("a large dict in a list", &[PICKLE, &dict, &b"h\x00a".repeat(300_000), b"."].concat());

    let actions: Vec<u8> = (0..200_000).flat_map(|number| event(&format!("a{number}"), b"")).collect();
    bomb("actions that nobody knows", &traces(&[b"](", &actions[..], b"e"].concat()));
    let stream = |number: u32| [&short("stream")[..], b"J", &number.to_le_bytes()].concat();
    let streams: Vec<u8> = (0..200_000).flat_map(|number| event("alloc", &stream(number))).collect();
    bomb("as many streams as events", &traces(&[b"](", &streams[..], b"e"].concat()));
    let free = [&short("device_free")[..], b"K\x01"].concat();
    bomb(
        "out of memory all the time",
        &traces(&[b"](", &event("oom", &free).repeat(100_000)[..], b"e"].concat()),
    );

    bomb("marks between numbers", &[PICKLE, &b"(N".repeat(3_000_000)[..]].concat());
    bomb("dicts", &[PICKLE, &b"}".repeat(50_000_000)[..]].concat());
    bomb("memo entries", &[PICKLE, b"]", &b"\x94".repeat(50_000_000)[..]].concat());
}

/// Found by the fuzz target `snapshot`: sums of sizes that no device has.
#[test]
fn sizes_and_times_beyond_all_devices_can_be_summed() {
    let most = b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
    let field = |name: &str| [&short(name)[..], most].concat();
    let block = |state: &str| {
        [
            b"}(",
            &field("size")[..],
            &field("requested_size"),
            &field("address"),
            &short("state"),
            &short(state),
            b"u",
        ]
        .concat()
    };
    let blocks =
        [block("active_allocated"), block("active_pending_free"), block("inactive")].concat().repeat(3);
    let segment =
        [b"}(", &field("address")[..], &field("total_size"), &short("blocks"), b"](", &blocks, b"eu"]
            .concat();
    let event = |action: &str| {
        [b"}(", &short("action")[..], &short(action), &field("addr"), &field("size"), &field("time_us"), b"u"]
            .concat()
    };
    let events: Vec<u8> =
        ["alloc", "alloc", "segment_alloc", "segment_map", "oom", "free_requested", "snapshot"]
            .iter()
            .flat_map(|action| event(action))
            .collect();
    let pickle = [
        PICKLE,
        b"}(",
        &short("segments"),
        b"](",
        &segment.repeat(3),
        b"e",
        &short("device_traces"),
        b"](](",
        &events,
        b"eeu.",
    ]
    .concat();
    assert!(super::open_and_report(pickle), "it is a snapshot");
}
