//! From an answer of the analysis to a report of text and numbers.

use std::cmp::Reverse;

use super::contract::{
    Allocation, Apart, Curve, Driver, DriverPart, Finding, Group, GroupSteps, Link, Process, Range, Report,
    SCHEMA, Source, StepMark, Survivors,
};
use super::words;
use super::{Options, Redactor, command, curves};
use crate::analysis::{self, GroupBy, Index, Query, RowRef, Selection, StackTexts};
use crate::model::{self, NEVER_NS, SourceId, TimeRange};
use crate::text::t;

/// How many survivors a report lists unless all are asked for.
const MAX_ALLOCATIONS: usize = 1_000;
/// A rank that grows by less a step doesn't stand out, however little the others grow.
const LEAST_GROWTH_BYTES: u64 = 64 << 10;
/// Nor one that keeps or peaks at so little more.
const LEAST_OUTLIER_BYTES: u64 = 1 << 20;
/// How many step marks a report holds.
const MAX_STEPS: usize = 500;

/// The report of a query.
pub fn build(index: &Index, query: &Query, group_by: GroupBy, options: &Options) -> Report {
    let session = &index.session;
    let totals = analysis::totals(session, query.selection, query.range);
    let mut rows = analysis::kept(session, query);
    let groups = analysis::group(index, &rows, group_by);
    let allocations_total = rows.len() as u64;
    rows.sort_by_key(|row| Reverse(row.get(session).size_bytes));
    if !options.all_allocations {
        rows.truncate(MAX_ALLOCATIONS);
    }
    let place = words::range_label(index, query.selection, query.range);
    let label = options.range_label.clone().unwrap_or_else(|| place.clone());
    let findings = analysis::findings::findings(index, query);
    let is_lost = |finding: &&analysis::findings::Finding| {
        finding.kind == "history_truncated" && query.range.start_ns < finding.range.start_ns
    };
    let lost = findings.iter().find(is_lost).map(|finding| finding.title.clone());
    let mut stacks = StackTexts::new(index);
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        summary: String::new(),
        command: options.command.clone().unwrap_or_else(|| command::command(index, query, group_by)),
        command_for_another: None,
        redacted: false,
        sources: session.sources.iter().map(|source| self::source(index, source)).collect(),
        left_out: Vec::new(),
        range: range(query.range, label),
        session: range(session.span, t!("the whole run").to_owned()),
        selection: words::selection_text(index, query.selection),
        free_by: query.free_by.name().to_owned(),
        group_by: group_by.name().to_owned(),
        links: session.links.iter().map(|link| self::link(index, link)).collect(),
        survivors: Survivors {
            recording_end: totals.recording_end.into(),
            range_end: totals.range_end.into(),
            net_bytes: totals.net_bytes(),
            allocated: totals.allocated.into(),
            freed: totals.freed.into(),
        },
        apart: Apart {
            before_recording: totals.apart.before_recording.into(),
            free_without_alloc: totals.apart.free_without_alloc.into(),
            pending_free: totals.apart.pending_free.into(),
            private_pool: totals.apart.private_pool.into(),
        },
        processes: processes(index, query, &findings),
        driver: driver(index, query),
        groups: groups.iter().map(|group| self::group(&mut stacks, group)).collect(),
        allocations: rows.iter().map(|&row| allocation(index, &mut stacks, row)).collect(),
        allocations_total,
        findings: findings.into_iter().map(finding).collect(),
        curves: curves_of(index, query.selection),
        view: None,
        steps: steps(index, query.selection),
    };
    report.summary = words::summary(&report, &place);
    if let Some(lost) = lost.filter(|lost| !report.summary.contains(lost.as_str())) {
        // Figures of a range of which a part is not known must not be read without that.
        report.summary += &t!(". {sentence}", sentence = lost);
    }
    for source in cut_sources(index, query.selection) {
        let sentence =
            t!("{source} ends early: what it lacks is not in these figures", source = &source.name);
        report.summary += &t!(". {sentence}", sentence);
    }
    if !options.redact && !options.redact_code {
        return Report { left_out: options.left_out.clone(), ..report };
    }
    let mut redactor = Redactor::default();
    let redacted = redactor.redact(report, index, options.redact_code);
    let left_out = options.left_out.iter().map(|file| redactor.left_out(file.clone())).collect();
    Report { left_out, ..redacted }
}

/// The files that the figures are from and that were cut.
fn cut_sources(index: &Index, selection: Selection) -> impl Iterator<Item = &model::Source> {
    index.session.sources.iter().filter(move |source| {
        let is_selected = source.process.is_some_and(|id| selection.process.is_none_or(|it| it == id));
        let is_cut = source.recording.warnings.iter().any(|warning| warning.code == "cut");
        is_selected && is_cut && !source.recording.allocations.is_empty()
    })
}

fn range(range: TimeRange, label: String) -> Range {
    Range { start_ns: range.start_ns, end_ns: range.end_ns, label }
}

