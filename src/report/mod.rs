//! Findings that travel: the report of a range as HTML, Markdown, JSON or CSV, and the session's tables.
//!
//! [`build`] turns an answer of the analysis into a [`Report`] of text and numbers; each format only writes it down.

mod build;
mod chart;
mod command;
mod contract;
mod csv;
mod curves;
mod html;
mod json;
mod markdown;
mod preview;
mod printable;
mod redact;
pub mod tables;
mod words;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::text::t;
pub use build::{build, mark_outliers, process, rank_processes};
pub(crate) use build::{link, source};
pub use command::quote;
pub use contract::*;
pub(crate) use csv::guard;
pub(crate) use markdown::escape as escape_markdown;
pub use preview::{Replacement, preview};
pub use printable::printable;
pub use redact::{Redactor, redactions};
pub use tables::Table;
pub use words::{range_label, stands_out};

/// What a report is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One file that a browser opens, without network.
    Html,
    /// For an issue or a chat.
    Markdown,
    /// For scripts.
    Json,
    /// The groups as a table.
    Csv,
    /// The curves as a picture that scales.
    Svg,
    /// The curves as a picture of pixels.
    Png,
}

impl Format {
    /// All of them, in the order of menus.
    pub const ALL: [Self; 6] = [Self::Html, Self::Markdown, Self::Json, Self::Csv, Self::Svg, Self::Png];

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Html => "HTML",
            Self::Markdown => "Markdown",
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Svg => t!("SVG, the curves"),
            Self::Png => t!("PNG, the curves"),
        }
    }

    /// The usual extension of such a file, which is its name on the command line too.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Svg => "svg",
            Self::Png => "png",
        }
    }

    /// The format that a file's extension asks for.
    pub fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "htm" => Some(Self::Html),
            "markdown" => Some(Self::Markdown),
            _ => Self::ALL.into_iter().find(|format| format.extension() == extension),
        }
    }
}

/// How a report is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// List every survivor, not only the largest.
    pub all_allocations: bool,
    /// Replace the names of users, hosts, folders, opened files, boards and processes.
    pub redact: bool,
    /// Replace these, and the names of the user's own source files and functions, and of modules.
    pub redact_code: bool,
    /// Files that could not be read.
    pub left_out: Vec<LeftOut>,
    /// The command that gives this report again; without it the report works one out.
    pub command: Option<String>,
    /// The range in words; without it the report says it by steps or offsets.
    pub range_label: Option<String>,
}

/// Writes a report down.
///
/// # Errors
/// When there is nothing to draw, or `out` can't be written.
pub fn render(report: &Report, format: Format, out: &mut dyn Write) -> anyhow::Result<()> {
    let bytes = match format {
        Format::Html => without_codes(html::render(report)),
        Format::Markdown => markdown::render(report).into_bytes(),
        Format::Json => return Ok(json::write(report, out)?),
        Format::Csv => csv::render(report)?,
        Format::Svg => without_codes(chart::svg_file(report).context(t!("there is no curve to draw"))?),
        Format::Png => chart::png_file(report).context(t!("there is no curve to draw"))??,
    };
    Ok(out.write_all(&bytes)?)
}

/// The bytes of a page without control codes, which names may hold but XML may not.
fn without_codes(mut page: String) -> Vec<u8> {
    page.retain(|c| !c.is_control() || matches!(c, '\n' | '\t'));
    page.into_bytes()
}

/// Writes a report into a file. An older file at `path` survives until the new one is complete.
///
/// # Errors
/// When the file can't be written.
pub fn write(report: &Report, format: Format, path: &Path) -> anyhow::Result<()> {
    Ok(write_file(path, |out| render(report, format, out))?)
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
#[error("{}", cant_be_written(.cause, .path))]
pub struct WriteError {
    /// What went wrong.
    pub cause: anyhow::Error,
    /// The file that was asked for.
    pub path: PathBuf,
}

fn cant_be_written(cause: &anyhow::Error, path: &Path) -> String {
    t!("the file can't be written ({cause}): {path}", cause = cause.root_cause(), path = path.display())
}

/// Refuses to write where one of the files lies that the output is made from, by whatever name.
///
/// # Errors
/// A sentence that names the file.
pub fn spare<'a>(path: &Path, made_from: impl IntoIterator<Item = &'a Path>) -> Result<(), String> {
    match made_from.into_iter().any(|source| same_file::is_same_file(path, source).unwrap_or(false)) {
        true => {
            Err(t!("the output would replace a file that it is made from: {path}", path = path.display()))
        }
        false => Ok(()),
    }
}

/// Writes a file beside `path` and renames it when it is complete. What is no regular file, such as a pipe, is written
/// into; a link keeps leading to the file that it leads to.
pub(crate) fn write_file(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> Result<(), WriteError> {
    try_write(path, fill).map_err(|cause| WriteError { cause, path: path.to_owned() })
}

/// Writes what `fill` gives. Where that fails, the error is the writer's own: libraries wrap it in words that mislead.
pub(crate) fn write_into(
    out: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut out = Noting { out: BufWriter::new(out), error: None };
    let written = fill(&mut out).and_then(|()| Ok(out.flush()?));
    out.error.map_or(written, |error| Err(error.into()))
}

/// A writer that notes its first error.
struct Noting<W> {
    out: W,
    error: Option<io::Error>,
}

impl<W> Noting<W> {
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted {
                self.error.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Noting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.note(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.note(result)
    }
}

fn try_write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return write_into(std::fs::OpenOptions::new().write(true).open(path)?, fill);
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Readable by whom the umask lets read, as any file that a program writes.
    let make = |beside: &Path| std::fs::File::create_new(beside);
    let mut file = tempfile::Builder::new().prefix(".vramscope-").make_in(folder, make)?;
    write_into(file.as_file_mut(), fill)?;
    // Network and quota file systems tell only now that there is no room.
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|refused| refused.error)?;
    Ok(())
}
