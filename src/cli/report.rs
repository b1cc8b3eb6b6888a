//! `vramscope report`.

use std::path::Path;

use super::args::{ReportArgs, ReportFormat};
use super::{Status, complain, open, select};
use crate::report::{self, Format, Options, quote};

pub(super) fn run(args: &ReportArgs) -> anyhow::Result<Status> {
    let loaded = open::open(&args.inputs.files, &args.inputs.reading)?;
    let status = loaded.complain()?;
    let index = &loaded.index;
    let selected = select::select(index, &args.selecting)?;
    if !selected.query.range.overlaps(index.session.span) {
        complain("the range lies outside the recording, so nothing was allocated in it");
    }
    // File names need not be UTF-8.
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let options = Options {
        all_allocations: args.all,
        redact: args.redact,
        redact_code: args.redact_code,
        command: Some(command_line(typed, args)),
        range_label: selected.label,
    };
    let report = report::build(index, &selected.query, args.group_by, &options);
    let format = match (args.format, args.output.path()) {
        (Some(format), _) => Format::from(format),
        (None, Some(path)) => Format::of_path(path).unwrap_or(ReportFormat::Md.into()),
        (None, None) => ReportFormat::Md.into(),
    };
    args.output.write(&report::render(&report, format)?)?;
    Ok(status)
}

/// The command as it was typed, quoted for a shell. Redacted reports name no files and folders.
fn command_line(typed: impl Iterator<Item = String>, args: &ReportArgs) -> String {
    let mut words = vec!["vramscope".to_owned()];
    for word in typed {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (format!("{option}="), value),
            _ => (String::new(), word.as_str()),
        };
        let value = if (args.redact || args.redact_code) && is_name(value, args) { "NAME" } else { value };
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
