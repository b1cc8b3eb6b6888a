//! Text as tools leave it: UTF-8 or UTF-16, with byte order marks, colours and progress bars.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

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

/// A line without terminal colours, and of a progress bar that rewrites its line only the last state.
pub(super) fn plain_line(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches(['\r', '\n']);
    let line = line.rsplit('\r').next().unwrap_or(line);
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        // CSI sequences end with a letter; of others the one character after ESC goes.
        let end = match rest.strip_prefix('[') {
            Some(inner) => inner.find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |at| at + 2),
            None => rest.chars().next().map_or(0, char::len_utf8),
        };
        rest = &rest[end..];
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_rewritten_lines_go() {
        assert_eq!(plain_line("\u{1b}[32mmem\u{1b}[0m 5 MiB\r"), "mem 5 MiB");
        assert_eq!(plain_line(" 10%\r 20%\r 30%"), " 30%");
        assert_eq!(plain_line("cut \u{1b}["), "cut ");
    }
}
