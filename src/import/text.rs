//! Text of logs: decoding, escape codes, carriage returns and the prefixes that collectors put before lines.

use std::borrow::Cow;
use std::sync::LazyLock;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use regex::Regex;

use super::input::Content;
use super::{Head, ImportError, Input, Progress};
use crate::model::format_count;
use crate::text::t;

/// Logs beyond this are read up to here.
const LIMIT_BYTES: u64 = 2 << 30;

/// What a compressed log may inflate to: so much, and so many times its size.
const INFLATED_BYTES: u64 = 128 << 20;
const INFLATED_TIMES: u64 = 20;

/// How many lines a compressed log may have: so many, and one for so many bytes of the file. Lines cost more than their
/// bytes, and those of a log that was made to fill the memory compress a thousandfold.
const INFLATED_LINES: u64 = 2_000_000;
const BYTES_PER_LINE: u64 = 16;

/// No line of a log is longer; of those that are, made or damaged, only the beginning is searched.
const LINE_BYTES: usize = 64 << 10;

/// Terminal escape codes: colours, cursor movement, window titles.
static ESCAPE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9])").ok());

/// What Kubernetes, Docker Compose, torchrun and loggers put before a line of another program.
static PREFIX: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) [FP] |\[(?:rank|default|worker)[ _:-]?\d*\]:? ?|[\w.-]+ +\| |(?:INFO|WARNING|ERROR|DEBUG):\S* ?)+",
    )
    .ok()
});

/// The encoding that the beginning of a text shows: UTF-16 with or without a mark, else UTF-8.
pub(super) fn encoding_of(bytes: &[u8]) -> &'static Encoding {
    match bytes {
        [0xff, 0xfe, ..] => UTF_16LE,
        [0xfe, 0xff, ..] => UTF_16BE,
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => UTF_16LE,
        [0, first, 0, second, ..] if *first != 0 && *second != 0 => UTF_16BE,
        _ => UTF_8,
    }
}

/// Bytes as text; what can't be decoded is replaced.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    encoding_of(bytes).decode(bytes).0
}

/// The text of a log and why it ends early, when it does.
pub(super) struct LogText {
    pub text: String,
    pub cut: Option<String>,
}

/// Reads and decodes a whole log: UTF-8 or UTF-16, byte order marks dropped. A UTF-8 log to which PowerShell appended
/// UTF-16 keeps its letters, since only the zero bytes between them go.
pub(super) fn read_text(input: &Input, progress: &Progress) -> Result<LogText, ImportError> {
    let is_compressed = input.is_compressed();
    let most = INFLATED_BYTES.saturating_add(input.disk_bytes().saturating_mul(INFLATED_TIMES));
    let limit = if is_compressed { most.min(LIMIT_BYTES) } else { LIMIT_BYTES };
    let inflated = input.read_all(progress, limit)?;
    let mut text = into_text(inflated.bytes);
    let mut cut = inflated.cut;
    if is_compressed {
        let left_out = cut_lines(&mut text, INFLATED_LINES + input.disk_bytes() / BYTES_PER_LINE);
        if left_out > 0 {
            let lines = t!("its last {count} lines were left out", count = format_count(left_out));
            let why = cut.unwrap_or_else(|| t!("it has more lines than its size allows").to_owned());
            cut = Some(why + t!("; ") + &lines);
        }
    }
    if text.contains(['\0', '\u{feff}']) {
        text.retain(|c| c != '\0' && c != '\u{feff}');
    }
    if text.contains('\x1b')
        && let Some(escape) = ESCAPE.as_ref()
    {
        text = escape.replace_all(&text, "").into_owned();
    }
    Ok(LogText { text, cut })
}

fn into_text(bytes: Content<'_>) -> String {
    match bytes {
        Content::Bytes(Cow::Owned(bytes)) if encoding_of(&bytes) == UTF_8 => {
            String::from_utf8(bytes).unwrap_or_else(|error| decode(error.as_bytes()).into_owned())
        }
        bytes => decode(&bytes).into_owned(),
    }
}

/// Leaves so many lines of a text, and tells how many went. Parts that begin with a carriage return count as lines.
fn cut_lines(text: &mut String, most: u64) -> u64 {
    let mut ends = memchr::memchr2_iter(b'\n', b'\r', text.as_bytes());
    let Some(last) = most.checked_sub(1).and_then(|last| ends.nth(last as usize)) else { return 0 };
    let left_out = ends.count() as u64 + u64::from(!text.ends_with(['\n', '\r']));
    text.truncate(last + 1);
    left_out
}

