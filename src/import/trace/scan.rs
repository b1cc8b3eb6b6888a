//! Finds the events of a trace in its bytes: strictly where the JSON is whole, by resynchronising where it is not.

use memchr::memmem;
use serde::Deserialize as _;

use super::event::Event;
use super::repair;

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

/// Hands every event of `bytes[*at..]` to `take`, moving `at` behind each. `is_last` says that no more bytes follow.
/// Stops early when `take` returns false.
pub(super) fn scan<'a>(
    bytes: &'a [u8],
    at: &mut usize,
    is_last: bool,
    mut take: impl FnMut(Found<'a>, usize) -> bool,
) -> Stop {
    loop {
        match bytes.get(*at) {
            None => return Stop::More,
            Some(b',' | b' ' | b'\n' | b'\r' | b'\t') => *at += 1,
            Some(b']') => return Stop::End,
            Some(b'{') => {
                let start = *at;
                let mut deserializer = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter();
                let found = match deserializer.next() {
                    Some(Ok(event)) => {
                        *at = start + deserializer.byte_offset();
                        Found::Strict(event)
                    }
                    Some(Err(error)) if error.is_eof() && !is_last => return Stop::More,
                    _ => match repair::event(&bytes[start..], is_last) {
                        repair::Outcome::Event { event, length } => {
                            *at = start + length;
                            Found::Repaired { event, at: start }
                        }
                        repair::Outcome::Skip { length } => {
                            *at = start + length;
                            Found::Dropped { at: start }
                        }
                        repair::Outcome::More => return Stop::More,
                    },
                };
                if !take(found, *at) {
                    return Stop::End;
                }
            }
            // Something that is no event: go on with the next object.
            Some(_) => {
                let rest = &bytes[*at..];
                match memchr::memchr2(b'{', b']', rest) {
                    Some(next) if next > 0 => *at += next,
                    _ => *at = bytes.len(),
                }
            }
        }
    }
}

/// Reads the first event, to tell whether this is a trace.
pub(super) fn first_event(bytes: &[u8]) -> Option<Event<'_>> {
    let start = bytes.iter().position(|&byte| byte == b'{')?;
    Event::deserialize(&mut serde_json::Deserializer::from_slice(&bytes[start..])).ok()
}
