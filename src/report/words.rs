//! The sentences of a report: what the range is, and what was found in it.

use super::{Process, Report};
use crate::analysis::findings::Severity;
use crate::analysis::{DeviceFilter, Index, Selection, label_words};
use crate::model::time::{format_duration, format_offset};
use crate::model::{Step, TimeRange, format_bytes, format_bytes_exact, format_count, format_delta_bytes};
use crate::text::{say, t};

/// The kind of the finding that says that all is well.
const NO_GROWTH: &str = "no_growth";
/// The kind of the finding about a run that ended in an out-of-memory error.
const OUT_OF_MEMORY: &str = "oom";

/// Clocks that show a date are off by a zone, or a day or two by a wrong setting.
const MAX_OFFSET_NS: u64 = 3 * 86_400 * 1_000_000_000;

/// The processes that a short table shows, the first so many and all that stand out, and those that it leaves out. Those
/// that stand out need not come first: some do by their peak alone.
pub fn foremost(report: &Report, most: usize) -> (Vec<&Process>, Vec<&Process>) {
    let (first, rest) = report.processes.split_at(most.min(report.processes.len()));
    let (outliers, others): (Vec<_>, Vec<_>) = rest.iter().partition(|process| process.is_outlier);
    (first.iter().chain(outliers).collect(), others)
}

/// By what a process stands out from the others, if it does: `stands out by growth, peak`.
pub fn stands_out(process: &Process) -> Option<String> {
    let names = process.outlier_by.iter().map(|name| match name.as_str() {
        "growth" => t!("growth"),
        "peak" => t!("peak"),
        _ => t!("kept"),
    });
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| t!("stands out by {figures}", figures = names.join(t!(", "))))
}

/// The range in words: `steps 8 to 15` when it begins and ends at steps, else offsets from the session's start.
pub fn range_label(index: &Index, selection: Selection, range: TimeRange) -> String {
    let session = &index.session;
    let recorded =
        selection.processes(session).map(|id| session.process(id).recorded).reduce(TimeRange::union);
    let whole = recorded.unwrap_or(session.span);
    if range.start_ns <= whole.start_ns && whole.end_ns <= range.end_ns {
        return t!("the whole run").to_owned();
    }
    let by_steps = selection.processes(session).find_map(|id| steps_label(&session.process(id).steps, range));
    by_steps.unwrap_or_else(|| {
        let start_ns = session.span.start_ns;
        t!(
            "{from} to {to}",
            from = format_offset(range.start_ns, start_ns),
            to = format_offset(range.end_ns, start_ns)
        )
    })
}

/// `None` unless the range begins where a step begins and ends where one begins or the last one ends.
fn steps_label(steps: &[Step], range: TimeRange) -> Option<String> {
    let first = steps.iter().position(|step| step.range.start_ns == range.start_ns)?;
    let after = steps.partition_point(|step| step.range.start_ns < range.end_ns);
    let last = after.checked_sub(1).filter(|&last| last >= first)?;
    let ends_at_step = match steps.get(after) {
        Some(next) => next.range.start_ns == range.end_ns || steps[last].range.end_ns == range.end_ns,
        None => steps[last].range.end_ns <= range.end_ns,
    };
    ends_at_step.then(|| match (steps[first].number, steps[last].number) {
        (first, last) if first == last => t!("step {number}", number = first),
        (first, last) => t!("steps {first} to {last}", first, last),
    })
}

/// `process 445, cuda:0`.
pub(super) fn selection_text(index: &Index, selection: Selection) -> String {
    let process = match selection.process {
        Some(id) => index.session.process(id).label.clone(),
        None => match index.session.processes.as_slice() {
            [] => t!("no process").to_owned(),
            [one] => one.label.clone(),
            processes => t!("all {count} processes", count = format_count(processes.len() as u64)),
        },
    };
    let device = match selection.device {
        DeviceFilter::Gpus => t!("GPU memory").to_owned(),
        DeviceFilter::Host => t!("host memory").to_owned(),
        DeviceFilter::All => t!("all memory").to_owned(),
        DeviceFilter::One(device) => device.to_string(),
    };
    t!("{process}, {device}", process, device)
}

