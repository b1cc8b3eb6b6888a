//! Chrome traces of `torch.profiler` (kineto), of every release from 1.8 on, whole or broken.
//!
//! `scan` finds the events, `event` reads one strictly, `repair` one whose JSON is broken; `collect` keeps what is
//! needed in compact rows; `attribute` tells which op, module and stack each change of memory belongs to; `build` pairs
//! allocs with frees.

mod attribute;
mod build;
mod collect;
mod event;
mod header;
mod repair;
mod scan;

use std::io::Read;

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;
use collect::Collected;
use header::Header;
use scan::{Found, Stop};

/// Files from this size on are read by two threads at once.
const PARALLEL_BYTES: usize = 4 << 20;

/// How much of a compressed file is inflated at a time.
const CHUNK_BYTES: usize = 8 << 20;

/// The most that is held of a compressed file at once.
const MAX_HELD_BYTES: usize = 64 << 20;

/// How often cancelling is looked at, in events.
const CHECK_EVERY: u64 = 4096;

/// Reads Chrome traces of torch.profiler.
pub struct TraceImporter;

impl Importer for TraceImporter {
    fn name(&self) -> &'static str {
        "profiler trace"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        head.is_json() && header::is_trace(head.bytes)
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let read = match input.uncompressed() {
            Some(bytes) => read_mapped(bytes, progress),
            None => read_stream(input, progress),
        };
        let Some(Contents { collected, header, cut }) = read else {
            return Err(ImportError::Cancelled { file: input.name() });
        };
        if collected.events == 0 {
            let cause = match cut {
                Some(why) => format!("the trace ends before its first event ({why})"),
                None => "the trace holds no events".to_owned(),
            };
            return Err(ImportError::content(cause, input.name()));
        }
        Ok(build::recording(collected, &header, cut, input.path()))
    }
}

/// What reading gave.
struct Contents {
    collected: Collected,
    header: Header,
    /// Where and why the file ended early.
    cut: Option<String>,
}

/// Reads a mapped file, its two halves at once when it is large. `None` when cancelled.
fn read_mapped(bytes: &[u8], progress: &Progress) -> Option<Contents> {
    progress.set_total(bytes.len() as u64);
    let mut header = Header::default();
    let Some(start) = scan::events_start(bytes) else {
        header.read(bytes);
        return Some(Contents { collected: Collected::default(), header, cut: None });
    };
    header.read(&bytes[..start]);
    let split = if bytes.len() - start >= PARALLEL_BYTES { split_point(bytes, start) } else { None };
    let first_end = split.unwrap_or(bytes.len());
    let (first, second) = rayon::join(
        || part(&bytes[..first_end], start, split.is_none(), progress),
        || split.and_then(|split| part(bytes, split, true, progress)),
    );
    let (mut collected, at, stop) = first?;
    let (mut end, mut stop_at) = (at, stop);
    if let Some(split) = split {
        let (other, other_end, other_stop) = second?;
        if at == split && stop == Stop::More {
            collected.append(other);
            (end, stop_at) = (other_end, other_stop);
        } else {
            // The split fell inside a text after all: read the rest in order.
            let (rest, rest_end, rest_stop) = part(bytes, at, true, progress)?;
            collected.append(rest);
            (end, stop_at) = (rest_end, rest_stop);
        }
    }
    header.read(&bytes[end.min(bytes.len())..]);
    let cut =
        (stop_at == Stop::More).then(|| format!("the file ends at byte {} within the events", bytes.len()));
    Some(Contents { collected, header, cut })
}

/// The start of an event near the middle, as torch.profiler lays events out.
fn split_point(bytes: &[u8], start: usize) -> Option<usize> {
    let middle = start + (bytes.len() - start) / 2;
    let window = &bytes[middle..(middle + (1 << 20)).min(bytes.len())];
    let at = memchr::memmem::find(window, b"\n  },\n  {\n")?;
    Some(middle + at + "\n  },\n  ".len())
}

/// Reads the events of `bytes[at..]`. `None` when cancelled.
fn part(bytes: &[u8], mut at: usize, is_last: bool, progress: &Progress) -> Option<(Collected, usize, Stop)> {
    let mut collected = Collected::default();
    let mut is_cancelled = false;
    let stop = scan::scan(bytes, &mut at, is_last, |found, end| {
        take(&mut collected, found, 0);
        if collected.events.is_multiple_of(CHECK_EVERY) {
            progress.set_done(end as u64);
            is_cancelled = progress.is_cancelled();
        }
        !is_cancelled
    });
    (!is_cancelled).then_some((collected, at, stop))
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
fn read_stream(input: &Input, progress: &Progress) -> Option<Contents> {
    let mut reader = input.reader(progress);
    let mut collected = Collected::default();
    let mut header = Header::default();
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK_BYTES * 2);
    let mut base = 0_u64;
    let mut is_inside = false;
    let mut is_over = false;
    let mut cut = None;
    loop {
        if progress.is_cancelled() {
            return None;
        }
        let result = reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut buffer);
        let is_last = match &result {
            Ok(count) => *count == 0,
            Err(error) => {
                cut = Some(format!(
                    "the compressed data is damaged or cut ({error}) at byte {}",
                    base + buffer.len() as u64
                ));
                true
            }
        };
        if !is_inside && !is_over {
            match scan::events_start(&buffer) {
                Some(start) => {
                    header.read(&buffer[..start]);
                    base += start as u64;
                    buffer.drain(..start);
                    is_inside = true;
                }
                None if is_last => header.read(&buffer),
                None => {}
            }
        }
        if is_inside {
            let mut at = 0;
            // A text that goes on and on is no event: it is given up like one that the file's end cuts.
            let is_enough = is_last || buffer.len() > MAX_HELD_BYTES;
            let stop = scan::scan(&buffer, &mut at, is_enough, |found, _| {
                take(&mut collected, found, base);
                true
            });
            let at = at.min(buffer.len());
            buffer.drain(..at);
            base += at as u64;
            if stop == Stop::End {
                (is_inside, is_over) = (false, true);
            } else if is_last && cut.is_none() {
                cut = Some(format!("the file ends at byte {base} within the events"));
            }
        }
        if is_last {
            if is_over {
                header.read(&buffer);
            }
            return Some(Contents { collected, header, cut });
        }
        // Only a little metadata follows the events, and stands before them.
        if !is_inside && buffer.len() > MAX_HELD_BYTES {
            buffer.truncate(CHUNK_BYTES);
        }
    }
}
