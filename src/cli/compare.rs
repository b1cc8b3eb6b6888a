//! `vramscope compare`: what lives at the end of one run and not of another.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::args::{CompareArgs, CompareFormat};
use super::{Status, open};
use crate::analysis::{Comparison, Side, Totals, compare, label_words};
use crate::model::{format_bytes, format_count, format_delta_bytes};
use crate::report::{escape_markdown, printable};
use crate::text::t;

/// The version of the JSON contract.
const SCHEMA: &str = "vramscope.compare/1";
/// People read no more rows than this; JSON has them all.
const MAX_ROWS: usize = 40;

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<Status> {
    let format = args.output.format(args.format, CompareFormat::Text)?;
    args.output.spare(&[args.before.clone(), args.after.clone()], &args.reading)?;
    let before = open::open(std::slice::from_ref(&args.before), &args.reading)?;
    let after = open::open(std::slice::from_ref(&args.after), &args.reading)?;
    let statuses = [before.complain()?, after.complain()?];
    let comparison = compare(&before.index, &after.index);
    let text = match format {
        CompareFormat::Text => printable(&to_text(&comparison)).into_owned(),
        CompareFormat::Md => to_markdown(&comparison),
        CompareFormat::Json => to_json(&comparison, &args.before, &args.after)?,
    };
    args.output.write_all(text.as_bytes())?;
    Ok(if statuses.contains(&Status::InputLeftOut) { Status::InputLeftOut } else { Status::Done })
}

fn headline(comparison: &Comparison) -> String {
    let delta = i128::from(comparison.after.bytes) - i128::from(comparison.before.bytes);
    t!(
        "{after} alive at the end, {before} before: {change}",
        after = format_bytes(comparison.after.bytes),
        before = format_bytes(comparison.before.bytes),
        change = format_delta_bytes(delta.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    )
}

fn side_text(side: &Side) -> String {
    if side.totals.count == 0 {
        return t!("none").to_owned();
    }
    t!("{bytes} in {count}", bytes = format_bytes(side.totals.bytes), count = format_count(side.totals.count))
}

fn to_text(comparison: &Comparison) -> String {
    let mut text = headline(comparison) + "\n";
    let changed: Vec<_> =
        comparison.differences.iter().filter(|difference| difference.before != difference.after).collect();
    for difference in changed.iter().take(MAX_ROWS) {
        let _ = writeln!(
            text,
            "{:>12}  {}",
            format_delta_bytes(difference.delta_bytes()),
            t!(
                "{place}  ({after}, before: {before})",
                place = label_words(&difference.call_site),
                after = side_text(&difference.after),
                before = side_text(&difference.before)
            )
        );
    }
    if changed.len() > MAX_ROWS {
        let _ = writeln!(
            text,
            "{}",
            t!("… and {count} more", count = format_count((changed.len() - MAX_ROWS) as u64))
        );
    }
    if !comparison.figures.is_empty() {
        let _ = writeln!(text, "{}", t!("memory summaries"));
    }
    for figure in comparison.figures.iter().take(MAX_ROWS) {
        let _ = writeln!(text, "  {}: {} → {}", figure.name, figure.before, figure.after);
    }
    text
}

fn to_markdown(comparison: &Comparison) -> String {
    let mut text = format!(
        "**{}**\n\n{}\n",
        escape_markdown(&headline(comparison)),
        t!("| call site | change | after | before |")
    );
    text.push_str("| --- | ---: | ---: | ---: |\n");
    for difference in comparison
        .differences
        .iter()
        .filter(|difference| difference.before != difference.after)
        .take(MAX_ROWS)
    {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            escape_markdown(&label_words(&difference.call_site)),
            format_delta_bytes(difference.delta_bytes()),
            side_text(&difference.after),
            side_text(&difference.before)
        );
    }
    text
}

#[derive(Serialize)]
struct Json<'a> {
    schema: &'static str,
    before: Run<'a>,
    after: Run<'a>,
    differences: Vec<JsonDifference<'a>>,
    figures: Vec<JsonFigure<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    path: &'a PathBuf,
    count: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonSide {
    count: u64,
    bytes: u64,
    per_step_bytes: u64,
}

#[derive(Serialize)]
struct JsonDifference<'a> {
    call_site: &'a str,
    delta_bytes: i64,
    before: JsonSide,
    after: JsonSide,
    stack: &'a [String],
}

#[derive(Serialize)]
struct JsonFigure<'a> {
    name: &'a str,
    before: i64,
    after: i64,
}

fn to_json(comparison: &Comparison, before: &PathBuf, after: &PathBuf) -> anyhow::Result<String> {
    let run = |path, totals: Totals| Run { path, count: totals.count, bytes: totals.bytes };
    let side = |side: &Side| JsonSide {
        count: side.totals.count,
        bytes: side.totals.bytes,
        per_step_bytes: side.per_step_bytes,
    };
    let json = Json {
        schema: SCHEMA,
        before: run(before, comparison.before),
        after: run(after, comparison.after),
        differences: comparison
            .differences
            .iter()
            .map(|difference| JsonDifference {
                call_site: &difference.call_site,
                delta_bytes: difference.delta_bytes(),
                before: side(&difference.before),
                after: side(&difference.after),
                stack: &difference.stack,
            })
            .collect(),
        figures: comparison
            .figures
            .iter()
            .map(|figure| JsonFigure { name: &figure.name, before: figure.before, after: figure.after })
            .collect(),
    };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}
