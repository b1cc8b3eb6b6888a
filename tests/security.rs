//! Files that mean harm: names that are formulas, markup or control codes, names of files that must not be opened, SQL
//! that would read or write files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{root, sample};

/// A name that is a formula, markup, a link, a row of a table and a control code of a terminal at once.
const HOSTILE: &str = "=cmd|' /C calc'!A0<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3)) `y` \
                       @all | \u{1b}]0;owned\u{7}\u{1b}[2J\n# z";

fn run(arguments: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramscope"));
    let (first, rest) = arguments.split_first().expect("a command");
    command.arg(first).args(files).args(rest).stdin(Stdio::null());
    command.output().expect("it starts")
}

fn text(arguments: &[&str], files: &[&Path]) -> String {
    let output = run(arguments, files);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A run whose every name is hostile: its file, ops, functions, annotations, modules and devices.
fn hostile_run(folder: &Path) -> [PathBuf; 2] {
    let slice = |category: &str, name: &str, ts: i64, dur: i64| {
        json!({"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur,
               "args": {"Python id": ts, "Python parent id": null, "Module Hierarchy": HOSTILE}})
    };
    let mut events = vec![
        json!({"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": HOSTILE}}),
        json!({"ph": "M", "name": "thread_name", "pid": 7, "tid": 7, "args": {"name": HOSTILE}}),
        slice("python_function", &format!("{HOSTILE}.py(3): {HOSTILE}"), 1, 9000),
        slice("python_function", &format!("nn.Module: {HOSTILE}_0"), 2, 8000),
    ];
    for step in 0..8 {
        let ts = 100 + step * 1000;
        events.push(slice("user_annotation", &format!("{HOSTILE}#{step}"), ts, 900));
        events.push(slice("cpu_op", HOSTILE, ts + 10, 500));
        events.push(
            json!({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7,
            "ts": ts + 20, "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096 + step * 1_048_576,
            "Bytes": 1_048_576, "Total Allocated": (step + 1) * 1_048_576, "Total Reserved": 20_971_520}}),
        );
    }
    let trace = json!({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": HOSTILE, "totalGlobalMem": 1 << 30}],
        "traceName": HOSTILE, "traceEvents": events});
    // A slash is the one thing that a name can't hold.
    let trace_path = folder.join(format!("{}.json", HOSTILE.replace('/', ":")));
    std::fs::write(&trace_path, trace.to_string()).unwrap();
    let log_path = folder.join("=1+1.csv");
    let log = format!(
        "timestamp, index, name, memory.used [MiB]\n2026/12/01 06:58:28.586, 0, {}, 5 MiB\n",
        HOSTILE.replace(['\n', ','], " ")
    );
    std::fs::write(&log_path, log).unwrap();
    [trace_path, log_path]
}