/// `vramscope found 573.8 MiB not freed by the end of the recording in steps 8 to 15, most of it at record.py:63
/// validate`. `place` is the range in words.
pub(super) fn summary(report: &Report, place: &str) -> String {
    let (total, definition) = match report.free_by.as_str() {
        "range-end" => (report.survivors.range_end, t!("not freed by the end of the range")),
        _ => (report.survivors.recording_end, t!("not freed by the end of the recording")),
    };
    if total.count == 0 {
        return nothing_kept(report, place);
    }
    let most = report.groups.first().map(|group| {
        let is_most = group.bytes.saturating_mul(2) > total.bytes;
        let place = label_words(&group.call_site);
        if is_most {
            t!(", most of it at {place}", place)
        } else {
            t!(", {bytes} of it at {place}", bytes = format_bytes(group.bytes), place)
        }
    });
    let bytes = format_bytes(total.bytes);
    let most = most.unwrap_or_default();
    match report.findings.first() {
        Some(finding) if finding.kind == NO_GROWTH => {
            t!(
                "{title}; {bytes} of {range} stay until the end{most}",
                title = finding.title,
                bytes,
                range = place,
                most
            )
        }
        Some(finding) if finding.severity != Severity::Info.name() && !names_first_group(report, finding) => {
            t!(
                "vramscope found {bytes} {definition} in {range}{most}. {title}",
                bytes,
                definition,
                range = place,
                most,
                title = finding.title
            )
        }
        _ => t!(
            "vramscope found {bytes} {definition} in {range}{most}",
            bytes,
            definition,
            range = place,
            most
        ),
    }
}

/// Whether the summary says what a finding says by naming its place. How a run ended must be said.
fn names_first_group(report: &Report, finding: &super::Finding) -> bool {
    let first = report.groups.first().map(|group| &group.call_site);
    finding.kind != OUT_OF_MEMORY && first.is_some_and(|call_site| finding.call_sites.contains(call_site))
}

/// Nothing is kept, but a finding may still tell why memory grows.
fn nothing_kept(report: &Report, place: &str) -> String {
    let finding = report.findings.iter().find(|finding| finding.severity != Severity::Info.name());
    match (finding, has_allocations(report)) {
        (Some(finding), true) => {
            t!("vramscope found nothing kept in {range}, but: {title}", range = place, title = finding.title)
        }
        (Some(finding), false) => finding.title.clone(),
        (None, true) if report.survivors.allocated.count == 0 => {
            t!("Nothing was allocated in {range}", range = place)
        }
        (None, true) => {
            t!(
                "vramscope found nothing kept in {range}: every allocation made there was freed",
                range = place
            )
        }
        (None, false) => {
            t!("These files hold no allocations: a memory snapshot or a profiler trace tells what is kept")
                .to_owned()
        }
    }
}

/// What a group's steps add each; nothing of what a single step made.
pub(super) fn group_rate(group: &super::Group) -> String {
    let per_step_bytes = group.steps.map(|steps| steps.per_step_bytes).filter(|&bytes| bytes > 0);
    per_step_bytes.map(format_bytes).unwrap_or_default()
}

/// Whether there is anything that could be kept: logs alone tell curves only.
pub(super) fn has_allocations(report: &Report) -> bool {
    report.processes.iter().any(|process| process.allocations > 0)
}

/// A line of the table of totals.
pub(super) struct TotalRow {
    pub label: &'static str,
    pub count: Option<u64>,
    pub bytes: String,
    pub exact: String,
    /// Whether groups and allocations are counted so.
    pub is_chosen: bool,
}

/// The survivors by every definition, and what they are part of.
pub(super) fn total_rows(report: &Report) -> Vec<TotalRow> {
    let survivors = &report.survivors;
    let row = |label, totals: super::Totals, free_by: &str| TotalRow {
        label,
        count: Some(totals.count),
        bytes: format_bytes(totals.bytes),
        exact: format_bytes_exact(totals.bytes),
        is_chosen: report.free_by == free_by,
    };
    let net = survivors.net_bytes;
    let sign = if net < 0 { "−" } else { "" };
    vec![
        row(t!("not freed by the end of the recording"), survivors.recording_end, "recording-end"),
        row(t!("not freed by the end of the range"), survivors.range_end, "range-end"),
        TotalRow {
            label: t!("net: allocated minus freed in the range, whoever allocated it"),
            count: None,
            bytes: format_delta_bytes(net),
            exact: format!("{sign}{}", format_bytes_exact(net.unsigned_abs())),
            is_chosen: false,
        },
        row(t!("allocated in the range"), survivors.allocated, ""),
        row(t!("freed in the range"), survivors.freed, ""),
    ]
}

