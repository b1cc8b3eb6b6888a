//! The report as one page: no network, no script, everything escaped.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::words::{
    apart_rows, clock_text, foremost, group_label, group_rate, has_allocations, left_out_text, link_text,
    notes, per_step_text, spans, stands_out, steps_text, sure_text, total_rows,
};
use super::{Allocation, Finding, Group, Process, Report, chart};
use crate::analysis::label_words;
use crate::model::time::{format_duration, format_offset, format_unix};
use crate::model::{format_bytes, format_bytes_exact, format_count, format_delta_bytes};
use crate::text::{Language, say, t};

const STYLE: &str = include_str!("../../assets/report.css");
const MAX_GROUPS: usize = 200;
const MAX_ALLOCATIONS: usize = 100;
/// Processes beyond these are folded, so that what was found is not far below.
const MAX_PROCESSES: usize = 12;

/// Writes the whole page.
pub(super) fn render(report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang=(Language::spoken().tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(format!("vramscope {}", report.version));
                // Nothing is loaded from anywhere, and nothing runs.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (report.summary) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (report.summary) }
                    p.soft { (scope(report)) }
                    (left_out(report))
                }
                main {
                    @if has_allocations(report) { (totals(report)) }
                    (curves(report))
                    (processes(report))
                    (driver(report))
                    (findings(report))
                    @if has_allocations(report) { (groups(report)) }
                    (allocations(report))
                    (sources(report))
                    (apart(report))
                    (reproduce(report))
                }
            }
        }
    };
    page.into_string()
}

fn scope(report: &Report) -> String {
    let range = &report.range;
    t!(
        "{selection}; {range}; {from} to {to}, {duration}",
        selection = report.selection,
        range = range.label,
        from = format_unix(range.start_ns),
        to = format_unix(range.end_ns),
        duration = format_duration(range.end_ns.saturating_sub(range.start_ns))
    )
}

fn left_out(report: &Report) -> Markup {
    html! {
        @if !report.left_out.is_empty() {
            p { strong { (t!("Left out, so that the figures lack them")) } }
            ul { @for left_out in &report.left_out { li { (left_out_text(left_out, str::to_owned)) } } }
        }
    }
}

fn totals(report: &Report) -> Markup {
    html! {
        dl.totals {
            @for row in total_rows(report) {
                div.chosen[row.is_chosen] {
                    dt { (row.label) }
                    dd.bytes { (row.bytes) }
                    dd.soft {
                        @if let Some(count) = row.count { (t!("{count} allocations, ", count = format_count(count))) }
                        (row.exact)
                    }
                }
            }
        }
    }
}

fn curves(report: &Report) -> Markup {
    let Some(picture) = chart::svg(report) else { return html! {} };
    html! {
        figure {
            (picture)
            ul.legend {
                @for (position, curve) in chart::chosen(report).into_iter().enumerate() {
                    li {
                        svg width="14" height="10" aria-hidden="true" {
                            rect class=(format!("s{position}")) y="3" width="14" height="4" {}
                        }
                        " " (say(&curve.quantity)) " " span.soft { (curve.device) ", " (curve.origin) }
                    }
                }
            }
            figcaption {
                (t!("Memory over time from the session's start. The marked stretch is {range}.", range = report.range.label))
                @if !report.steps.is_empty() { (t!(" The upper row of numbers names the training steps.")) }
            }
        }
    }
}

