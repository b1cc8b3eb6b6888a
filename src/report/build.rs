//! From an answer of the analysis to a report of text and numbers.

use std::cmp::Reverse;

use super::contract::{
    Allocation, Apart, Curve, Driver, DriverPart, Finding, Group, GroupSteps, Link, Process, Range, Report,
    SCHEMA, Source, StepMark, Survivors,
};
use super::words;
use super::{Options, Redactor, command, curves};
use crate::analysis::{self, GroupBy, Index, Query, RowRef, Selection};
use crate::model::{self, NEVER_NS, SourceId, TimeRange};
use crate::text::t;

/// How many survivors a report lists unless all are asked for.
const MAX_ALLOCATIONS: usize = 1_000;
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
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        summary: String::new(),
        command: options.command.clone().unwrap_or_else(|| command::command(index, query, group_by)),
        command_for_another: None,
        redacted: false,
        sources: session.sources.iter().map(|source| self::source(index, source)).collect(),
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
        groups: groups.iter().map(|group| self::group(index, group)).collect(),
        allocations: rows.iter().map(|&row| allocation(index, row)).collect(),
        allocations_total,
        findings: findings.into_iter().map(finding).collect(),
        curves: curves_of(index, query.selection),
        view: None,
        steps: steps(index, query.selection),
    };
    report.summary = words::summary(&report, &place);
    if !options.redact && !options.redact_code {
        return report;
    }
    Redactor::default().redact(report, index, options.redact_code)
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

/// The processes that a query looks at, those that keep the most first. `findings` are those of the query.
fn processes(index: &Index, query: &Query, findings: &[analysis::findings::Finding]) -> Vec<Process> {
    let summaries = analysis::compare_processes(index, query, findings);
    let mut processes: Vec<Process> = summaries.iter().map(|summary| process(index, summary)).collect();
    rank_processes(&mut processes);
    processes
}

/// Puts those that keep the most first, and marks those that stand out. How many do.
pub fn rank_processes(processes: &mut [Process]) -> usize {
    processes.sort_by_key(|process| Reverse(process.survivors.bytes));
    let kept_bytes: Vec<u64> = processes.iter().map(|process| process.survivors.bytes).collect();
    for (process, is_outlier) in processes.iter_mut().zip(analysis::outliers(&kept_bytes)) {
        process.is_outlier = is_outlier;
    }
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

fn group(index: &Index, group: &analysis::Group) -> Group {
    Group {
        key: group.key.clone(),
        count: group.count,
        bytes: group.bytes,
        call_site: group.call_site.clone(),
        ops: group.ops.clone(),
        stack: index.stack_lines(group.stack.0, group.stack.1),
        steps: group.steps.map(|(first, last)| GroupSteps {
            first,
            last,
            per_step_bytes: group.per_step_bytes,
        }),
    }
}

fn allocation(index: &Index, row: RowRef) -> Allocation {
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
        stack: index.stack_lines(row.process, allocation.stack),
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
