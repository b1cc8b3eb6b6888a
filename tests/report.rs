//! Reports of the leak sample in every format: the contract, what stands in them, and what must not.

use std::path::Path;

use vramscope::analysis::{FreeBy, GroupBy, Index, Query, Selection};
use vramscope::model::TimeRange;
use vramscope::report::{self, Format, Options, Redactor, Replacement, Report};

use crate::cli::done;
use crate::support::{open_index, root, sample};

/// The formats that are read as text.
const TEXTS: [Format; 5] = [Format::Html, Format::Markdown, Format::Json, Format::Csv, Format::Svg];

fn leak() -> Index {
    open_index(&sample("val_without_no_grad"))
}

fn build(index: &Index, options: &Options) -> Report {
    let steps = &index.session.processes[0].steps;
    let start_of = |number: i64| {
        steps.iter().find(|step| step.number == number).expect("the sample has this step").range.start_ns
    };
    let query = Query {
        selection: Selection::default(),
        range: TimeRange::new(start_of(8), start_of(16)),
        free_by: FreeBy::RecordingEnd,
    };
    report::build(index, &query, GroupBy::CallSite, options)
}

fn text(report: &Report, format: Format) -> String {
    let mut bytes = Vec::new();
    report::render(report, format, &mut bytes).expect("every report can be written");
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn json_is_what_its_schema_says() {
    let schema: serde_json::Value =
        serde_json::from_slice(&std::fs::read(root().join("docs/report.schema.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let index = leak();
    for options in [Options::default(), Options { redact: true, all_allocations: true, ..Options::default() }]
    {
        let json = text(&build(&index, &options), Format::Json);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
    let mut value = serde_json::to_value(build(&index, &Options::default())).unwrap();
    value["survivors"]["recording_end"]["bytes"] = "many".into();
    assert!(!validator.is_valid(&value), "the schema tells right from wrong");
}

#[test]
fn every_format_says_what_is_kept_and_where() {
    let report =
        build(&leak(), &Options { command: Some("vramscope report run".to_owned()), ..Options::default() });
    assert_eq!(
        report.summary,
        "vramscope found 573.8 MiB not freed by the end of the recording in steps 8 to 15, most of it at \
         record.py:63 validate"
    );
    assert_eq!(
        (report.survivors.recording_end.count, report.survivors.recording_end.bytes),
        (244, 601_661_440)
    );
    assert_eq!((report.survivors.range_end.count, report.survivors.range_end.bytes), (431, 769_644_840));
    for format in TEXTS.into_iter().filter(|&format| format != Format::Svg) {
        let text = text(&report, format);
        assert!(text.contains("record.py:63 validate"), "{format:?}");
    }
    let svg = text(&report, Format::Svg);
    assert!(svg.contains("allocated, cuda:0") && svg.contains(">step</text>"));
    assert!(!report.driver.is_empty());
    for format in [Format::Html, Format::Markdown] {
        assert!(text(&report, format).contains("What the driver counts"), "{format:?}");
    }
    let html = text(&report, Format::Html);
    assert!(html.contains("601,661,440 B") && html.contains("vramscope report run") && html.contains("<svg"));
    for outside in ["http:", "https:", "<script", "src=", "url("] {
        let html = html.replace("http://www.w3.org/2000/svg", "");
        assert!(!html.contains(outside), "the page needs nothing from outside: {outside}");
    }
}

#[test]
fn hostile_names_stay_text_in_every_format() {
    let mut report = build(&leak(), &Options::default());
    let hostile = "<script>alert(1)</script>](javascript:alert(2)) | `x` @all\n=1+1";
    report.groups[0].key = hostile.to_owned();
    report.groups[0].ops = vec![hostile.to_owned()];
    report.groups[0].stack = vec![hostile.to_owned()].into();
    report.sources[0].name = hostile.to_owned();
    report.sources[0].warnings = vec![hostile.to_owned()];
    report.summary = hostile.to_owned();
    report.groups[1].key = "=HYPERLINK(\"x\")".to_owned();
    let html = text(&report, Format::Html);
    assert!(!html.contains("<script") && html.contains("&lt;script&gt;"));
    let markdown = text(&report, Format::Markdown);
    for bad in ["<script", "](java", "`x`", "@all"] {
        assert!(!markdown.contains(bad), "{bad}");
    }
    let rows = markdown.lines().filter(|line| line.starts_with("| <code>&#60;script")).count();
    assert!(rows > 0, "a name with a line break stays one row of a table");
    let csv = text(&report, Format::Csv);
    assert!(csv.contains("\"'=HYPERLINK(\"\"x\"\")\""), "{csv}");
}

#[test]
fn redaction_leaves_no_original() {
    let index = leak();
    let plain = build(&index, &Options { all_allocations: true, ..Options::default() });
    let redacted = build(&index, &Options { all_allocations: true, redact: true, ..Options::default() });
    let session = &index.session;
    let mut originals: Vec<String> = session.sources.iter().map(|source| source.name.clone()).collect();
    originals.extend(session.sources.iter().map(|source| source.path.display().to_string()));
    originals.extend(
        session.sources.iter().flat_map(|source| &source.recording.devices).map(|device| device.uuid.clone()),
    );
    originals.extend(session.curves().map(|(_, _, series, _)| series.process_name.clone()));
    let folders =
        plain.allocations.iter().flat_map(|allocation| allocation.stack.iter()).filter_map(|line| {
            let (file, _) = line.split_once(':')?;
            Some(Path::new(file).parent()?.display().to_string())
        });
    originals.extend(folders.filter(|folder| folder.starts_with('/')));
    originals.retain(|original| !original.is_empty() && !original.starts_with('['));
    originals.sort();
    originals.dedup();
    assert!(originals.len() > 8, "{originals:?}");
    for format in TEXTS {
        let text = text(&redacted, format);
        for original in &originals {
            assert!(!text.contains(original.as_str()), "{original} is still there in {format:?}");
        }
    }
    // What it is for is still there.
    assert_eq!(redacted.groups[0].key, "record.py:63 validate");
    assert_eq!(redacted.survivors, plain.survivors);
    assert!(redacted.groups[0].stack.iter().any(|line| line.starts_with("site-packages/torch/")));
}

#[test]
fn code_is_redacted_on_request() {
    let index = leak();
    let redacted = build(&index, &Options { redact_code: true, ..Options::default() });
    let key = &redacted.groups[0].key;
    assert!(key.starts_with("file-") && key.contains(".py:63 function-"), "{key}");
    for format in TEXTS {
        let text = text(&redacted, format);
        for original in ["record.py", "validate", "DeepLabV3"] {
            assert!(!text.contains(original), "{original} is still there in {format:?}");
        }
    }
    let pairs = report::redactions(&index, true);
    assert!(pairs.iter().any(|pair| pair.original == "record.py:63 validate" && pair.word == *key));
}

const TRACE: &str = r#"{"traceEvents": [
{"ph":"X","cat":"user_annotation","name":"acme_warmup","pid":7,"tid":7,"ts":1000,"dur":95},
{"ph":"X","cat":"cpu_op","name":"acme::secret_kernel","pid":7,"tid":7,"ts":1001,"dur":20},
{"ph":"X","cat":"cpu_op","name":"SecretFunctionBackward","pid":7,"tid":7,"ts":1030,"dur":20},
{"ph":"X","cat":"cpu_op","name":"aten::relu","pid":7,"tid":7,"ts":1060,"dur":20},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1002,"args":{"Addr":4096,"Bytes":512,"Device Id":0,"Device Type":1,"Total Allocated":512,"Total Reserved":2097152}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1032,"args":{"Addr":8192,"Bytes":512,"Device Id":0,"Device Type":1,"Total Allocated":1024,"Total Reserved":2097152}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":1062,"args":{"Addr":12288,"Bytes":512,"Device Id":0,"Device Type":1,"Total Allocated":1536,"Total Reserved":2097152}}
]}"#;

/// A report of the whole session, redacted, and its preview.
fn redacted(index: &Index, with_code: bool) -> (Report, String) {
    let query =
        Query { selection: Selection::default(), range: index.session.span, free_by: FreeBy::RecordingEnd };
    let plain = report::build(index, &query, GroupBy::Op, &Options::default());
    let mut redactor = Redactor::default();
    let report = redactor.redact(plain, index, with_code);
    let preview = report::preview(&report, &redactor.replaced());
    (report, preview)
}

#[test]
fn ops_of_the_users_own_are_redacted_with_the_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    std::fs::write(&path, TRACE).unwrap();
    let index = open_index(&path);
    let (report, preview) = redacted(&index, true);
    for format in TEXTS.into_iter().filter(|&format| format != Format::Svg) {
        let text = text(&report, format);
        for own in ["acme", "secret", "Secret"] {
            assert!(!text.contains(own), "{own} is still there in {format:?}");
        }
        assert!(text.contains("aten::relu") && text.contains("op-1") && text.contains("op-3"), "{format:?}");
    }
    assert!(preview.contains("acme::secret_kernel → op-"), "{preview}");
    assert!(text(&redacted(&index, false).0, Format::Json).contains("acme::secret_kernel"));
}

/// What has a word of its own leaves no name, so it is not listed as a name that stays.
#[test]
fn the_preview_names_nothing_that_was_replaced_as_staying() {
    let (_, preview) = redacted(&leak(), true);
    let staying = preview.split("Still told").skip(1).collect::<String>();
    assert!(preview.contains("record.py:63 validate → file-"), "{preview}");
    assert!(!staying.contains("file-") && !staying.contains("module-"), "{staying}");
    assert!(!staying.contains("your code"), "{staying}");
}

/// A line of a log may hold anything beside the message.
#[test]
fn quoted_lines_are_redacted_to_their_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.log");
    let log = "step 0 memory_allocated: 1.0 MiB\nstep 1 memory_allocated: 2.0 MiB\n\
               {\"msg\":\"CUDA out of memory. Tried to allocate 20.00 MiB. By acme-job of alice\",\"host\":\"gpu-node-17\",\
               \"user\":\"alice\",\"run\":\"acme-secret\"}\n";
    std::fs::write(&path, log).unwrap();
    let (report, preview) = redacted(&open_index(&path), false);
    for format in TEXTS {
        let text = text(&report, format);
        for name in ["gpu-node-17", "alice", "acme"] {
            assert!(!text.contains(name), "{name} is still there in {format:?}");
        }
    }
    assert!(text(&report, Format::Markdown).contains("out of memory (tried to allocate 20.00 MiB)"));
    assert!(preview.contains("→ out of memory (tried to allocate 20.00 MiB)"), "{preview}");
}

#[test]
fn the_preview_lists_every_name_and_none_of_them_leaves() {
    let index = leak();
    let mut redactor = Redactor::default();
    let plain = build(&index, &Options { all_allocations: true, ..Options::default() });
    let redacted = redactor.redact(plain.clone(), &index, false);
    let replaced = redactor.replaced();
    for kind in ["file", "folder", "program"] {
        assert!(replaced.iter().any(|replacement| replacement.kind == kind), "{kind}: {replaced:#?}");
    }
    let preview = report::preview(&redacted, &replaced);
    let plain_json = text(&plain, Format::Json);
    for Replacement { original, word, .. } in &replaced {
        assert!(preview.contains(&format!("{original} → {word}")));
        let as_json = serde_json::to_string(original).unwrap();
        assert!(plain_json.contains(as_json.trim_matches('"')), "{original} stood in the report");
        for format in TEXTS {
            assert!(!text(&redacted, format).contains(original.as_str()), "{original} left in {format:?}");
        }
    }
    assert!(preview.contains("record.py:63 validate"), "what still leaves is named");
}

#[test]
fn an_older_report_survives_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    std::fs::write(&path, "older").unwrap();
    let report = build(&leak(), &Options::default());
    assert!(report::write(&report, Format::Html, &folder.path().join("no/such/folder.html")).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "older");
    report::write(&report, Format::Html, &path).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// A picture shows the view that it is asked for, and is the same picture in both formats.
#[test]
fn pictures_show_the_view() {
    let mut report = build(&leak(), &Options::default());
    let whole = text(&report, Format::Svg);
    report.view = Some(TimeRange::new(report.range.start_ns, report.range.end_ns));
    let view = text(&report, Format::Svg);
    assert_ne!(whole, view);
    let edges = |svg: &str| -> Vec<f64> {
        let x = |part: &str| part.split('"').next()?.parse().ok();
        svg.split("class=\"edge\" x1=\"").skip(1).filter_map(x).collect()
    };
    assert_eq!(edges(&view), [78.0, 988.0], "the range fills the picture");
    assert!(edges(&whole)[0] > 78.0 && edges(&whole)[1] < 988.0);
    let mut png = Vec::new();
    report::render(&report, Format::Png, &mut png).unwrap();
    let image = image::load_from_memory(&png).unwrap().into_rgb8();
    assert_eq!(image.width(), 2000);
    let has = |rgb: [u8; 3]| image.pixels().filter(|pixel| pixel.0 == rgb).count();
    for curve in [[0x2f, 0x7d, 0xe1], [0xd9, 0x73, 0x1a]] {
        assert!(has(curve) > 1000, "{curve:?}: {}", has(curve));
    }
}

/// The fixture's first steps are lost: a headline that adds up the rest must say so.
#[test]
fn a_range_whose_beginning_is_lost_says_so_in_the_summary() {
    let Some(folder) = crate::support::recording("ring_truncated") else { return };
    let folder = folder.display().to_string();
    let summary = |from: &str| {
        let text = done(&["report", &folder, "--from", from, "--to", "step:58", "--format", "json"]);
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["summary"].as_str().unwrap().to_owned()
    };
    assert!(summary("step:8").contains("the events of 52 steps are lost"), "{}", summary("step:8"));
    assert!(!summary("step:54").contains("lost"), "{}", summary("step:54"));
}

#[test]
fn an_error_without_figures_has_none_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("train.log");
    let line = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB";
    std::fs::write(
        &log,
        format!("step 1 memory_allocated: 691.6 MiB\nstep 2 memory_allocated: 691.6 MiB\n{line}\n"),
    )
    .unwrap();
    let text = done(&["report", &log.display().to_string(), "--format", "md"]);
    assert!(text.contains("20.00 MiB were asked for") && !text.contains("with 0 B"), "{text}");
}

/// The figures of half a run look like those of a whole one.
#[test]
fn a_file_that_ends_early_is_told_in_the_first_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(root().join("tests/fixtures/snapshots/modern_protocol_5.pickle")).unwrap();
    let summary = |length: usize| {
        let path = folder.path().join("run.pickle");
        std::fs::write(&path, &whole[..length]).unwrap();
        let text = done(&["report", &path.display().to_string(), "--format", "md"]);
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert!(!summary(whole.len()).contains("ends early"));
    let cut = summary(whole.len() - 20);
    assert!(cut.contains("run.pickle ends early"), "{cut}");
}