fn driver(report: &Report) -> Markup {
    html! {
        @for device in &report.driver {
            section {
                h2 { (t!("What the driver counts")) }
                p.soft {
                    (device.device)
                    @if device.driver_device != device.device { (t!(" ({device} in the driver's log)", device = device.driver_device)) }
                    (t!(", first to last sample of the range"))
                    @if device.is_sum_of_processes { (t!("; the driver gives no total, so its processes are summed")) }
                }
                table {
                    thead { tr { th { "" } th.number { (t!("grew by")) } th.number { (t!("at the end")) } } }
                    tbody {
                        @for part in &device.parts {
                            tr {
                                td { (part.label) }
                                td.number { (format_delta_bytes(part.grown_bytes)) }
                                td.number { (format_bytes(part.end_bytes.max(0).unsigned_abs())) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn findings(report: &Report) -> Markup {
    html! {
        @if !report.findings.is_empty() {
            section {
                h2 { (t!("Findings")) }
                @for finding in &report.findings { (self::finding(finding)) }
            }
        }
    }
}

fn finding(finding: &Finding) -> Markup {
    html! {
        article class=(format!("finding {}", finding.severity)) {
            h3 { (finding.title) }
            p.soft {
                span.severity { (say(&finding.severity)) }
                (t!(", ")) (sure_text(finding.confidence))
                @if finding.bytes > 0 { (t!(", ")) (format_bytes(finding.bytes)) }
                @if finding.per_step_bytes > 0 { (t!(", ")) (per_step_text(finding.per_step_bytes)) }
            }
            @if !finding.evidence.is_empty() {
                ul { @for evidence in &finding.evidence { li { (prose(evidence)) } } }
            }
            @if !finding.call_sites.is_empty() {
                p {
                    (t!("At "))
                    @for (position, site) in finding.call_sites.iter().take(8).enumerate() {
                        @if position > 0 { (t!(", ")) }
                        code { (label_words(site)) }
                    }
                }
            }
            p { (prose(&finding.advice)) }
            @if !finding.code_after.is_empty() {
                pre {
                    @for line in finding.code_before.lines() { span.removed { "- " (line) } "\n" }
                    @for line in finding.code_after.lines() { span.added { "+ " (line) } "\n" }
                }
            }
            @if !finding.confirm.is_empty() {
                p { span.soft { (t!("To confirm ")) } (prose(&finding.confirm)) }
            }
        }
    }
}

/// A sentence with code between backticks.
fn prose(text: &str) -> Markup {
    html! { @for (span, is_code) in spans(text) { @if is_code { code { (span) } } @else { (span) } } }
}

fn groups(report: &Report) -> Markup {
    let all: u64 = report.groups.iter().map(|group| group.bytes).sum();
    html! {
        section {
            h2 { (t!("Kept, by {group}", group = group_label(report))) }
            @if report.groups.is_empty() {
                p { (t!("Nothing: every allocation of the range was freed.")) }
            } @else {
                div.wide {
                    table.groups {
                        thead {
                            tr {
                                th { (group_label(report)) }
                                th.number { (t!("bytes")) }
                                th.number { (t!("count")) }
                                th.number { (t!("per step")) }
                                th { (t!("steps")) }
                                th { (t!("ops")) }
                            }
                        }
                        @for group in report.groups.iter().take(MAX_GROUPS) { (group_rows(group, all)) }
                    }
                }
                @if report.groups.len() > MAX_GROUPS {
                    p.soft { (t!("{count} more are left out here; the JSON report has them", count = format_count((report.groups.len() - MAX_GROUPS) as u64))) }
                }
            }
        }
    }
}

fn group_rows(group: &Group, all_bytes: u64) -> Markup {
    let share = group.bytes as f64 / all_bytes.max(1) as f64 * 100.0;
    html! {
        tbody {
            tr {
                td {
                    span.mono { (label_words(&group.key)) }
                    span.share style=(format!("width:{share:.1}%")) {}
                }
                td.number title=(format_bytes_exact(group.bytes)) { (format_bytes(group.bytes)) }
                td.number { (format_count(group.count)) }
                td.number { (group_rate(group)) }
                td.time { @if let Some(steps) = group.steps { (steps_text(steps)) } }
                td.mono { (group.ops.iter().map(|op| label_words(op)).collect::<Vec<_>>().join(", ")) }
            }
            @if !group.stack.is_empty() {
                tr {
                    td colspan="6" {
                        details.stack {
                            summary.soft { (t!("Stack")) }
                            pre { (group.stack.join("\n")) }
                        }
                    }
                }
            }
        }
    }
}

fn processes(report: &Report) -> Markup {
    let (seen, folded) = foremost(report, MAX_PROCESSES);
    html! {
        @if report.processes.len() > 1 {
            section {
                h2 { (t!("Processes")) }
                div.wide { (process_table(&seen)) }
                @if !folded.is_empty() {
                    details {
                        summary { (t!("{count} more", count = format_count(folded.len() as u64))) }
                        div.wide { (process_table(&folded)) }
                    }
                }
                @if let Some(command) = &report.command_for_another {
                    p.soft { (t!("They were opened one by one; the rest of this report is of one of them. Another one:")) }
                    pre { (command) }
                }
            }
        }
    }
}

fn process_table(processes: &[&Process]) -> Markup {
    html! {
        table {
            thead {
                tr {
                    th { (t!("process")) }
                    th.number { (t!("kept")) }
                    th.number { (t!("count")) }
                    th.number { (t!("growth per step")) }
                    th.number { (t!("peak allocated")) }
                    th { (t!("first finding")) }
                }
            }
            tbody { @for process in processes { (process_row(process)) } }
        }
    }
}

fn process_row(process: &Process) -> Markup {
    html! {
        tr {
            td { (process.name) @if let Some(text) = stands_out(process) { " " span.outlier { (text) } } }
            td.number { (format_bytes(process.survivors.bytes)) }
            td.number { (format_count(process.survivors.count)) }
            td.number { @if let Some(growth) = process.growth_per_step_bytes { (format_delta_bytes(growth)) } }
            td.number { @if let Some(peak) = process.peak_bytes { (format_bytes(peak)) } }
            td { (process.finding.as_deref().unwrap_or_default()) }
        }
    }
}

fn allocations(report: &Report) -> Markup {
    let shown = &report.allocations[..report.allocations.len().min(MAX_ALLOCATIONS)];
    html! {
        @if !shown.is_empty() {
            section.screen {
                h2 { (t!("The largest of them")) }
                details {
                    summary {
                        (t!("{shown} of {all} allocations", shown = format_count(shown.len() as u64), all = format_count(report.allocations_total)))
                    }
                    div.wide {
                        table {
                            thead {
                                tr {
                                    th.number { (t!("bytes")) }
                                    th { (t!("when")) }
                                    th { (t!("step")) }
                                    th { (t!("op")) }
                                    th { (t!("tensor")) }
                                    th { (t!("input shapes")) }
                                    th { (t!("module")) }
                                    th { (t!("call site")) }
                                    th { (t!("address")) }
                                }
                            }
                            tbody { @for allocation in shown { (allocation_row(report, allocation)) } }
                        }
                    }
                }
            }
        }
    }
}

fn allocation_row(report: &Report, allocation: &Allocation) -> Markup {
    html! {
        tr {
            td.number title=(format_bytes_exact(allocation.bytes)) { (format_bytes(allocation.bytes)) }
            td.number { (format_offset(allocation.time_ns, report.session.start_ns)) }
            td { @if let Some(step) = allocation.step { (step) } }
            td.mono { (label_words(&allocation.op)) }
            td.mono { (allocation.tensor) }
            td.mono { (allocation.shapes) }
            td.mono { (allocation.module) }
            td.mono { (label_words(&allocation.call_site)) }
            td.mono { (format!("{:#x}", allocation.address)) @if let Some(process) = &allocation.process { ", " (process) } }
        }
    }
}

fn sources(report: &Report) -> Markup {
    html! {
        section {
            h2 { (t!("Sources and clocks")) }
            div.wide {
                table {
                    thead { tr { th { (t!("source")) } th.number { (t!("events")) } th { (t!("from")) } th.number { (t!("length")) } th { (t!("clock")) } } }
                    tbody {
                        @for source in &report.sources {
                            tr {
                                td {
                                    span.mono { (source.name) }
                                    br;
                                    span.soft { (source.format) @if let Some(process) = &source.process { ", " (process) } }
                                }
                                td.number { (format_count(source.events)) }
                                td.time { @if let Some(time_ns) = source.first_ns { (format_unix(time_ns)) } }
                                td.number {
                                    @if let (Some(first), Some(last)) = (source.first_ns, source.last_ns) {
                                        (format_duration(last.saturating_sub(first)))
                                    }
                                }
                                td {
                                    (clock_text(source))
                                    @if !source.evidence.is_empty() { br; span.soft { (source.evidence) } }
                                }
                            }
                        }
                    }
                }
            }
            @for link in &report.links {
                p { (prose(&link_text(link, |name| format!("`{name}`")))) }
            }
        }
    }
}

fn apart(report: &Report) -> Markup {
    let apart = apart_rows(report);
    let notes: Vec<(&str, String)> = report
        .sources
        .iter()
        .flat_map(|source| notes(source).into_iter().map(|note| (source.name.as_str(), note)))
        .collect();
    html! {
        section {
            h2 { (t!("Apart, never counted as kept")) }
            table {
                thead { tr { th { (t!("what")) } th.number { (t!("count")) } th.number { (t!("bytes")) } } }
                tbody {
                    @for (label, totals) in apart {
                        tr {
                            td { (label) }
                            td.number { (format_count(totals.count)) }
                            td.number title=(format_bytes_exact(totals.bytes)) { (format_bytes(totals.bytes)) }
                        }
                    }
                }
            }
            @if !notes.is_empty() {
                h2 { (t!("Lost, repaired or odd")) }
                ul { @for (name, note) in notes { li { code { (name) } ": " (note) } } }
            }
        }
    }
}

fn reproduce(report: &Report) -> Markup {
    html! {
        footer {
            @if !report.command.is_empty() {
                h2 { (t!("To get this again")) }
                pre { (report.command) }
            }
            p.soft {
                (t!("Bytes are as requested. Made by vramscope {version}", version = report.version))
                @if report.redacted { (t!("; names of users, hosts, folders, files, boards and processes were replaced")) }
            }
        }
    }
}
