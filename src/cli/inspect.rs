//! `vramscope inspect`: what each file is.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use super::args::{InspectArgs, TextFormat};
use super::{Status, open, output};
use crate::analysis::Index;
use crate::import::shown_path;
use crate::model::time::{format_duration, format_unix};
use crate::model::{Clock, Source, TimeRange, format_bytes, format_count};
use crate::report::{self, printable};
use crate::text::{say, t};

/// The version of the JSON contract.
const SCHEMA: &str = "vramscope.inspect/1";

#[derive(Serialize)]
struct Inspection {
    schema: &'static str,
    version: &'static str,
    files: Vec<File>,
    processes: Vec<Process>,
    links: Vec<report::Link>,
    first_ns: i64,
    last_ns: i64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum File {
    Read(Box<ReadFile>),
    NotRead { path: String, error: String, skipped: bool },
}

#[derive(Serialize)]
struct ReadFile {
    path: String,
    #[serde(flatten)]
    source: report::Source,
    allocations: u64,
    steps: u64,
    lost_first_at: Option<u64>,
    pid: Option<u64>,
    rank: Option<u32>,
    world_size: Option<u32>,
    devices: Vec<DeviceFacts>,
    facts: Vec<(String, String)>,
}

#[derive(Serialize)]
struct DeviceFacts {
    device: String,
    name: String,
    total_bytes: Option<u64>,
    uuid: String,
}

#[derive(Serialize)]
struct Process {
    name: String,
    rank: Option<u32>,
    pid: Option<u64>,
    sources: Vec<String>,
    allocations: u64,
    steps: u64,
    first_step: Option<i64>,
    last_step: Option<i64>,
    step_name: String,
    first_ns: i64,
    last_ns: i64,
    has_snapshot: bool,
}

pub(super) fn run(args: &InspectArgs) -> anyhow::Result<Status> {
    let loaded = open::open(&args.inputs.files, &args.inputs.reading)?;
    let inspection = inspect(&loaded);
    let text = match args.format {
        TextFormat::Json => serde_json::to_string_pretty(&inspection)? + "\n",
        TextFormat::Text => printable(&to_text(&inspection)).into_owned(),
    };
    output::print(text.as_bytes())?;
    loaded.complain()
}

fn inspect(loaded: &open::Loaded) -> Inspection {
    let index = &loaded.index;
    let session = &index.session;
    let mut files: Vec<File> =
        session.sources.iter().map(|source| File::Read(Box::new(read_file(index, source)))).collect();
    let not_read = |skipped: bool| {
        move |(path, error): &(std::path::PathBuf, crate::import::ImportError)| File::NotRead {
            path: path.display().to_string(),
            error: error.to_string(),
            skipped,
        }
    };
    files.extend(loaded.failed.iter().map(not_read(false)));
    files.extend(loaded.skipped.iter().map(not_read(true)));
    Inspection {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        files,
        processes: session.processes.iter().map(|process| self::process(index, process)).collect(),
        links: session.links.iter().map(|link| report::link(index, link)).collect(),
        first_ns: session.span.start_ns,
        last_ns: last_ns(session.span),
    }
}

fn last_ns(range: TimeRange) -> i64 {
    range.end_ns.saturating_sub(1).max(range.start_ns)
}

fn read_file(index: &Index, source: &Source) -> ReadFile {
    let recording = &source.recording;
    let steps = source.process.zip(source.span()).map_or(0, |(id, span)| {
        index.session.process(id).steps.iter().filter(|step| span.contains(step.range.start_ns)).count()
    });
    ReadFile {
        path: source.path.display().to_string(),
        source: report::source(index, source),
        allocations: recording.allocations.len() as u64,
        steps: steps as u64,
        lost_first_at: recording.lost.first_at,
        pid: recording.process.pid,
        rank: recording.process.rank,
        world_size: recording.process.world_size,
        devices: recording
            .devices
            .iter()
            .map(|info| DeviceFacts {
                device: info.device.to_string(),
                name: info.name.clone(),
                total_bytes: info.total_bytes,
                uuid: info.uuid.clone(),
            })
            .collect(),
        facts: recording.facts.clone(),
    }
}

fn process(index: &Index, process: &crate::model::Process) -> Process {
    let name_of = |id: &crate::model::SourceId| index.session.source(*id).name.clone();
    Process {
        name: process.label.clone(),
        rank: process.rank,
        pid: process.pid,
        sources: process.sources.iter().map(name_of).collect(),
        allocations: process.allocations.len() as u64,
        steps: process.steps.len() as u64,
        first_step: process.steps.iter().map(|step| step.number).min(),
        last_step: process.steps.iter().map(|step| step.number).max(),
        step_name: process.step_name.clone(),
        first_ns: process.recorded.start_ns,
        last_ns: last_ns(process.recorded),
        has_snapshot: process.has_snapshot,
    }
}

fn to_text(inspection: &Inspection) -> String {
    let mut text = String::new();
    for file in &inspection.files {
        match file {
            File::Read(file) => file_text(&mut text, file),
            File::NotRead { path, error, skipped: false } => {
                line(&mut text, &shown_path(Path::new(path)), &[t!("not opened"), error]);
            }
            File::NotRead { .. } => {}
        }
    }
    for process in &inspection.processes {
        let mut facts = vec![allocations(process.allocations)];
        if let (Some(first), Some(last)) = (process.first_step, process.last_step) {
            facts.push(t!(
                "{steps} {first} to {last} ({name})",
                steps = steps(process.steps),
                first,
                last,
                name = process.step_name
            ));
        }
        facts.push(t!("in {sources}", sources = process.sources.join(t!(" and "))));
        line(&mut text, &process.name, &facts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for link in &inspection.links {
        let _ = writeln!(
            text,
            "{}",
            t!(
                "{matched} of {all} allocations of {trace} found in {snapshot}",
                matched = format_count(link.matched),
                all = format_count(link.allocations),
                trace = link.trace,
                snapshot = link.snapshot
            )
        );
    }
    let skipped: Vec<&str> = inspection
        .files
        .iter()
        .filter_map(|file| match file {
            File::NotRead { path, skipped: true, .. } => Path::new(path).file_name()?.to_str(),
            _ => None,
        })
        .collect();
    if !skipped.is_empty() {
        let _ = writeln!(text, "{}", t!("left out, of no known kind: {names}", names = skipped.join(", ")));
    }
    text
}

fn file_text(text: &mut String, file: &ReadFile) {
    let source = &file.source;
    let mut counts = vec![events(source.events)];
    if file.allocations > 0 {
        counts.push(allocations(file.allocations));
    }
    if file.steps > 0 {
        counts.push(steps(file.steps));
    }
    let mut lines = vec![source.format.clone(), counts.join(t!(", "))];
    if let (Some(first_ns), Some(last_ns)) = (source.first_ns, source.last_ns) {
        lines.push(t!(
            "{from} to {to}, {duration}",
            from = format_unix(first_ns),
            to = format_unix(last_ns),
            duration = format_duration(last_ns.saturating_sub(first_ns))
        ));
    }
    let mut clock = t!("clock: {clock}", clock = say(&source.clock));
    // What has no clock of its own is placed, not shifted.
    if source.offset_ns != 0 && source.clock != Clock::Order.label() {
        let sign = if source.offset_ns > 0 { "+" } else { "" };
        clock += &t!(", {offset}", offset = format!("{sign}{}", format_duration(source.offset_ns)));
    }
    clock += &t!(
        "; {method}, confidence {percent} %",
        method = say(&source.alignment),
        percent = format!("{:.0}", source.confidence * 100.0)
    );
    if !source.evidence.is_empty() {
        clock += &t!(" ({evidence})", evidence = source.evidence);
    }
    if source.outside > 0 {
        clock += &match source.outside {
            1 => t!("; 1 point outside the other sources").to_owned(),
            count => t!("; {count} points outside the other sources", count = format_count(count)),
        };
    }
    lines.push(clock);
    lines.extend(file.devices.iter().filter(|device| !device.name.is_empty()).map(|device| {
        let total = device.total_bytes.map(|bytes| format!(", {}", format_bytes(bytes))).unwrap_or_default();
        format!("{}: {}{total}", device.device, device.name)
    }));
    if source.lost_events > 0 || source.repaired_events > 0 {
        let at = file
            .lost_first_at
            .map(|at| t!(", the first at {place}", place = format_count(at)))
            .unwrap_or_default();
        lines.push(t!(
            "{lost} could not be read, {repaired} read after a repair{at}",
            lost = events(source.lost_events),
            repaired = format_count(source.repaired_events),
            at
        ));
    }
    let recognised = file.facts.iter().filter(|(name, _)| name == "recognised");
    lines.extend(recognised.map(|(_, text)| t!("recognised: {words}", words = text)));
    lines.extend(source.warnings.iter().map(|warning| t!("note: {warning}", warning)));
    line(text, &source.name, &lines.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A heading with facts below it.
fn line(text: &mut String, heading: &str, facts: &[&str]) {
    let _ = writeln!(text, "{heading}");
    for fact in facts {
        let _ = writeln!(text, "  {fact}");
    }
}

fn events(count: u64) -> String {
    match count {
        1 => t!("1 event").to_owned(),
        _ => t!("{count} events", count = format_count(count)),
    }
}

fn allocations(count: u64) -> String {
    match count {
        1 => t!("1 allocation").to_owned(),
        _ => t!("{count} allocations", count = format_count(count)),
    }
}

fn steps(count: u64) -> String {
    match count {
        1 => t!("1 step").to_owned(),
        _ => t!("{count} steps", count = format_count(count)),
    }
}
