//! Finds the events of a trace in its bytes: strictly where the JSON is whole, by resynchronising where it is not.

use memchr::memmem;
use serde::Deserialize as _;

use super::event::Event;
use super::{fast, repair};

/// What became of one event.
#[expect(clippy::large_enum_variant, reason = "the large variant is the common one and is never stored")]
pub(super) enum Found<'a> {
    /// Read as it stands.
    Strict(Event<'a>),
    /// Read after a repair; `at` is its first byte.
    Repaired { event: repair::Repaired, at: usize },
    /// Skipped; `at` is its first byte.
    Dropped { at: usize },
}

/// Where events begin: just inside the `[` of `traceEvents`, or of a top-level array.
pub(super) fn events_start(bytes: &[u8]) -> Option<usize> {
    let start =
        bytes.iter().position(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf))?;
    if bytes[start] == b'[' {
        return Some(start + 1);
    }
    // User metadata may hold the same key: the first one whose value is an array counts.
    memmem::find_iter(bytes, b"\"traceEvents\"").find_map(|key| {
        let colon = key + "\"traceEvents\"".len();
        let rest = bytes.get(colon..)?;
        let after = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let value = rest.get(after + 1..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
        (rest[after] == b':' && rest[after + 1 + value] == b'[').then_some(colon + after + value + 2)
    })
}

/// Why scanning stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the array's end.
    End,
    /// The bytes end within an event that begins here (or before the next one).
    More,
}

/// How far scanning has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    /// The next byte to look at.
    pub at: usize,
    /// Inside a `traceEvents` that stands where an event should be.
    is_nested: bool,
    /// Bytes that were looked at for events that could not be read after all.
    wasted: usize,
}

/// Events are followed this far: what goes on longer is a lost quote or bracket.
const EVENT_BYTES: usize = 4 << 20;

/// In files that are broken all over, where each event is followed in vain, they are followed only this far.
const EVENT_BYTES_AFTER_WASTE: usize = 2 << 10;

/// And each byte of them is looked at so often.
const LOOKS: usize = 16;

/// When a file counts as broken all over.
const WASTE_BYTES: usize = 64 << 20;

impl Cursor {
    /// The same cursor at another byte of the list of events.
    pub(super) fn jump(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Whether both would read the same from here on.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.at, self.is_nested) == (other.at, other.is_nested)
    }
}

/// Hands every event of `bytes` from the cursor on to `take`, moving behind each. `is_last` says that no more bytes
/// follow. Stops early when `take` returns false.
pub(super) fn scan<'a>(
    bytes: &'a [u8],
    cursor: &mut Cursor,
    is_last: bool,
    mut take: impl FnMut(Found<'a>) -> bool,
) -> Stop {
    loop {
        match bytes.get(cursor.at) {
            None => return Stop::More,
            Some(b',' | b' ' | b'\n' | b'\r' | b'\t') => cursor.at += 1,
            Some(b']') if cursor.is_nested => {
                cursor.is_nested = false;
                cursor.at += 1;
            }
            Some(b']') => return Stop::End,
            Some(b'{') => {
                let start = cursor.at;
                let limit = if cursor.wasted < WASTE_BYTES { EVENT_BYTES } else { EVENT_BYTES_AFTER_WASTE };
                let window = &bytes[start..bytes.len().min(start + limit)];
                let (found, length) = match next(window, is_last || window.len() == limit) {
                    Next::Event(event, length) => (Found::Strict(event), length),
                    Next::Repaired(event, length) => (Found::Repaired { event, at: start }, length),
                    Next::Wrapper(length) if !cursor.is_nested => {
                        cursor.is_nested = true;
                        cursor.at += length;
                        continue;
                    }
                    Next::Wrapper(length) | Next::Dropped(length) => {
                        // In a file that is broken all over no byte is looked at more than so many times.
                        let least = if limit < EVENT_BYTES { limit / LOOKS } else { 1 };
                        cursor.wasted += window.len();
                        (Found::Dropped { at: start }, length.max(least))
                    }
                    Next::More => return Stop::More,
                };
                cursor.at += length;
                if matches!(&found, Found::Strict(event) if event.is_empty()) {
                    continue;
                }
                if !take(found) {
                    return Stop::End;
                }
            }
            // Something that is no event: go on with the next object.
            Some(_) => {
                let next = bytes.get(cursor.at + 1..).and_then(|rest| memchr::memchr2(b'{', b']', rest));
                cursor.at = next.map_or(bytes.len(), |next| cursor.at + 1 + next);
            }
        }
    }
}

