//! Goes through a trace's bytes piece by piece, as they are read or inflate: what is held grows with the events that
//! are kept, not with the file.

use std::io::Read as _;

use memchr::memmem;

use super::collect::Collected;
use super::header::Header;
use super::scan::{self, Cursor, Found, Stop};
use crate::import::{Input, Progress};
use crate::text::t;

/// How much of a file is read at a time.
const CHUNK_BYTES: usize = 16 << 20;

/// Pieces from this size on are gone through by two threads at once.
const PARALLEL_BYTES: usize = 1 << 20;

/// The most that is held of a file at once.
const MAX_HELD_BYTES: usize = 64 << 20;

/// How often cancelling is looked at, in events.
const CHECK_EVERY: u64 = 4096;

/// What reading gave.
#[derive(Default)]
pub(super) struct Contents {
    pub collected: Collected,
    pub header: Header,
    /// Where and why the file ended early.
    pub cut: Option<String>,
    /// How many JSON documents stood in the file, one behind the other.
    pub documents: u32,
}

impl Contents {
    /// Adds another document of the same file. Each may count from a base of its own.
    fn add(&mut self, mut collected: Collected, header: Header) {
        self.documents += 1;
        if self.documents == 1 {
            (self.collected, self.header) = (collected, header);
            return;
        }
        if let (Some(first), Some(other)) = (self.header.base_ns, header.base_ns) {
            collected.shift(other.saturating_sub(first));
        }
        self.collected.append(collected);
    }
}

fn take(collected: &mut Collected, found: Found<'_>, base: u64) {
    match found {
        Found::Strict(event) => collected.add(&event),
        Found::Repaired { event, at } => {
            collected.repaired += 1;
            collected.fault(base + at as u64);
            collected.add_repaired(&event);
        }
        Found::Dropped { at } => {
            collected.dropped += 1;
            collected.fault(base + at as u64);
        }
    }
}

/// Reads a file, holding a part of it only. `None` when cancelled.
pub(super) fn stream(input: &Input, progress: &Progress) -> Option<Contents> {
    let mut reader = input.reader(progress);
    let mut pieces = Pieces::default();
    let mut is_last = false;
    while !is_last {
        // What is read goes behind what an earlier piece left over.
        match reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut pieces.buffer) {
            Ok(count) => is_last = count == 0,
            Err(error) => {
                let at = pieces.base + pieces.buffer.len() as u64;
                pieces.contents.cut =
                    Some(t!("{why} at byte {byte}", why = input.cut_reason(&error), byte = at));
                is_last = true;
            }
        }
        pieces.advance(is_last, progress);
        if progress.is_cancelled() {
            return None;
        }
    }
    Some(pieces.contents)
}

/// Hands the events of some bytes from the cursor on to `collected`; `base` is where in the file the bytes begin.
fn gather(
    bytes: &[u8],
    cursor: &mut Cursor,
    is_last: bool,
    collected: &mut Collected,
    base: u64,
    progress: &Progress,
) -> Stop {
    scan::scan(bytes, cursor, is_last, |found| {
        take(collected, found, base);
        !collected.events.is_multiple_of(CHECK_EVERY) || !progress.is_cancelled()
    })
}

/// The start of an event near the middle, as torch.profiler lays events out.
fn split_point(bytes: &[u8]) -> Option<usize> {
    if bytes.len() < PARALLEL_BYTES {
        return None;
    }
    let middle = bytes.len() / 2;
    let window = &bytes[middle..(middle + (1 << 20)).min(bytes.len())];
    let mark = b"\n  },\n  {";
    memmem::find(window, mark).map(|at| middle + at + mark.len() - 1)
}

/// Where in a document reading stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Inside,
    After,
}

