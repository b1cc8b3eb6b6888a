//! The report as Markdown for an issue: short, with the rest folded away.
//!
//! Names come from files and can hold anything. They are written as text that means nothing to Markdown or HTML.

use std::fmt::Write as _;

use super::words::{
    apart_rows, clock_text, foremost, group_label, group_rate, has_allocations, left_out_text, link_text,
    notes, per_step_text, spans, stands_out, steps_text, sure_text, total_rows,
};
use super::{Finding, Group, LeftOut, Report};
use crate::analysis::label_words;
use crate::model::time::format_unix;
use crate::model::{format_bytes, format_count, format_delta_bytes};
use crate::text::{say, t};

const MAX_GROUPS: usize = 20;
const MAX_PROCESSES: usize = 32;
const MAX_STACKS: usize = 5;

/// Writes the whole report.
pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "**{}**\n", escape(&report.summary));
    totals(&mut out, report);
    if report.processes.len() > 1 {
        processes(&mut out, report);
    }
    driver(&mut out, report);
    findings(&mut out, &report.findings);
    groups(&mut out, report);
    sources(&mut out, report);
    if !report.command.is_empty() {
        let _ = writeln!(
            out,
            "{}\n\n{}",
            t!("Made by vramscope {version} with", version = report.version),
            code_block("sh", &report.command)
        );
    }
    out
}

fn totals(out: &mut String, report: &Report) {
    let scope = t!(
        "{selection}; {range}; {from} to {to}",
        selection = escape(&report.selection),
        range = escape(&report.range.label),
        from = format_unix(report.range.start_ns),
        to = format_unix(report.range.end_ns)
    );
    let _ = writeln!(out, "{scope}\n");
    if !report.left_out.is_empty() {
        let _ = writeln!(out, "**{}**\n", t!("Left out, so that the figures lack them"));
        for left_out in &report.left_out {
            let cause = escape(&left_out.cause);
            let _ = writeln!(out, "- {}", left_out_text(&LeftOut { cause, ..left_out.clone() }, code));
        }
        out.push('\n');
    }
    if !has_allocations(report) {
        return;
    }
    out.push_str(t!("| | allocations | bytes |"));
    out.push_str("\n| --- | ---: | ---: |\n");
    for row in total_rows(report) {
        let strong = if row.is_chosen { "**" } else { "" };
        let count = row.count.map(format_count).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {strong}{}{strong} | {count} | {strong}{}{strong} ({}) |",
            row.label, row.bytes, row.exact
        );
    }
    out.push('\n');
}

fn driver(out: &mut String, report: &Report) {
    if !report.driver.is_empty() {
        let _ = writeln!(out, "### {}\n", t!("What the driver counts"));
    }
    for device in &report.driver {
        let head = t!("| {device}, driver's log | grew by | at the end |", device = escape(&device.device));
        let _ = writeln!(out, "{head}");
        out.push_str("| --- | ---: | ---: |\n");
        for part in &device.parts {
            let _ = writeln!(
                out,
                "| {} | {} | {} |",
                escape(&part.label),
                format_delta_bytes(part.grown_bytes),
                format_bytes(part.end_bytes.max(0).unsigned_abs())
            );
        }
        out.push('\n');
    }
}

fn findings(out: &mut String, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    let _ = writeln!(out, "### {}\n", t!("Findings"));
    for finding in findings {
        let mut facts = vec![say(&finding.severity).to_owned(), sure_text(finding.confidence)];
        if finding.bytes > 0 {
            facts.push(format_bytes(finding.bytes));
        }
        if finding.per_step_bytes > 0 {
            facts.push(per_step_text(finding.per_step_bytes));
        }
        let _ = writeln!(out, "**{}** ({})\n", escape(&finding.title), escape(&facts.join(t!(", "))));
        for evidence in &finding.evidence {
            let _ = writeln!(out, "- {}", prose(evidence));
        }
        if !finding.call_sites.is_empty() {
            let sites: Vec<String> =
                finding.call_sites.iter().take(5).map(|site| code(&label_words(site))).collect();
            let _ = writeln!(out, "- {}", t!("at {places}", places = sites.join(t!(", "))));
        }
        let _ = writeln!(out, "\n{}\n", prose(&finding.advice));
        if !finding.code_after.is_empty() {
            out.push_str(&code_block("diff", &diff(&finding.code_before, &finding.code_after)));
            out.push('\n');
        }
        if !finding.confirm.is_empty() {
            let _ = writeln!(out, "{}\n", t!("To confirm: {words}", words = prose(&finding.confirm)));
        }
    }
}

fn diff(before: &str, after: &str) -> String {
    let lines =
        |text: &str, mark: char| text.lines().map(|line| format!("{mark} {line}\n")).collect::<String>();
    lines(before, '-') + &lines(after, '+')
}

fn groups(out: &mut String, report: &Report) {
    if report.groups.is_empty() {
        return;
    }
    let _ = writeln!(out, "### {}\n", t!("Kept, by {group}", group = group_label(report)));
    let _ = writeln!(
        out,
        "{}",
        t!("| {group} | bytes | count | per step | steps | ops |", group = group_label(report))
    );
    out.push_str("| --- | ---: | ---: | ---: | --- | --- |\n");
    for group in report.groups.iter().take(MAX_GROUPS) {
        let per_step = group_rate(group);
        let ops: Vec<String> = group.ops.iter().take(3).map(|op| code(&label_words(op))).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {per_step} | {} | {} |",
            code(&label_words(&group.key)),
            format_bytes(group.bytes),
            format_count(group.count),
            group.steps.map(steps_text).unwrap_or_default(),
            ops.join(", ")
        );
    }
    if report.groups.len() > MAX_GROUPS {
        let rest = &report.groups[MAX_GROUPS..];
        let bytes: u64 = rest.iter().map(|group| group.bytes).sum();
        let more = t!("{count} more", count = format_count(rest.len() as u64));
        let _ = writeln!(out, "| {more} | {} | | | | |", format_bytes(bytes));
    }
    out.push('\n');
    for group in report.groups.iter().take(MAX_STACKS).filter(|group| !group.stack.is_empty()) {
        stack(out, group);
    }
}

