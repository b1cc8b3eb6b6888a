//! Where a command's result goes: a file, or stdout.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::UsageError;
use super::args::Reading;
use crate::import;
use crate::report::{spare, write_file, write_into};
use crate::text::t;

/// `-o PATH`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Output {
    /// Write into this file instead of to the terminal; `-` is the terminal
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
}

impl Output {
    /// The file, unless the terminal is meant.
    pub fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| path.as_os_str() != "-")
    }

    /// What to write: the format that was asked for, else the one of the file's extension.
    ///
    /// # Errors
    /// For an extension of no format, which names those that there are.
    pub(super) fn format<F: ValueEnum>(&self, asked: Option<F>, default: F) -> Result<F, UsageError> {
        let extension = self.path().and_then(|path| Some((path, path.extension()?.to_str()?)));
        match (asked, extension) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(default),
            (None, Some((path, extension))) => F::from_str(extension, true).map_err(|_| {
                let formats = F::value_variants().iter().filter_map(F::to_possible_value);
                let names: Vec<String> = formats.map(|format| format.get_name().to_owned()).collect();
                UsageError(t!(
                    "nothing is written as .{extension} here; there are {formats}, which --format names too: {path}",
                    extension,
                    formats = names.join(", "),
                    path = path.display()
                ))
            }),
        }
    }

    /// Refuses a file that the result is made from: one that was named, or one in a folder that would be read.
    pub(super) fn spare(&self, inputs: &[PathBuf], reading: &Reading) -> Result<(), UsageError> {
        let Some(path) = self.path().filter(|path| path.is_file()) else { return Ok(()) };
        let is_read = reading.log_pattern.is_some() || import::is_readable(path);
        let made_from = if is_read { import::expand_paths(inputs) } else { inputs.to_vec() };
        spare(path, made_from.iter().map(PathBuf::as_path)).map_err(UsageError)
    }

    /// Writes the result to where it belongs.
    pub(super) fn write(
        &self,
        fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        if let Some(path) = self.path() {
            return Ok(write_file(path, fill)?);
        }
        write_into(io::stdout().lock(), fill)
    }

    /// Writes bytes to where they belong.
    pub(super) fn write_all(&self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write(|out| Ok(out.write_all(bytes)?))
    }
}

/// Writes bytes to stdout.
pub(super) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    Output::default().write_all(bytes)
}