/// A file that is read in pieces.
#[derive(Default)]
struct Pieces {
    /// What was read from the file and is not done with.
    buffer: Vec<u8>,
    /// How many bytes of the buffer are done with. They go once in a piece: a file may be thousands of documents.
    done: usize,
    /// Where in the file the rest of the buffer begins.
    base: u64,
    place: Place,
    cursor: Cursor,
    collected: Collected,
    header: Header,
    contents: Contents,
}

impl Pieces {
    /// Reads what the buffer holds. `is_last` says that no more follows.
    fn advance(&mut self, is_last: bool, progress: &Progress) {
        // Once a piece: the second half is read in vain when the list ends before it.
        let mut may_split = true;
        loop {
            let is_done = match self.place {
                Place::Before => self.before(is_last),
                Place::Inside => self.inside(std::mem::take(&mut may_split), is_last, progress),
                Place::After => self.after(is_last),
            };
            if is_done {
                self.buffer.drain(..self.done);
                self.done = 0;
                return;
            }
        }
    }

    fn before(&mut self, is_last: bool) -> bool {
        let rest = &self.buffer[self.done..];
        if let Some(start) = scan::events_start(rest) {
            self.header.read(&rest[..start]);
            self.discard(start);
            self.cursor = Cursor::default();
            self.place = Place::Inside;
            return false;
        }
        self.wait(is_last)
    }

    /// Outside the events more bytes are waited for; what is held of them stays bounded.
    fn wait(&mut self, is_last: bool) -> bool {
        let rest = &self.buffer[self.done..];
        if is_last {
            self.header.read(rest);
            self.end_document();
        } else if rest.len() > MAX_HELD_BYTES {
            self.header.read(rest);
            self.discard(rest.len() - CHUNK_BYTES);
        }
        true
    }

    fn inside(&mut self, may_split: bool, is_last: bool, progress: &Progress) -> bool {
        let stop = self.events(may_split, is_last, progress);
        self.discard(self.cursor.at.min(self.buffer.len() - self.done));
        self.cursor.at = 0;
        if stop == Stop::End {
            self.place = Place::After;
            return false;
        }
        if is_last {
            let end = self.base + (self.buffer.len() - self.done) as u64;
            let cut = &mut self.contents.cut;
            cut.get_or_insert_with(|| t!("the file ends at byte {byte} within the events", byte = end));
            self.end_document();
        }
        true
    }

    /// Goes through the events that the buffer holds, its two halves at once when there are many.
    fn events(&mut self, may_split: bool, is_last: bool, progress: &Progress) -> Stop {
        let Self { buffer, done, base, cursor, collected, .. } = self;
        let rest = &buffer[*done..];
        if may_split && let Some(split) = split_point(rest) {
            let start = cursor.jump(split);
            let (mut behind, mut collected_behind) = (start, Collected::default());
            let (stop, stop_behind) = rayon::join(
                || gather(&rest[..split], cursor, false, collected, *base, progress),
                || gather(rest, &mut behind, is_last, &mut collected_behind, *base, progress),
            );
            if stop == Stop::End {
                return stop;
            }
            // Should the split have fallen inside a text or another list after all, the rest is read in order.
            if cursor.is_like(&start) {
                *cursor = behind;
                collected.append(collected_behind);
                return stop_behind;
            }
        }
        gather(rest, cursor, is_last, collected, *base, progress)
    }

    /// Behind the events: metadata, and perhaps another document.
    fn after(&mut self, is_last: bool) -> bool {
        let rest = &self.buffer[self.done..];
        if let Some(next) = scan::next_document(rest, 0) {
            self.header.read(&rest[..next]);
            self.discard(next);
            self.end_document();
            self.place = Place::Before;
            return false;
        }
        self.wait(is_last)
    }

    fn discard(&mut self, count: usize) {
        self.done += count;
        self.base += count as u64;
    }

    fn end_document(&mut self) {
        let (collected, header) = (std::mem::take(&mut self.collected), std::mem::take(&mut self.header));
        self.contents.add(collected, header);
    }
}