/// What stands at the beginning of some bytes, and how many it takes.
#[expect(clippy::large_enum_variant, reason = "the large variant is the common one and is never stored")]
enum Next<'a> {
    Event(Event<'a>, usize),
    Repaired(repair::Repaired, usize),
    /// An object that holds a list of events, which begins after so many bytes.
    Wrapper(usize),
    Dropped(usize),
    More,
}

fn next(bytes: &[u8], is_last: bool) -> Next<'_> {
    if let Some((event, length)) = fast::event(bytes) {
        return Next::Event(event, length);
    }
    if let Some(inside) = wrapped_events(bytes) {
        return Next::Wrapper(inside);
    }
    let mut strict = serde_json::Deserializer::from_slice(bytes).into_iter();
    match strict.next() {
        Some(Ok(event)) => return Next::Event(event, strict.byte_offset()),
        Some(Err(error)) if error.is_eof() && !is_last => return Next::More,
        _ => {}
    }
    match repair::event(bytes, is_last) {
        repair::Outcome::Event { event, length } => Next::Repaired(event, length),
        repair::Outcome::Skip { length } => Next::Dropped(length),
        repair::Outcome::More => Next::More,
    }
}

/// Where the events begin in an object that is no event but holds some.
fn wrapped_events(bytes: &[u8]) -> Option<usize> {
    let head = &bytes[..bytes.len().min(EVENT_BYTES_AFTER_WASTE)];
    let inside = events_start(head)?;
    memmem::find(&head[..inside], b"\"ph\"").is_none().then_some(inside)
}

/// Where another JSON document begins behind the events of the first, when files were joined end to end.
pub(super) fn next_document(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    memchr::memchr2_iter(b'{', b'[', rest)
        .find(|&at| {
            let before = rest[..at].trim_ascii_end();
            // The byte at `from` closes the list of events.
            matches!(before.last(), Some(b'}' | b']')) && (before.len() < at || rest[at] == b'{')
        })
        .map(|at| from + at)
        .filter(|&at| events_start(&bytes[at..]).is_some())
}

/// Reads the first event, to tell whether this is a trace.
pub(super) fn first_event(bytes: &[u8]) -> Option<Event<'_>> {
    let start = bytes.iter().position(|&byte| byte == b'{')?;
    Event::deserialize(&mut serde_json::Deserializer::from_slice(&bytes[start..])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> (Vec<String>, Stop) {
        let mut names = Vec::new();
        let mut cursor = Cursor::default().jump(events_start(text.as_bytes()).unwrap());
        let stop = scan(text.as_bytes(), &mut cursor, true, |found| {
            names.push(match found {
                Found::Strict(event) => event.name.into_owned(),
                Found::Repaired { .. } => "repaired".to_owned(),
                Found::Dropped { .. } => "dropped".to_owned(),
            });
            true
        });
        (names, stop)
    }

    #[test]
    fn events_in_every_wrapping() {
        let events = r#"{"ph":"X","name":"a","ts":1}, {"ph":"X","name":"b","ts":2}"#;
        for text in [
            format!("[{events}]"),
            format!("\u{feff} {{\"traceEvents\": [{events}, {{}}]}}"),
            format!("{{\"x\": {{\"traceEvents\": 3}}, \"traceEvents\" : [{events},]}}"),
            format!("{{\"traceEvents\": [{{\"traceEvents\": [{events}]}}]}}"),
        ] {
            assert_eq!(names(&text), (vec!["a".to_owned(), "b".to_owned()], Stop::End), "{text}");
        }
        assert_eq!(names(&format!("[{events},")).1, Stop::More);
    }

    #[test]
    fn one_lost_event_costs_no_other() {
        let text = "[{\"ph\":\"X\",\"name\":\"a\"},\n  {\"x\": {{{{ \"},\n  {\"ph\":\"X\",\"name\":\"b\"}]";
        assert_eq!(names(text), (["a", "dropped", "b"].map(str::to_owned).to_vec(), Stop::End));
    }

    #[test]
    fn joined_documents_are_found() {
        let one = r#"{"traceEvents": [{"ph":"X"}], "distributedInfo": {"rank": 1}}"#;
        let two = format!("{one}\n{one}");
        let end = one.find(']').unwrap();
        assert_eq!(next_document(two.as_bytes(), end), Some(one.len() + 1));
        assert_eq!(next_document(one.as_bytes(), end), None);
    }
}
