//! `vramscope report`.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::args::{ReportArgs, ReportFormat};
use super::ranks::Ranks;
use super::select::Selected;
use super::{Status, UsageError, complain, open, select};
use crate::analysis::Index;
use crate::import::ImportError;
use crate::model::{TimeRange, format_count};
use crate::report::{self, LeftOut, Options, Process, Redactor, Report, quote};
use crate::text::t;

/// An error names no more processes than this.
const MAX_NAMES: usize = 16;

pub(super) fn run(args: &ReportArgs) -> anyhow::Result<Status> {
    // What a preview is written into has no format.
    let format =
        if args.preview { ReportFormat::Md } else { args.output.format(args.format, ReportFormat::Md)? };
    args.output.spare(&args.inputs.files, &args.inputs.reading)?;
    let mut redactor = Redactor::default();
    let (mut report, left_out) = match Ranks::of(&args.inputs.files, args.one_by_one) {
        Some(ranks) => one_by_one(args, &ranks, &mut redactor)?,
        None => {
            let loaded = open::open(&args.inputs.files, &args.inputs.reading)?;
            loaded.complain()?;
            let selected = select::select(&loaded.index, &args.selecting)?;
            let report = build(args, &loaded.index, selected, &mut redactor);
            (report, unusable(args, &loaded.failed, &mut redactor))
        }
    };
    let status = Status::with(&left_out);
    report.left_out = left_out;
    if args.preview {
        args.output.write_all(report::preview(&report, &redactor.replaced()).as_bytes())?;
    } else {
        args.output.write(|out| report::render(&report, format.into(), out))?;
    }
    if !span(&report.range).overlaps(span(&report.session)) {
        complain(t!("the range lies outside the recording, so nothing was allocated in it"));
    }
    Ok(status)
}

fn span(range: &report::Range) -> TimeRange {
    TimeRange { start_ns: range.start_ns, end_ns: range.end_ns }
}

fn build(args: &ReportArgs, index: &Index, selected: Selected, redactor: &mut Redactor) -> Report {
    let options = Options {
        all_allocations: args.all,
        command: Some(command_line(&typed(), args)),
        range_label: selected.label,
        ..Options::default()
    };
    let report = report::build(index, &selected.query, args.group_by, &options);
    if args.is_redacted() { redactor.redact(report, index, args.redact_code) } else { report }
}