#[cfg(unix)]
#[test]
fn hostile_names_are_text_wherever_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let files = hostile_run(folder.path());
    let files = [files[0].as_path(), files[1].as_path()];

    for format in ["html", "md"] {
        let mut report = text(&["report", "--format", format, "--all"], &files);
        // The command stands in a fenced block, where markup is text.
        if let Some((before, _)) = report.split_once("\n```sh\n").filter(|_| format == "md") {
            report = before.to_owned();
        }
        assert!(report.contains("calc"), "the names are there");
        for bad in ["<script", "<img", "](javascript", "`y`", "@all", "\u{1b}", "\u{7}", "\n# z"] {
            // These mean nothing to a browser.
            let is_text = format == "html" && !bad.starts_with(['<', '\u{1b}', '\u{7}']);
            assert!(is_text || !report.contains(bad), "{bad:?} in {format}");
        }
    }
    serde_json::from_str::<serde_json::Value>(&text(&["report", "--format", "json", "--all"], &files))
        .unwrap();

    let tables = ["allocations", "events", "ops", "samples", "steps", "segments", "stacks"];
    let mut tables: Vec<String> =
        tables.iter().map(|table| text(&["export", "--table", table, "--format", "csv"], &files)).collect();
    tables.push(text(&["report", "--format", "csv"], &files));
    tables
        .push(text(&["query", "SELECT op, call_site, process FROM allocations", "--format", "csv"], &files));
    let mut guarded = 0;
    for table in tables {
        for row in csv::Reader::from_reader(table.as_bytes()).records() {
            for cell in &row.unwrap() {
                let is_formula = cell.trim_start_matches(' ').starts_with(['=', '+', '-', '@', '\t', '\r']);
                assert!(!is_formula || cell.parse::<f64>().is_ok(), "{cell:?}");
                guarded += u32::from(cell.starts_with("'="));
            }
        }
    }
    assert!(guarded > 8, "{guarded} cells held formulas");
    let sql = "SELECT '＝1' AS \"=1+1\", '\u{feff}=1' AS \"＠A\", '\u{200b}+A' AS \"-1\" FROM steps LIMIT 1";
    let guarded = text(&["query", sql, "--format", "csv"], &files);
    assert_eq!(guarded, "'=1+1,'＠A,-1\n'＝1,'\u{feff}=1,'\u{200b}+A\n");

    let terminals = [
        text(&["inspect"], &files),
        text(&["query", "SELECT op, call_site, process FROM allocations"], &files),
        text(&["compare", "--format", "text"], &[files[0], files[1]]),
        String::from_utf8(run(&["inspect"], &[&folder.path().join("\u{1b}[2J none")]).stderr).unwrap(),
    ];
    for text in terminals {
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

/// A file that is named inside another is never opened: opening a pipe that nobody writes to would block.
#[cfg(unix)]
#[test]
fn files_that_are_named_inside_are_never_opened() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("train.py");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let pickle = std::fs::read(root().join("tests/fixtures/snapshots/modern_protocol_0.pickle")).unwrap();
    let pickle =
        String::from_utf8(pickle).unwrap().replace("/home/ann/train.py", &pipe.display().to_string());
    let path = folder.path().join("snapshot.pickle");
    std::fs::write(&path, pickle).unwrap();
    for format in ["html", "md", "json", "csv"] {
        let started = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_vramscope"))
            .args(["report", "--format", format, "-o", "/dev/null"])
            .arg(&path)
            .spawn()
            .unwrap();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > Duration::from_secs(30) {
                child.kill().unwrap();
                panic!("{format}: it waits for the pipe");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn sql_reads_and_writes_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.csv");
    std::fs::write(&secret, "word\nhunter2\n").unwrap();
    let snapshot = root().join("tests/fixtures/snapshots/modern_protocol_0.pickle");
    let path = secret.display();
    for sql in [
        format!("SELECT * FROM read_csv('{path}')"),
        format!("SELECT * FROM Read_CSV('{path}') AS t"),
        format!("SELECT * FROM \"read_csv\"('{path}')"),
        format!("SELECT * FROM `read_csv`('{path}')"),
        format!("SELECT * FROM read_parquet('{path}')"),
        format!("SELECT * FROM read_ipc('{path}')"),
        format!("SELECT * FROM read_json('{path}')"),
        format!("SELECT * FROM scan_csv('{path}')"),
        format!("SELECT * FROM glob('{path}')"),
        format!("SELECT * FROM steps, LATERAL read_csv('{path}')"),
        format!("WITH t AS (SELECT * FROM read_csv('{path}')) SELECT * FROM t"),
        format!("SELECT (SELECT word FROM read_csv('{path}')) FROM steps"),
        format!("SELECT * FROM steps UNION SELECT * FROM read_csv('{path}')"),
        format!("SELECT * FROM U&\"\\0072ead_csv\"('{path}')"),
        format!("SELECT * FROM '{path}'"),
        format!("SELECT 1; SELECT * FROM read_csv('{path}')"),
        format!("EXPLAIN SELECT * FROM read_csv('{path}')"),
        format!("CREATE TABLE t AS SELECT * FROM read_csv('{path}')"),
        format!("COPY steps TO '{path}'"),
        format!("INSERT INTO '{path}' SELECT * FROM steps"),
        format!("DELETE FROM '{path}'"),
        format!("LOAD '{path}'"),
    ] {
        let output = run(&["query", &sql], &[&snapshot]);
        assert_eq!(output.status.code(), Some(1), "{sql}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!errors.contains("panicked") && errors.lines().count() == 1, "{sql}: {errors}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("hunter2"), "{sql}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "word\nhunter2\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Such queries would fill the stack or the memory, or make polars panic: each is refused in a sentence.
#[test]
fn sql_that_would_end_the_program_is_a_sentence() {
    let (tiny, run_folder) =
        (root().join("tests/fixtures/snapshots/modern_protocol_0.pickle"), sample("healthy"));
    let many = |part: &str, between: &str, count| vec![part; count].join(between);
    let nested = |before: &str, after: &str, count| before.repeat(count) + "step" + &after.repeat(count);
    let doubled: Vec<String> = (1..30)
        .map(|level| format!("t{level} AS (SELECT * FROM t{0} UNION ALL SELECT * FROM t{0})", level - 1))
        .collect();
    let rows = "rows: join ON columns that tell the rows apart";
    let terms = "the query has too many terms";
    let parts = "the query has more than 400 tables";
    let gave_up = "polars gave up on this query";
    for (sql, why) in [
        (format!("SELECT {} FROM steps", many("step", "+", 20_000)), terms),
        (format!("SELECT * FROM steps WHERE {}", many("step = 1", " OR ", 3_000)), terms),
        (format!("SELECT {} FROM steps", nested("(NOT ", ")", 40)), terms),
        (format!("SELECT {} FROM steps", nested("SUBSTR(", ", 2, 3)", 40)), terms),
        (format!("SELECT {} FROM steps", nested("NULLIF(", ", 7)", 12)), terms),
        (format!("SELECT {} FROM steps", nested("", " BETWEEN 1 AND 2", 400)), terms),
        (format!("SELECT {} FROM steps", nested("CASE ", " WHEN 1 THEN 2 WHEN 3 THEN 4 WHEN 5 THEN 6 END", 12)), terms),
        (format!("SELECT '{}'", many("x", "", 125_000)), "the query is longer than"),
        (many("SELECT step FROM steps", " UNION ALL ", 2_000), parts),
        (many("VALUES (1)", " UNION ALL ", 4_000), parts),
        (format!("WITH t0 AS (SELECT * FROM steps), {} SELECT COUNT(*) FROM t29", doubled.join(", ")), parts),
        ("SELECT COUNT(*) FROM allocations a CROSS JOIN allocations b".to_owned(), rows),
        ("SELECT COUNT(*) FROM allocations a, allocations b, allocations c".to_owned(), rows),
        ("SELECT COUNT(*) FROM allocations a JOIN allocations b ON a.device = b.device".to_owned(), rows),
        ("SELECT COUNT(*) FROM allocations a JOIN allocations b ON a.alloc_ns < b.alloc_ns".to_owned(), rows),
        (
            "SELECT COUNT(*) FROM allocations a LEFT JOIN allocations b ON a.device = b.device AND a.step <= b.step"
                .to_owned(),
            rows,
        ),
        ("SELECT COUNT(*) FROM steps a, steps b, steps c, steps d, steps e, steps f".to_owned(), rows),
        ("SELECT RPAD('x', 2000000000, 'y') FROM steps".to_owned(), "RPAD could fill the memory"),
        ("SELECT \"lpad\"(op, step) FROM allocations".to_owned(), "LPAD could fill the memory"),
        ("SELECT STRING_AGG(op, ',') OVER () FROM allocations".to_owned(), "STRING_AGG … OVER could"),
        (
            format!("SELECT REPLACE(REPLACE(op, 'a', '{0}'), 'a', '{0}') FROM steps", many("a", "", 20)),
            "REPLACE puts in",
        ),
        ("SELECT REPLACE(op, '.', stack) FROM allocations".to_owned(), "REPLACE puts in"),
        ("SELECT COLUMNS('(') FROM steps".to_owned(), gave_up),
        ("SELECT STRFTIME(CAST(9223372036854775807 AS TIMESTAMP), '%Y')".to_owned(), gave_up),
        ("SELECT CAST(9223372036854775807 AS TIMESTAMP)".to_owned(), gave_up),
        ("SELECT CAST('9999999-99-99' AS DATE)".to_owned(), "the query can't be answered"),
    ] {
        // Only joins need rows.
        let output = run(&["query", &sql], &[if why == rows { &run_folder } else { &tiny }]);
        let errors = String::from_utf8_lossy(&output.stderr);
        let sql: String = sql.chars().take(80).collect();
        assert_eq!(output.status.code(), Some(1), "{sql}: {errors}");
        let is_sentence = errors.starts_with("vramscope: ") && errors.lines().count() == 1;
        assert!(is_sentence && errors.contains(why), "{sql}: {errors}");
    }
}

/// What people ask is far from those bounds.
#[test]
fn sql_of_hundreds_of_terms_and_of_joins_is_answered() {
    let folder = sample("healthy");
    let numbers: Vec<String> = (0..15_000).map(|number| number.to_string()).collect();
    let steps = |between: &str, term: &str, count| vec![term; count].join(between);
    let count = |sql: &str| {
        let answer = text(&["query", sql, "--format", "csv"], &[&folder]);
        answer
            .lines()
            .nth(1)
            .and_then(|line| line.parse::<u64>().ok())
            .unwrap_or_else(|| panic!("{sql}: {answer}"))
    };
    let of = |table: &str| count(&format!("SELECT COUNT(*) FROM {table}"));
    let (allocations, of_steps) = (of("allocations"), of("steps"));
    assert!(allocations * of_steps > 100_000 && allocations * allocations > 100_000_000);
    for (sql, expected) in [
        (format!("SELECT COUNT(*) FROM steps WHERE {}", steps(" OR ", "step >= 0", 500)), of_steps),
        (format!("SELECT {} FROM steps WHERE step = 1", steps("+", "step", 500)), 500),
        (format!("SELECT COUNT(*) FROM steps WHERE step IN ({})", numbers.join(",")), of_steps),
        (format!("SELECT COUNT(*) FROM ({}) t", steps(" UNION ALL ", "SELECT * FROM steps", 50)), 50 * of_steps),
        (
            "SELECT COUNT(*) FROM allocations a JOIN stacks s ON a.process = s.process AND a.stack_id = s.stack_id"
                .to_owned(),
            count("SELECT COUNT(stack_id) FROM allocations"),
        ),
        (
            "SELECT COUNT(*) FROM allocations a CROSS JOIN (SELECT SUM(size_bytes) AS total FROM allocations) t"
                .to_owned(),
            allocations,
        ),
        (
            "SELECT COUNT(*) FROM allocations a JOIN steps s ON a.alloc_ns >= s.start_ns AND a.alloc_ns < s.end_ns"
                .to_owned(),
            count("SELECT COUNT(step) FROM allocations"),
        ),
        ("SELECT LENGTH(REPLACE(REPLACE('a.b', '.', '::'), 'b', 'bcd'))".to_owned(), 6),
    ] {
        let shown: String = sql.chars().take(80).collect();
        assert_eq!(count(&sql), expected, "{shown}");
    }
}
