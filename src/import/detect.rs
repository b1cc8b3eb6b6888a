//! What is this file? By content, never by its name.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::training_log::{NAME as TRAINING_LOG, import_with_pattern};
use super::{IMPORTERS, ImportError, Importer, Input, Progress, text};
use crate::model::{Recording, SourceKind};
use crate::text::{msg, say, t};

/// The beginning of a file, inflated, as bytes and as text.
#[derive(Debug)]
pub struct Head<'a> {
    /// Up to 64 KiB.
    pub bytes: &'a [u8],
    /// The same as text: UTF-8 or UTF-16 with or without a byte order mark, undecodable bytes replaced.
    pub text: Cow<'a, str>,
}

impl<'a> Head<'a> {
    /// Decodes the beginning of a file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, text: text::decode(bytes) }
    }

    /// Whether the text begins with a JSON object or array.
    pub fn is_json(&self) -> bool {
        self.text.trim_start().starts_with(['{', '['])
    }
}

/// Opens and reads one file.
///
/// # Errors
/// See [`ImportError`].
pub fn import_path(path: &Path, progress: &Progress) -> Result<Recording, ImportError> {
    import_path_with(path, None, progress)
}

/// Opens and reads one file; one that is a training log, or of no known kind, by the user's pattern where there is one.
///
/// # Errors
/// See [`ImportError`].
pub fn import_path_with(
    path: &Path,
    log_pattern: Option<&Regex>,
    progress: &Progress,
) -> Result<Recording, ImportError> {
    let input = Input::open(path)?;
    let Some(pattern) = log_pattern else { return import(&input, progress) };
    let head_bytes = input.head()?;
    let head = Head::new(&head_bytes);
    let importer = importer_of(&head);
    let is_for_pattern = match importer {
        Some(importer) => importer.name() == TRAINING_LOG,
        None => looks_like(&head) == say(PLAIN_TEXT),
    };
    if !is_for_pattern {
        return import_as(importer, &head, &input, progress);
    }
    match import_with_pattern(&input, pattern, progress) {
        Err(ImportError::Content { .. }) if importer.is_some() => {
            let mut recording = import_as(importer, &head, &input, progress)?;
            let text = t!("no line has what your pattern looks for, so the usual words were sought");
            recording.warn("pattern", text);
            Ok(recording)
        }
        Err(ImportError::Content { file, .. }) => Err(ImportError::Unknown {
            looks_like: t!("this is text without what your pattern looks for").to_owned(),
            file,
        }),
        result => result,
    }
}

/// Finds the kind of an input and reads it.
///
/// # Errors
/// See [`ImportError`].
pub fn import(input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
    let head_bytes = input.head()?;
    let head = Head::new(&head_bytes);
    import_as(importer_of(&head), &head, input, progress)
}

/// Reads an input whose kind is known, or says why none is.
fn import_as(
    importer: Option<&dyn Importer>,
    head: &Head<'_>,
    input: &Input,
    progress: &Progress,
) -> Result<Recording, ImportError> {
    match importer {
        Some(importer) => importer.import(input, progress),
        None if head.bytes.is_empty() => Err(ImportError::Empty { file: input.name() }),
        None => Err(ImportError::Unknown { looks_like: looks_like(head), file: input.name() }),
    }
}

fn importer_of(head: &Head<'_>) -> Option<&'static dyn Importer> {
    // They hold figures, which would be read as a log's.
    if is_own(head) || is_page(head) {
        return None;
    }
    IMPORTERS.iter().copied().find(|importer| importer.detect(head))
}

/// The first columns of the tables that vramscope writes as CSV.
const OWN_COLUMNS: [&str; 8] = [
    "group,count,bytes,call_site,ops,",
    "process,rank,state,address,",
    "process,rank,kind,time_ns,",
    "source,process,lane,kind,name,",
    "source,process,quantity,device,",
    "process,rank,step,start_ns,",
    "process,rank,device,state,segment_address,",
    "process,rank,stack_id,depth,",
];

/// Whether vramscope wrote it: a report, or a table.
fn is_own(head: &Head<'_>) -> bool {
    let text = head.text.trim_start();
    let first_line = text.lines().next().unwrap_or_default();
    match text.chars().next() {
        Some('<') => {
            text.contains("<meta name=\"generator\" content=\"vramscope ")
                || text.starts_with("<svg class=\"chart\"")
        }
        // The command that gives the report again ends it.
        Some('*') => first_line.ends_with("**") && text.contains("```sh\nvramscope "),
        Some('{') => {
            text.lines().nth(1).is_some_and(|line| line.trim_start().starts_with("\"schema\": \"vramscope."))
        }
        // A table of one rank lacks the rank, which its folder names.
        _ => OWN_COLUMNS.iter().any(|columns| {
            first_line.starts_with(columns)
                || first_line.starts_with(&columns.replace("process,rank,", "process,"))
        }),
    }
}

fn is_page(head: &Head<'_>) -> bool {
    let text = head.text.trim_start().as_bytes();
    let starts =
        |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    starts("<!doctype html") || starts("<html")
}

/// How much of a file is read to tell its kind without reading it whole.
const BEGINNING_BYTES: u64 = 256 << 10;

/// Who reads a file, by its beginning.
fn importer_of_path(path: &Path) -> Option<&'static dyn Importer> {
    // What the system makes up when it is read has no length, and may block.
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    let mut bytes = Vec::new();
    let read = |file: std::fs::File| file.take(BEGINNING_BYTES).read_to_end(&mut bytes);
    if !is_file || std::fs::File::open(path).and_then(read).is_err() {
        return None;
    }
    let input = Input::from_bytes("", bytes);
    let head_bytes = input.head().ok()?;
    importer_of(&Head::new(&head_bytes))
}

