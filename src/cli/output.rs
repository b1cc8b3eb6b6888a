//! Where a command's result goes: a file, or stdout.

use std::borrow::Cow;
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

/// Text as a terminal shows it and nothing else: a name that holds control codes can't move the cursor, change the title
/// or turn the direction of the line.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let is_code = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.contains(is_code) { Cow::Owned(text.replace(is_code, "\u{fffd}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_are_shown_and_not_obeyed() {
        assert_eq!(printable("batch_norm\n\t归一化"), "batch_norm\n\t归一化");
        assert_eq!(printable("\u{1b}]0;title\u{7}\u{9b}2J\u{202e}x\r"), "�]0;title��2J�x�");
    }
}
