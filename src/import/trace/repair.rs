//! Events whose JSON is broken: a quote or backslash in a name, control characters, bare words.
//!
//! torch.profiler wrote names without escaping them until 2026. The rule: a text ends at a quote that is followed by
//! `,` and a key that belongs at this place, or by the end of the event or of its arguments; whatever comes before
//! belongs to the text. Only events that the strict reader refuses are read this way.

use memchr::memmem;

/// Keys of an event: after a comma, one of these shows that the quote before ended a text.
const EVENT_KEYS: &[&str] =
    &["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "sf", "tts"];

/// Keys of an event's arguments, likewise. A list apart, since names are often JSON themselves.
const ARGS_KEYS: &[&str] = &[
    "External id",
    "Trace name",
    "Trace iteration",
    "Record function id",
    "Sequence number",
    "Fwd thread id",
    "Ev Idx",
    "Profiler Event Index",
    "Python id",
    "Python parent id",
    "Python module id",
    "Python thread",
    "Concrete Inputs",
    "Input type",
    "Input Types",
    "Input names",
    "Input Strides",
    "Input Dims",
    "Input dims",
    "Output dims",
    "Call stack",
    "Device Type",
    "Device Id",
    "Addr",
    "Bytes",
    "Total Allocated",
    "Total Reserved",
    "finished",
    "correlation",
    "stream",
    "device",
    "context",
    "queued",
    "kind",
    "cbid",
    "kernel_hash",
    "kernel_backend",
    "kernel_file",
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
];

/// The part of an event that could be read.
#[derive(Debug, Default)]
pub(super) struct Repaired {
    /// Keys and raw values; nested ones of `args` among them.
    pub fields: Vec<(String, String)>,
}

/// What became of a broken event.
pub(super) enum Outcome {
    /// Read; it takes `length` bytes.
    Event { event: Repaired, length: usize },
    /// Not readable; the next one may begin after `length` bytes.
    Skip { length: usize },
    /// It may go on beyond the bytes given.
    More,
}

/// Reads a broken event at the beginning of `bytes`.
pub(super) fn event(bytes: &[u8], is_last: bool) -> Outcome {
    let mut reader = Reader { bytes, at: 0, depth: 0, is_last, fields: Vec::new() };
    match reader.object() {
        Some(()) if reader.fields.iter().any(|(key, _)| key == "ts" || key == "ph") => {
            Outcome::Event { event: Repaired { fields: reader.fields }, length: reader.at }
        }
        None if !is_last => Outcome::More,
        _ => Outcome::Skip { length: next_event(bytes) },
    }
}

/// Where the next event seems to begin.
fn next_event(bytes: &[u8]) -> usize {
    ["\n  {", "},{", "}, {", "{\"ph\"", "{ \"ph\""]
        .iter()
        .filter_map(|mark| {
            let at = memmem::find(bytes.get(1..)?, mark.as_bytes())? + 1;
            Some(at + mark.find('{')?)
        })
        .min()
        .unwrap_or(bytes.len())
        .max(1)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    is_last: bool,
    fields: Vec<(String, String)>,
}

/// Objects nest this deep at most: an event, its arguments, and a little more.
const MAX_DEPTH: usize = 16;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Reads an object's fields, nested objects' among them.
    fn object(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH || self.peek()? != b'{' {
            return None;
        }
        self.at += 1;
        loop {
            self.blanks();
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    self.depth -= 1;
                    return Some(());
                }
                b',' => self.at += 1,
                b'"' => {
                    let key = self.key()?;
                    self.blanks();
                    if self.peek()? != b':' {
                        continue;
                    }
                    self.at += 1;
                    self.blanks();
                    if self.peek()? == b'{' {
                        self.object()?;
                    } else {
                        let value = self.value()?;
                        self.fields.push((key, value));
                    }
                }
                // A key without its quote, or rubbish between fields.
                _ => {
                    self.at += 1 + memchr::memchr3(b',', b'}', b'"', &self.bytes[self.at + 1..])?;
                    if self.peek() == Some(b'"') && self.bytes.get(self.at + 1) == Some(&b':') {
                        self.at += 1;
                    }
                }
            }
        }
    }

    /// A key: keys are written whole.
    fn key(&mut self) -> Option<String> {
        let start = self.at + 1;
        let length = memchr::memchr(b'"', self.bytes.get(start..)?)?;
        self.at = start + length + 1;
        Some(String::from_utf8_lossy(&self.bytes[start..start + length]).into_owned())
    }

    fn value(&mut self) -> Option<String> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.text(),
            b'[' => {
                self.array()?;
                Some(String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned())
            }
            // A number, or a bare word: up to the next comma or bracket.
            _ => {
                self.at += memchr::memchr3(b',', b'}', b'\n', &self.bytes[start..])?;
                Some(String::from_utf8_lossy(&self.bytes[start..self.at]).trim().to_owned())
            }
        }
    }

    /// A text up to the quote that ends it by the rule above.
    fn text(&mut self) -> Option<String> {
        let start = self.at + 1;
        let mut from = start;
        loop {
            let quote = from + memchr::memchr(b'"', self.bytes.get(from..)?)?;
            if self.ends_text(quote + 1)? {
                self.at = quote + 1;
                return Some(String::from_utf8_lossy(&self.bytes[start..quote]).into_owned());
            }
            from = quote + 1;
        }
    }

    /// Whether what follows a quote shows that the text ended there. `None` when the bytes end first.
    fn ends_text(&self, after: usize) -> Option<bool> {
        let is_in_args = self.depth > 1;
        let keys = if is_in_args { ARGS_KEYS } else { EVENT_KEYS };
        let after = self.not_blank(after)?;
        match self.bytes[after] {
            b',' => self.is_key(after + 1, keys),
            // The arguments end, and with them the event, or another of its fields follows.
            b'}' if is_in_args => {
                let after = self.not_blank(after + 1)?;
                match self.bytes[after] {
                    b'}' => Some(true),
                    b',' => self.is_key(after + 1, EVENT_KEYS),
                    _ => Some(false),
                }
            }
            // The event ends: another one follows, or the list does.
            b'}' => match self.not_blank(after + 1) {
                Some(next) if self.bytes[next] == b',' => {
                    let next = self.not_blank(next + 1)?;
                    Some(matches!(self.bytes[next], b'{' | b']'))
                }
                Some(next) => Some(self.bytes[next] == b']'),
                None if self.is_last => Some(true),
                None => None,
            },
            _ => Some(false),
        }
    }

    fn not_blank(&self, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        Some(from + rest.iter().position(|byte| !byte.is_ascii_whitespace())?)
    }

    /// Whether one of `keys` and a colon stand at `from`.
    fn is_key(&self, from: usize, keys: &[&str]) -> Option<bool> {
        let start = self.not_blank(from)?;
        if self.bytes[start] != b'"' {
            return Some(false);
        }
        let end = start + 1 + memchr::memchr(b'"', &self.bytes[start + 1..])?;
        let is_known = keys.iter().any(|key| key.as_bytes() == &self.bytes[start + 1..end]);
        Some(is_known && self.bytes[self.not_blank(end + 1)?] == b':')
    }

    /// An array, by brackets outside of texts.
    fn array(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'[' => depth += 1,
                b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                // A text in an array ends at a quote that a comma or a bracket follows.
                b'"' => loop {
                    self.at += 1 + memchr::memchr(b'"', self.bytes.get(self.at..)?)?;
                    if matches!(self.bytes[self.not_blank(self.at)?], b',' | b']') {
                        break;
                    }
                },
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        match event(text.as_bytes(), true) {
            Outcome::Event { event, length } => {
                assert_eq!(length, text.len());
                event.fields
            }
            _ => panic!("not read: {text}"),
        }
    }

    fn value<'a>(fields: &'a [(String, String)], key: &str) -> &'a str {
        &fields.iter().find(|(name, _)| name == key).unwrap().1
    }

    #[test]
    fn quotes_and_backslashes_in_names() {
        let fields = read(r#"{"ph": "X", "name": "say "hi"", "pid": 1, "ts": 5.250, "args": {"Ev Idx": 3}}"#);
        assert_eq!(value(&fields, "name"), "say \"hi\"");
        assert_eq!((value(&fields, "ts"), value(&fields, "Ev Idx")), ("5.250", "3"));
        let fields =
            read(r#"{"ph": "X", "name": "{"device": "cpu", "dtype": "f"}(0): g", "pid": 1, "ts": 5}"#);
        assert_eq!(value(&fields, "name"), r#"{"device": "cpu", "dtype": "f"}(0): g"#);
        let fields = read(
            r#"{"ph": "X", "name": "{"a": {"b": "c"}}", "pid": 1, "ts": 5, "args": {"Call stack": "<ev"il>(1): f;", "Concrete Inputs": ["say "hi""]}}"#,
        );
        assert_eq!(value(&fields, "name"), r#"{"a": {"b": "c"}}"#);
        assert_eq!(value(&fields, "Call stack"), "<ev\"il>(1): f;");
        let fields = read(r#"{"ph": "X", "name": "torch\cuda\x.py(2): f", "ts": 5}"#);
        assert_eq!(value(&fields, "name"), r"torch\cuda\x.py(2): f");
    }

    #[test]
    fn bare_words_are_values() {
        let fields =
            read(r#"{"ph": "X", "tid": stream 7, "ts": 5, "args": {"bandwidth": inf, "Bytes": -4}}"#);
        assert_eq!((value(&fields, "tid"), value(&fields, "Bytes")), ("stream 7", "-4"));
    }

    #[test]
    fn the_next_event_is_found_after_one_that_is_lost() {
        let Outcome::Skip { length } = event(b"{\"x\": \"never ends\n  {\"ph\": \"i\"}", true) else {
            panic!("read");
        };
        assert_eq!(length, 20);
    }
}