/// Whether a file is of a kind that can be opened, by its beginning.
pub fn is_readable(path: &Path) -> bool {
    importer_of_path(path).is_some()
}

/// Whether a file is one process's trace or snapshot, by its beginning: those are large and come one a rank.
pub fn is_process_file(path: &Path) -> bool {
    let kinds = [SourceKind::Trace, SourceKind::Snapshot];
    importer_of_path(path).is_some_and(|importer| kinds.iter().any(|kind| kind.label() == importer.name()))
}

const PLAIN_TEXT: &str = msg!("this is text without memory figures");

/// What a file that nothing here can read seems to be.
fn looks_like(head: &Head<'_>) -> String {
    let known: &[(&[u8], &str)] = &[
        (b"\x89PNG", t!("a PNG image")),
        (b"\xff\xd8\xff", t!("a JPEG image")),
        (b"GIF8", t!("a GIF image")),
        (b"%PDF", t!("a PDF document")),
        (b"PK\x03\x04", t!("a zip archive (a PyTorch checkpoint is one too)")),
        (b"\x7fELF", t!("a program")),
        (b"MZ", t!("a program")),
        (b"SQLite format 3", t!("an SQLite database (Nsight Systems exports those)")),
        (b"\xfd7zXZ", t!("an xz archive")),
        (b"BZh", t!("a bzip2 archive")),
        (b"ustar", t!("a tar archive")),
        (b"RIFF", t!("a media file")),
        (b"PAR1", t!("a Parquet file")),
    ];
    if let Some((_, what)) = known.iter().find(|(magic, _)| head.bytes.starts_with(magic)) {
        return t!("this is {what}", what);
    }
    if head.bytes.get(257..262) == Some(b"ustar") {
        return t!("this is a tar archive").to_owned();
    }
    if is_own(head) {
        return t!("this is a report or a table that vramscope wrote").to_owned();
    }
    if is_page(head) {
        return t!(
            "this is a web page (export_memory_timeline writes a picture into it; export .json instead)"
        )
        .to_owned();
    }
    if head.is_json() {
        return t!("this is JSON without trace events, memory figures or stacks").to_owned();
    }
    if head.bytes.contains(&0) {
        return t!("this is a binary file").to_owned();
    }
    say(PLAIN_TEXT).to_owned()
}

/// Files as given, folders as the files in them (in the order of names, links not followed). A folder that can't be
/// listed stays in the list: opening it tells why.
pub fn expand_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths
        .iter()
        .flat_map(|path| {
            if path.is_dir() {
                walkdir::WalkDir::new(path)
                    .sort_by_file_name()
                    .into_iter()
                    .filter_map(|entry| match entry {
                        Ok(entry) => entry.file_type().is_file().then(|| entry.into_path()),
                        Err(error) => error.path().map(Path::to_owned),
                    })
                    .collect()
            } else {
                vec![path.clone()]
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_files_are_named_for_what_they_are() {
        let message = |bytes: &[u8]| {
            import(&Input::from_bytes("x.bin", bytes.to_vec()), &Progress::default()).unwrap_err().to_string()
        };
        assert_eq!(
            message(b"\x89PNG\r\n\x1a\n"),
            "this is a PNG image, which is none of the kinds that can be opened: x.bin"
        );
        assert!(message(b"<!DOCTYPE html><html>").starts_with("this is a web page"));
        assert_eq!(message(b""), "the file is empty: x.bin");
        for damaged in [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], b"\x1f\x8bgarbage", b"\x28\xb5\x2f\xfd\x00\xf8"]
        {
            assert!(message(damaged).starts_with("the compressed data is damaged or cut ("), "{damaged:?}");
        }
    }

    #[test]
    fn utf_16_is_decoded_with_and_without_a_mark() {
        let text = "timestamp, index";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(Head::new(&little).text, text);
        let mut marked = vec![0xff, 0xfe];
        marked.extend(&little);
        assert_eq!(Head::new(&marked).text, text);
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(Head::new(&big).text, text);
    }
}
