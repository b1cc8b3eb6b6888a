//! Goes through a trace's bytes: whole, two halves at once, or piece by piece as they inflate.

use std::io::Read as _;

use memchr::memmem;

use super::collect::Collected;
use super::header::Header;
use super::scan::{self, Cursor, Found, Stop};
use crate::import::input::cut_reason;
use crate::import::{Input, Progress};
use crate::text::t;

/// Files from this size on are read by two threads at once.
const PARALLEL_BYTES: usize = 4 << 20;

/// How much of a compressed file is inflated at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// The most that is held of a compressed file at once.
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

/// Reads a file that is not compressed. `None` when cancelled.
pub(super) fn whole(bytes: &[u8], progress: &Progress) -> Option<Contents> {
    progress.set_total(bytes.len() as u64);
    let mut contents = Contents::default();
    let mut from = 0;
    loop {
        let mut header = Header::default();
        let Some(start) = scan::events_start(&bytes[from..]).map(|start| from + start) else {
            header.read(&bytes[from..]);
            contents.add(Collected::default(), header);
            return Some(contents);
        };
        header.read(&bytes[from..start]);
        let (collected, end, stop) = events(bytes, start, progress)?;
        let end = end.min(bytes.len());
        let next = scan::next_document(bytes, end);
        header.read(&bytes[end..next.unwrap_or(bytes.len())]);
        contents.add(collected, header);
        if stop == Stop::More {
            contents.cut = Some(t!("the file ends at byte {byte} within the events", byte = bytes.len()));
        }
        match next {
            Some(next) => from = next,
            None => return Some(contents),
        }
    }
}

/// Reads a list of events, its two halves at once when it is large. `None` when cancelled.
fn events(bytes: &[u8], start: usize, progress: &Progress) -> Option<(Collected, usize, Stop)> {
    let split = if bytes.len() - start >= PARALLEL_BYTES { split_point(bytes, start) } else { None };
    let Some(split) = split else { return part(bytes, start, true, progress) };
    let (first, second) =
        rayon::join(|| part(&bytes[..split], start, false, progress), || part(bytes, split, true, progress));
    let (mut collected, at, stop) = first?;
    if stop == Stop::End {
        return Some((collected, at, stop));
    }
    // Should the split have fallen inside a text after all, the rest is read in order.
    let (rest, end, stop) = if at == split { second? } else { part(bytes, at, true, progress)? };
    collected.append(rest);
    Some((collected, end, stop))
}

/// The start of an event near the middle, as torch.profiler lays events out.
fn split_point(bytes: &[u8], start: usize) -> Option<usize> {
    let middle = start + (bytes.len() - start) / 2;
    let window = &bytes[middle..(middle + (1 << 20)).min(bytes.len())];
    let mark = b"\n  },\n  {";
    memmem::find(window, mark).map(|at| middle + at + mark.len() - 1)
}

/// Reads the events of `bytes[start..]`. `None` when cancelled.
fn part(bytes: &[u8], start: usize, is_last: bool, progress: &Progress) -> Option<(Collected, usize, Stop)> {
    let mut collected = Collected::default();
    let mut is_cancelled = false;
    let mut cursor = Cursor::new(start);
    let stop = scan::scan(bytes, &mut cursor, is_last, |found, end| {
        take(&mut collected, found, 0);
        if collected.events.is_multiple_of(CHECK_EVERY) {
            progress.set_done(end as u64);
            is_cancelled = progress.is_cancelled();
        }
        !is_cancelled
    });
    (!is_cancelled).then_some((collected, cursor.at, stop))
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

/// Reads a compressed file as it inflates, holding a part of it only. `None` when cancelled.
pub(super) fn stream(input: &Input, progress: &Progress) -> Option<Contents> {
    let mut reader = input.reader(progress);
    let mut pieces = Pieces::default();
    loop {
        if progress.is_cancelled() {
            return None;
        }
        match reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut pieces.buffer) {
            Ok(0) => break,
            Ok(_) => pieces.advance(false),
            Err(error) => {
                let at = pieces.base + pieces.buffer.len() as u64;
                pieces.contents.cut = Some(t!("{why} at byte {byte}", why = cut_reason(&error), byte = at));
                break;
            }
        }
    }
    pieces.advance(true);
    Some(pieces.contents)
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
    /// What has not been read yet.
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    base: u64,
    place: Place,
    cursor: Cursor,
    collected: Collected,
    header: Header,
    contents: Contents,
}

impl Pieces {
    /// Reads what the buffer holds. `is_last` says that no more follows.
    fn advance(&mut self, is_last: bool) {
        loop {
            let is_done = match self.place {
                Place::Before => self.before(is_last),
                Place::Inside => self.inside(is_last),
                Place::After => self.after(is_last),
            };
            if is_done {
                return;
            }
        }
    }

    fn before(&mut self, is_last: bool) -> bool {
        if let Some(start) = scan::events_start(&self.buffer) {
            self.header.read(&self.buffer[..start]);
            self.discard(start);
            self.cursor = Cursor::default();
            self.place = Place::Inside;
            return false;
        }
        self.wait(is_last)
    }

    /// Outside the events more bytes are waited for; what is held of them stays bounded.
    fn wait(&mut self, is_last: bool) -> bool {
        if is_last {
            self.header.read(&self.buffer);
            self.end_document();
        } else if self.buffer.len() > MAX_HELD_BYTES {
            self.header.read(&self.buffer);
            self.discard(self.buffer.len() - CHUNK_BYTES);
        }
        true
    }

    fn inside(&mut self, is_last: bool) -> bool {
        let (collected, base) = (&mut self.collected, self.base);
        let stop = scan::scan(&self.buffer, &mut self.cursor, is_last, |found, _| {
            take(collected, found, base);
            true
        });
        let read = self.cursor.at.min(self.buffer.len());
        self.discard(read);
        self.cursor.at = 0;
        if stop == Stop::End {
            self.place = Place::After;
            return false;
        }
        if is_last {
            let end = self.base + self.buffer.len() as u64;
            let cut = &mut self.contents.cut;
            cut.get_or_insert_with(|| t!("the file ends at byte {byte} within the events", byte = end));
            self.end_document();
        }
        true
    }

    /// Behind the events: metadata, and perhaps another document.
    fn after(&mut self, is_last: bool) -> bool {
        if let Some(next) = scan::next_document(&self.buffer, 0) {
            self.header.read(&self.buffer[..next]);
            self.discard(next);
            self.end_document();
            self.place = Place::Before;
            return false;
        }
        self.wait(is_last)
    }

    fn discard(&mut self, count: usize) {
        self.buffer.drain(..count);
        self.base += count as u64;
    }

    fn end_document(&mut self) {
        let (collected, header) = (std::mem::take(&mut self.collected), std::mem::take(&mut self.header));
        self.contents.add(collected, header);
    }
}