fn stack(out: &mut String, group: &Group) {
    let _ = writeln!(
        out,
        "<details><summary>{}</summary>\n\n{}\n</details>\n",
        t!("Stack of {place}", place = code(&label_words(&group.key))),
        preformatted(&group.stack.join("\n"))
    );
}

fn processes(out: &mut String, report: &Report) {
    let _ = writeln!(out, "### {}\n", t!("Processes"));
    out.push_str(t!("| process | kept | count | growth per step | peak | first finding |"));
    out.push_str("\n| --- | ---: | ---: | ---: | ---: | --- |\n");
    let (listed, left_out) = foremost(report, MAX_PROCESSES);
    for process in listed {
        let strong = if process.is_outlier { "**" } else { "" };
        let _ = writeln!(
            out,
            "| {strong}{}{strong}{} | {} | {} | {} | {} | {} |",
            escape(&process.name),
            stands_out(process).map(|text| format!(" ({text})")).unwrap_or_default(),
            format_bytes(process.survivors.bytes),
            format_count(process.survivors.count),
            process.growth_per_step_bytes.map(format_delta_bytes).unwrap_or_default(),
            process.peak_bytes.map(format_bytes).unwrap_or_default(),
            escape(process.finding.as_deref().unwrap_or_default())
        );
    }
    if !left_out.is_empty() {
        let _ = writeln!(
            out,
            "| {} | | | | | |",
            t!("{count} more, which don't stand out", count = format_count(left_out.len() as u64))
        );
    }
    out.push('\n');
    if let Some(command) = &report.command_for_another {
        let _ = writeln!(
            out,
            "{}\n\n{}",
            t!("They were opened one by one; the rest of this report is of one of them. Another one:"),
            code_block("sh", command)
        );
    }
}

fn sources(out: &mut String, report: &Report) {
    let title = t!("Sources, clocks, and what was left out");
    let _ = writeln!(out, "<details><summary>{title}</summary>\n");
    out.push_str(t!("| source | kind | events | clock |"));
    out.push_str("\n| --- | --- | ---: | --- |\n");
    for source in &report.sources {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(&source.name),
            escape(&source.format),
            format_count(source.events),
            escape(&clock_text(source))
        );
    }
    out.push('\n');
    for source in &report.sources {
        for note in notes(source) {
            let _ = writeln!(out, "- {}: {}", code(&source.name), escape(&note));
        }
    }
    for link in &report.links {
        let _ = writeln!(out, "- {}", link_text(link, code));
    }
    for (label, totals) in apart_rows(report).into_iter().filter(|(_, totals)| totals.count > 0) {
        let line = t!(
            "{count} {label}: {bytes}",
            count = format_count(totals.count),
            label,
            bytes = format_bytes(totals.bytes)
        );
        let _ = writeln!(out, "- {line}");
    }
    out.push_str("\n</details>\n\n");
}

/// Text that means nothing to Markdown or HTML, on one line. Entities rather than backslashes, since those work in
/// tables, in HTML and for mentions alike.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied().unwrap_or(' ');
        match c {
            '\n' | '\r' | '\t' => escaped.push(' '),
            // Within a word it emphasizes nothing: `batch_norm`.
            '_' if before.is_alphanumeric() && after.is_alphanumeric() => escaped.push('_'),
            // A list, a quote or a rule only at the start; a link only before slashes.
            '-' | '+' | '.' if !escaped.is_empty() => escaped.push(c),
            ':' if after != '/' => escaped.push(c),
            '&' | '<' | '>' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '@' | '$' | ':'
            | '-' | '+' | '.' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c if c.is_control() => {}
            c => escaped.push(c),
        }
        before = c;
    }
    escaped
}

/// A name in the font of code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// A sentence with code between backticks.
fn prose(text: &str) -> String {
    spans(text).map(|(span, is_code)| if is_code { code(span) } else { escape(span) }).collect()
}

/// Lines in the font of code. Markdown leaves what stands in `<pre>` alone, so far as it is one.
fn preformatted(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars().filter(|&c| matches!(c, '\n' | '\t') || !c.is_control()) {
        match c {
            '&' | '<' | '>' | '[' | ']' | '`' | '@' => {
                let _ = write!(escaped, "&#{};", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    format!("<pre>{escaped}</pre>\n")
}

/// A fenced block, with a fence that the text doesn't hold.
fn code_block(language: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_nothing_to_markdown() {
        assert_eq!(escape("record.py:63 validate"), "record.py:63 validate");
        assert_eq!(escape("torch.nn.functional.batch_norm"), "torch.nn.functional.batch_norm");
        for nasty in
            ["](javascript:alert(1))", "<script>", "a|b", "```", "@everyone", "# x", "__init__", "a\n\nb"]
        {
            let escaped = escape(nasty);
            for bad in ["](", "<", "|", "`", "@", "# ", "__", "\n"] {
                assert!(!escaped.contains(bad), "{escaped}");
            }
        }
        assert!(!escape("see https://evil.example").contains("://"));
        assert_eq!(preformatted("</pre><b>"), "<pre>&#60;/pre&#62;&#60;b&#62;</pre>\n");
        assert!(code_block("sh", "a\n```\nb").starts_with("````sh\n"));
    }
}