fn source_name(index: &Index, id: SourceId) -> String {
    index.session.sources.get(id.0 as usize).map(|source| source.name.clone()).unwrap_or_default()
}

pub(crate) fn source(index: &Index, source: &model::Source) -> Source {
    let recording = &source.recording;
    let span = source.span();
    Source {
        name: source.name.clone(),
        kind: source.kind().name().to_owned(),
        format: recording.format.to_owned(),
        events: recording.events,
        first_ns: span.map(|span| span.start_ns),
        last_ns: span.map(|span| span.end_ns.saturating_sub(1).max(span.start_ns)),
        offset_ns: source.alignment.offset_ns,
        clock: recording.clock.label().to_owned(),
        alignment: source.alignment.method.label().to_owned(),
        confidence: source.alignment.confidence,
        evidence: source.alignment.evidence.clone(),
        lag_ns: source.alignment.lag_ns,
        outside: source.alignment.outside,
        process: source.process.map(|id| index.session.process(id).label.clone()),
        lost_events: recording.lost.events,
        repaired_events: recording.lost.repaired,
        warnings: recording.warnings.iter().map(|warning| warning.text.clone()).collect(),
    }
}

pub(crate) fn link(index: &Index, link: &model::Link) -> Link {
    Link {
        trace: source_name(index, link.trace),
        snapshot: source_name(index, link.snapshot),
        allocations: link.allocations,
        matched: link.matched,
    }
}

/// The processes that a query looks at, the worst first. `findings` are those of the query.
fn processes(index: &Index, query: &Query, findings: &[analysis::findings::Finding]) -> Vec<Process> {
    let summaries = analysis::compare_processes(index, query, Some(findings));
    let mut processes: Vec<Process> = summaries.iter().map(|summary| process(index, summary)).collect();
    rank_processes(&mut processes);
    processes
}

/// Puts those that grow the most first, of equal ones those that keep the most, and marks those that stand out. How many
/// do.
pub fn rank_processes(processes: &mut [Process]) -> usize {
    processes.sort_by_key(|process| Reverse(process.weight()));
    mark_outliers(&mut processes.iter_mut().collect::<Vec<_>>())
}

