//! Where a command's result goes: a file, or stdout.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::report::write_file;

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

    /// Writes bytes to where they belong.
    pub(super) fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        match self.path() {
            Some(path) => write_file(path, |file| Ok(file.write_all(bytes)?)),
            None => print(bytes),
        }
    }
}

/// Writes bytes to stdout.
pub(super) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()?;
    Ok(())
}
