//! `vramscope record`: the Python that records everything that can be opened here.

use super::args::RecordArgs;
use super::{Status, UsageError, output};
use crate::text::t;

pub(super) fn run(args: &RecordArgs) -> anyhow::Result<Status> {
    output::print(script(args)?.as_bytes())?;
    Ok(Status::Done)
}

/// A module to save beside the training script, with its use in the head comment.
fn script(args: &RecordArgs) -> Result<String, UsageError> {
    if args.steps == 0 || args.max_entries == 0 {
        return Err(UsageError(t!("--steps and --max-entries must be at least 1").to_owned()));
    }
    let template = if args.light { LIGHT } else { FULL };
    Ok(template
        .replace("@FOLDER@", &python_string(&args.folder))
        .replace("@STEPS@", &args.steps.to_string())
        .replace("@AFTER@", &args.after.to_string())
        .replace("@MAX_ENTRIES@", &args.max_entries.to_string()))
}

/// A Python string literal of any text.
fn python_string(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            c if c.is_control() => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

const FULL: &str = include_str!("../../assets/record.py");
const LIGHT: &str = include_str!("../../assets/record_light.py");

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn args() -> RecordArgs {
        RecordArgs {
            steps: 6,
            after: 5,
            max_entries: 1_000_000,
            light: false,
            folder: "it's \"a\" \\ run".to_owned(),
        }
    }

    #[test]
    fn what_is_printed_is_python() {
        for light in [false, true] {
            let text = script(&RecordArgs { light, ..args() }).unwrap();
            assert!(!text.contains('@'), "nothing is left to fill in");
            let compile = "import sys; compile(sys.argv[1], 'record.py', 'exec')";
            match Command::new("python3").args(["-c", compile, &text]).output() {
                Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
                Err(_) => println!("skipped: no python3 here"),
            }
        }
    }

    #[test]
    fn nothing_to_record_is_wrong_usage() {
        assert!(script(&RecordArgs { steps: 0, ..args() }).is_err());
    }
}