/// A figure by which processes stand out: its name, what is no difference, and how it is read.
type Figure = (&'static str, u64, fn(&Process) -> u64);

/// Marks those that stand out by a figure. How many do.
pub fn mark_outliers(processes: &mut [&mut Process]) -> usize {
    processes.iter_mut().for_each(|process| process.outlier_by.clear());
    let figures: [Figure; 3] = [
        ("growth", LEAST_GROWTH_BYTES, |process| {
            process.growth_per_step_bytes.map_or(0, |bytes| u64::try_from(bytes).unwrap_or(0))
        }),
        ("kept", LEAST_OUTLIER_BYTES, |process| process.survivors.bytes),
        ("peak", LEAST_OUTLIER_BYTES, |process| process.peak_bytes.unwrap_or(0)),
    ];
    for (name, least_bytes, figure) in figures {
        let bytes: Vec<u64> = processes.iter().map(|process| figure(process)).collect();
        let marks = analysis::outliers(&bytes, least_bytes);
        for (process, _) in processes.iter_mut().zip(marks).filter(|(_, is_outlier)| *is_outlier) {
            process.outlier_by.push(name.to_owned());
        }
    }
    processes.iter_mut().for_each(|process| process.is_outlier = !process.outlier_by.is_empty());
    processes.iter().filter(|process| process.is_outlier).count()
}

/// A process's figures. Whether it stands out is known only beside the others.
pub fn process(index: &Index, summary: &analysis::ProcessSummary) -> Process {
    let process = index.session.process(summary.process);
    Process {
        name: process.label.clone(),
        rank: process.rank,
        pid: process.pid,
        allocations: process.allocations.len() as u64,
        steps: process.steps.len() as u64,
        growth_per_step_bytes: summary.growth_per_step_bytes,
        peak_bytes: summary.peak_bytes,
        survivors: summary.survivors.into(),
        finding: summary.finding.clone(),
        is_outlier: false,
        outlier_by: Vec::new(),
    }
}

fn driver(index: &Index, query: &Query) -> Vec<Driver> {
    let gaps = analysis::driver_gaps(&index.session, query.selection).into_iter();
    gaps.filter_map(|gap| {
        let parts = gap.parts(query.range)?;
        Some(Driver {
            device: gap.device.to_string(),
            driver_device: gap.driver_device.to_string(),
            is_sum_of_processes: gap.is_sum_of_processes,
            parts: parts
                .iter()
                .map(|part| DriverPart {
                    part: part.kind.name().to_owned(),
                    label: part.label(),
                    pid: part.pid,
                    grown_bytes: part.grown_bytes,
                    end_bytes: part.end_bytes,
                })
                .collect(),
        })
    })
    .collect()
}

fn group(stacks: &mut StackTexts<'_>, group: &analysis::Group) -> Group {
    Group {
        key: group.key.clone(),
        count: group.count,
        bytes: group.bytes,
        call_site: group.call_site.clone(),
        ops: group.ops.clone(),
        stack: stacks.lines(group.stack.0, group.stack.1),
        steps: group.steps.map(|(first, last)| GroupSteps {
            first,
            last,
            per_step_bytes: group.per_step_bytes,
        }),
    }
}

fn allocation(index: &Index, stacks: &mut StackTexts<'_>, row: RowRef) -> Allocation {
    let session = &index.session;
    let process = session.process(row.process);
    let allocation = row.get(session);
    let op = process.ops.get(allocation.op);
    let text = |of: fn(&model::Op) -> model::StrId| {
        op.as_ref().map(|op| process.strings.get(of(op)).to_owned()).unwrap_or_default()
    };
    Allocation {
        process: (session.processes.len() > 1).then(|| process.label.clone()),
        address: allocation.address,
        bytes: allocation.size_bytes,
        time_ns: allocation.alloc_ns,
        freed_ns: (allocation.free_completed_ns != NEVER_NS).then_some(allocation.free_completed_ns),
        device: allocation.device.to_string(),
        stream: allocation.stream,
        op: index.label(index.op(row.process, allocation.op, allocation.stack)).to_owned(),
        shapes: text(|op| op.shapes),
        tensor: text(|op| op.inferred_tensor),
        module: text(|op| op.module),
        step: process.steps.get(allocation.step as usize).map(|step| step.number),
        call_site: index.label(index.call_site(row.process, allocation.stack)).to_owned(),
        stack: stacks.lines(row.process, allocation.stack),
    }
}

fn finding(finding: analysis::findings::Finding) -> Finding {
    Finding {
        kind: finding.kind.to_owned(),
        severity: finding.severity.name().to_owned(),
        confidence: finding.confidence,
        bytes: finding.bytes,
        per_step_bytes: finding.per_step_bytes,
        title: finding.title,
        evidence: finding.evidence,
        confirm: finding.confirm,
        advice: finding.advice,
        code_before: finding.code_before,
        code_after: finding.code_after,
        call_sites: finding.call_sites,
    }
}

fn curves_of(index: &Index, selection: Selection) -> Vec<Curve> {
    let session = &index.session;
    session
        .curves()
        .filter(|(_, process, series, _)| {
            let is_selected =
                selection.process.is_none() || process.is_none() || *process == selection.process;
            is_selected && selection.device.admits(series.device) && !series.is_empty()
        })
        .map(|(source, process, series, offset_ns)| {
            let (times_ns, bytes) = curves::thin(series, offset_ns);
            let origin = match (source, process) {
                (Some(source), _) => source_name(index, source),
                (None, Some(process)) => session.process(process).label.clone(),
                (None, None) => String::new(),
            };
            Curve {
                quantity: series.quantity.label().to_owned(),
                origin,
                device: series.device.to_string(),
                process_name: series.process_name.clone(),
                is_step: series.is_step,
                times_ns,
                bytes,
            }
        })
        .collect()
}

/// The steps of the selected process that has the most.
fn steps(index: &Index, selection: Selection) -> Vec<StepMark> {
    let session = &index.session;
    let steps =
        selection.processes(session).map(|id| &session.process(id).steps).max_by_key(|steps| steps.len());
    let steps = steps.map_or(&[][..], Vec::as_slice);
    let every = steps.len().div_ceil(MAX_STEPS).max(1);
    steps
        .iter()
        .step_by(every)
        .map(|step| StepMark { number: step.number, start_ns: step.range.start_ns })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Totals;

    fn process(name: &str, growth_per_step_bytes: i64, kept_bytes: u64, peak_bytes: u64) -> Process {
        Process {
            name: name.to_owned(),
            rank: None,
            pid: None,
            allocations: 0,
            steps: 0,
            growth_per_step_bytes: Some(growth_per_step_bytes),
            peak_bytes: Some(peak_bytes),
            survivors: Totals { count: 1, bytes: kept_bytes },
            finding: None,
            is_outlier: false,
            outlier_by: Vec::new(),
        }
    }

    /// A leak keeps less than the model that every healthy rank keeps over the whole run.
    #[test]
    fn a_rank_that_grows_comes_before_those_that_keep_more() {
        const MIB: u64 = 1 << 20;
        let mut processes = [
            process("healthy", 0, 640 * MIB, 900 * MIB),
            process("leaking", 5 << 20, 100 * MIB, 1000 * MIB),
            process("another", 100, 641 * MIB, 900 * MIB),
            process("gathers", 0, 640 * MIB, 4000 * MIB),
        ];
        assert_eq!(rank_processes(&mut processes), 2);
        let order = processes.each_ref().map(|it| (it.name.as_str(), it.outlier_by.join(" ")));
        let expected = [("leaking", "growth"), ("another", ""), ("healthy", ""), ("gathers", "peak")];
        assert_eq!(order, expected.map(|(name, by)| (name, by.to_owned())));
    }
}
