//! The commands: the same analysis as the window's, for terminals and scripts.

mod args;
mod compare;
mod completions;
mod export;
mod inspect;
mod open;
mod output;
mod query;
mod ranks;
mod record;
mod report;
mod select;

use std::io::{self, Write as _};
use std::process::ExitCode;

use crate::report::{WriteError, printable};
pub use args::{Args, Command};

/// Wrong usage that only shows once the files are open: a step that isn't there, a source of no such name.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

/// How a command that ran to its end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Everything was used.
    Done,
    /// An input could not be used, and was named.
    InputLeftOut,
}

impl Status {
    /// How it went with these left out.
    fn with<T>(left_out: &[T]) -> Self {
        if left_out.is_empty() { Self::Done } else { Self::InputLeftOut }
    }
}

/// Runs a command: 0 done, 1 an input could not be used or an output not written, 2 wrong usage.
pub fn run(command: &Command) -> ExitCode {
    let result = match command {
        Command::Inspect(args) => inspect::run(args),
        Command::Report(args) => report::run(args),
        Command::Export(args) => export::run(args),
        Command::Query(args) => query::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Record(args) => record::run(args),
        Command::Completions { shell } => completions::run(*shell),
        Command::Man { output } => completions::man(output.as_deref()),
    };
    match result {
        Ok(Status::Done) => ExitCode::SUCCESS,
        Ok(Status::InputLeftOut) => ExitCode::from(1),
        // Whoever reads the output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
        }
    }
}

/// One sentence on stderr, whether or not anyone reads it.
fn complain(text: &str) {
    let text = printable(text).replace('\n', " ");
    let _ = writeln!(io::stderr(), "vramscope: {text}");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    let error = error.downcast_ref::<WriteError>().map_or(error, |error| &error.cause);
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_pipe))
}