/// What is never counted as a leak, and why.
pub(super) fn apart_rows(report: &Report) -> [(&'static str, super::Totals); 4] {
    let apart = &report.apart;
    [
        (t!("alive, but allocated before the recording began"), apart.before_recording),
        (
            t!("freed in the recording, but allocated before it, or the event was lost"),
            apart.free_without_alloc,
        ),
        (t!("free asked for, still waiting for a stream (record_stream)"), apart.pending_free),
        (t!("in a private pool, which CUDA graphs keep on purpose"), apart.private_pool),
    ]
}

/// `unix, +8 h 00 min: zone found by overlap and correlation, confidence 97 %`.
pub(super) fn clock_text(source: &super::Source) -> String {
    let offset = match source.offset_ns {
        // What has no dates is put somewhere: the distance from 1970 says nothing.
        offset_ns if offset_ns.unsigned_abs() > MAX_OFFSET_NS => String::new(),
        0 => String::new(),
        offset_ns => t!(
            ", {offset}",
            offset = format!("{}{}", if offset_ns > 0 { "+" } else { "" }, format_duration(offset_ns))
        ),
    };
    let confidence = f64::from(source.confidence) * 100.0;
    t!(
        "{clock}{offset}: {method}, confidence {percent} %",
        clock = say(&source.clock),
        offset,
        method = say(&source.alignment),
        percent = format!("{confidence:.0}")
    )
}

/// What was lost or is odd about a source, a sentence each.
pub(super) fn notes(source: &super::Source) -> Vec<String> {
    let mut notes = source.warnings.clone();
    if source.lost_events > 0 {
        notes.push(t!("{count} events could not be read", count = format_count(source.lost_events)));
    }
    if source.repaired_events > 0 {
        notes.push(t!(
            "{count} events were read after a repair",
            count = format_count(source.repaired_events)
        ));
    }
    if source.outside > 0 {
        notes.push(t!("{count} points lie outside the other sources", count = format_count(source.outside)));
    }
    notes
}

/// `8 to 15`, or `8`.
pub(super) fn steps_text(steps: super::GroupSteps) -> String {
    if steps.first == steps.last {
        steps.first.to_string()
    } else {
        t!("{first} to {last}", first = steps.first, last = steps.last)
    }
}

/// A file or rank that could not be used, and why, with `code` around its name: `rank 7, run/rank7.pickle: the file is
/// empty`.
pub(super) fn left_out_text(left_out: &super::LeftOut, code: impl Fn(&str) -> String) -> String {
    let name = code(&left_out.name);
    let name = match left_out.rank {
        Some(rank) if left_out.name != format!("rank {rank}") => t!("rank {rank}, {name}", rank, name),
        _ => name,
    };
    t!("{name}: {cause}", name, cause = left_out.cause)
}

/// The words for `--group-by`'s name.
pub(super) fn group_label(report: &Report) -> &str {
    match report.group_by.as_str() {
        "call-site" => t!("call site"),
        other => say(other),
    }
}

/// `97 % sure`.
pub(super) fn sure_text(confidence: f32) -> String {
    t!("{percent} % sure", percent = format!("{:.0}", confidence * 100.0))
}

/// `71.5 MiB per step`.
pub(super) fn per_step_text(bytes: u64) -> String {
    t!("{bytes} per step", bytes = format_bytes(bytes))
}

/// How much of a trace was found in a snapshot, with `code` around their names.
pub(super) fn link_text(link: &super::Link, code: impl Fn(&str) -> String) -> String {
    t!(
        "{matched} of {all} allocations of {trace} were found in {snapshot}",
        matched = format_count(link.matched),
        all = format_count(link.allocations),
        trace = code(&link.trace),
        snapshot = code(&link.snapshot)
    )
}

/// A sentence cut at its backticks: its parts, and whether each is code. An odd backtick stays text.
pub(super) fn spans(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let parts: Vec<&str> = text.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let parts = if is_paired { parts } else { vec![text] };
    parts.into_iter().enumerate().map(|(position, part)| (part, position % 2 == 1))
}