/// The beginning of a file as [`read_text`] would give it.
pub(super) fn clean_head(head: &Head<'_>) -> String {
    let text: String = head.text.chars().filter(|&c| c != '\0' && c != '\u{feff}').collect();
    match ESCAPE.as_ref() {
        Some(escape) if text.contains('\x1b') => escape.replace_all(&text, "").into_owned(),
        _ => text,
    }
}

/// The lines with their numbers from 1; a carriage return, as progress bars write it, begins a new part of a line.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    text.split('\n').enumerate().flat_map(|(index, line)| {
        line.split('\r')
            .map(|part| &part[..part.floor_char_boundary(LINE_BYTES)])
            .filter(|part| !part.trim().is_empty())
            .map(move |part| (index as u64 + 1, part))
    })
}

/// Rows of a CSV as logs hold them: a header may come anywhere and again, rows may be cut.
pub(super) fn csv_rows() -> csv::ReaderBuilder {
    let mut rows = csv::ReaderBuilder::new();
    rows.has_headers(false).flexible(true).trim(csv::Trim::All);
    rows
}

/// A line without what a collector put before it.
pub(super) fn without_prefix(line: &str) -> &str {
    let end = PREFIX.as_ref().and_then(|prefix| prefix.find(line)).map_or(0, |found| found.end());
    &line[end..]
}

/// The text with collectors' prefixes removed from every line, if the lines have any.
pub(super) fn without_prefixes(text: &str) -> Cow<'_, str> {
    if !text.lines().take(20).any(|line| without_prefix(line).len() < line.len()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(without_prefix(line));
        out.push('\n');
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: Vec<u8>) -> String {
        read_text(&Input::from_bytes("x.log", bytes), &Progress::default()).unwrap().text
    }

    #[test]
    fn encodings_and_colours_are_undone() {
        let utf16: Vec<u8> =
            [0xfeff].into_iter().chain("mem 5".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(utf16), "mem 5");
        let mut mixed = b"a, b\n".to_vec();
        mixed.extend("c, d".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(read(mixed), "a, b\nc, d");
        assert_eq!(read(b"\xef\xbb\xbf\x1b[1;32mstep\x1b[0m 3".to_vec()), "step 3");
    }

    #[test]
    fn carriage_returns_part_lines_and_prefixes_go() {
        let parts: Vec<_> = lines("a\rb\r\n\nc").collect();
        assert_eq!(parts, [(1, "a"), (1, "b"), (3, "c")]);
        assert_eq!(without_prefix("2026-03-02T09:15:00Z stdout F step 1"), "step 1");
        assert_eq!(without_prefix("[rank0]: step 1"), "step 1");
        assert_eq!(without_prefix("trainer-1  | step 1"), "step 1");
        assert_eq!(without_prefix("| 41%   63C"), "| 41%   63C");
    }

    #[test]
    fn lines_beyond_a_number_are_counted_and_left_out() {
        for (whole, kept, left_out) in
            [("a\nb\nc\n", "a\nb\n", 1), ("a\rb\nc\nd", "a\rb\n", 2), ("a\nb\n", "a\nb\n", 0), ("a", "a", 0)]
        {
            let mut text = whole.to_owned();
            assert_eq!((cut_lines(&mut text, 2), text.as_str()), (left_out, kept));
        }
    }

    #[test]
    fn a_compressed_log_has_no_more_lines_than_its_size_allows() {
        let log = |compressed: bool| {
            let text = "x\n".repeat(INFLATED_LINES as usize + 500_000);
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
            let bytes = if compressed { gzip.finish().unwrap() } else { text.into_bytes() };
            read_text(&Input::from_bytes("x.log", bytes), &Progress::default()).unwrap()
        };
        let whole = log(false);
        assert_eq!((whole.text.len() as u64 / 2, whole.cut), (INFLATED_LINES + 500_000, None));
        let cut = log(true);
        assert!(cut.text.len() as u64 / 2 < INFLATED_LINES + 10_000, "{}", cut.text.len());
        assert!(cut.cut.unwrap().starts_with("it has more lines than its size allows; its last 49"));
    }
}