/// All ranks in a table, and the report of the worst one or the one that was asked for. Of the others only the table's
/// row is kept.
fn one_by_one(
    args: &ReportArgs,
    ranks: &Ranks,
    redactor: &mut Redactor,
) -> anyhow::Result<(Report, Vec<LeftOut>)> {
    let mut processes: Vec<Process> = Vec::new();
    let mut shown: Option<((Option<i64>, u64), Report)> = None;
    let mut unselected: Vec<LeftOut> = Vec::new();
    let mut last_error: Option<UsageError> = None;
    let mut of_all = args.selecting.clone();
    let asked_for = of_all.source.take();
    let failed = ranks.each(&args.inputs.reading, true, |index| {
        let selected = match select::select(index, &of_all) {
            Ok(selected) => selected,
            // A rank that died early lacks the steps that the others have.
            Err(error) => {
                let labels: Vec<&str> =
                    index.session.processes.iter().map(|process| process.label.as_str()).collect();
                complain(&t!("{error}; left out: {names}", error, names = labels.join(", ")));
                unselected.extend(index.session.processes.iter().map(|process| LeftOut {
                    name: process.label.clone(),
                    rank: process.rank,
                    cause: error.to_string(),
                }));
                last_error = Some(error);
                return Ok(());
            }
        };
        let mut report = build(args, index, selected, redactor);
        let mut rows = report.processes.clone();
        let weight = rows.iter().map(Process::weight).max().unwrap_or_default();
        let is_shown = match &asked_for {
            Some(name) => select::find_process(&index.session, name).is_ok(),
            None => shown.as_ref().is_none_or(|(heaviest, _)| weight > *heaviest),
        };
        if is_shown {
            if asked_for.is_some() && rows.len() > 1 {
                report = build(args, index, select::select(index, &args.selecting)?, redactor);
            }
            shown = Some((weight, report));
        }
        processes.append(&mut rows);
        Ok(())
    })?;
    let mut left_out = unusable(args, &failed, redactor);
    left_out.append(&mut unselected);
    match (shown, asked_for, last_error) {
        (Some((_, report)), ..) => Ok((with_ranks(report, processes, args), left_out)),
        (None, Some(name), _) if !processes.is_empty() => {
            let names = processes.iter().take(MAX_NAMES).map(|process| process.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let more = if processes.len() > MAX_NAMES { "…" } else { "" };
            Err(UsageError(t!(
                "no process or source is named `{name}`; there are {names}",
                name,
                names = names + more
            ))
            .into())
        }
        (None, _, Some(error)) => Err(error.into()),
        (None, ..) => anyhow::bail!(t!("none of the files tells of a process")),
    }
}

/// What a report says of files that could not be used.
fn unusable(args: &ReportArgs, failed: &[(PathBuf, ImportError)], redactor: &mut Redactor) -> Vec<LeftOut> {
    let files = failed.iter().map(|(path, error)| LeftOut::file(path, error.cause()));
    match args.is_redacted() {
        true => files.map(|file| redactor.left_out(file)).collect(),
        false => files.collect(),
    }
}

/// The report of one rank, with the table of all.
fn with_ranks(mut report: Report, mut processes: Vec<Process>, args: &ReportArgs) -> Report {
    let outliers = report::rank_processes(&mut processes);
    let shown: Vec<&str> = report.processes.iter().map(|process| process.name.as_str()).collect();
    let (all, names) = (format_count(processes.len() as u64), shown.join(t!(", ")));
    report.summary = match outliers {
        0 => t!(
            "None of {all} ranks stand out. {processes}: {summary}",
            all,
            processes = names,
            summary = report.summary
        ),
        _ => t!(
            "{count} of {all} ranks stand out. {processes}: {summary}",
            count = format_count(outliers as u64),
            all,
            processes = names,
            summary = report.summary
        ),
    };
    report.command_for_another = Some(command_for_another(&processes, &shown, args));
    report.processes = processes;
    report
}

/// The command that reports another rank in full, the next worst.
fn command_for_another(processes: &[Process], shown: &[&str], args: &ReportArgs) -> String {
    let next = processes.iter().map(|process| process.name.as_str()).find(|name| !shown.contains(name));
    let mut words: Vec<String> = Vec::new();
    let mut typed = typed().into_iter();
    while let Some(word) = typed.next() {
        match word.as_str() {
            "--source" | "-o" | "--output" => drop(typed.next()),
            word if ["--source=", "--output=", "-o"].iter().any(|option| word.starts_with(option)) => {}
            _ => words.push(word),
        }
    }
    let source = quote(next.unwrap_or("rank 0"));
    format!("{} --source {source}", command_line(&words, args))
}

/// The command line as it was typed, without the program.
fn typed() -> Vec<String> {
    // File names need not be UTF-8.
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// The command as it was typed, quoted for a shell. Redacted reports name no files and folders, and
/// no pattern, which may hold names.
fn command_line(typed: &[String], args: &ReportArgs) -> String {
    let mut words = vec!["vramscope".to_owned()];
    for word in typed {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (format!("{option}="), value),
            _ => (String::new(), word.as_str()),
        };
        let is_redacted = args.is_redacted();
        let pattern = args.inputs.reading.log_pattern.as_ref().map(Regex::as_str);
        let value = match value {
            value if is_redacted && pattern == Some(value) => "PATTERN",
            value if is_redacted && is_name(value, args) => "NAME",
            value => value,
        };
        words.push(option + &quote(value));
    }
    words.join(" ")
}

/// Whether a word of the command line names something of the user's.
fn is_name(word: &str, args: &ReportArgs) -> bool {
    let path = Path::new(word);
    args.inputs.files.iter().any(|file| file == path)
        || args.output.output.as_deref() == Some(path)
        || args.selecting.source.as_deref() == Some(word)
        || args.inputs.reading.user_code.iter().any(|code| code == word)
        || args.inputs.reading.offset.iter().any(|offset| word.starts_with(offset.name.as_str()))
}
