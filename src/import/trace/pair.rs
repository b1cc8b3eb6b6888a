//! Pairs each alloc with its free.

use rustc_hash::FxHashMap;

use super::attribute::Attributed;
use super::collect::MemoryEvent;
use crate::model::{Allocation, AllocationFlags, Allocations, BEFORE_NS, Device, Recording, format_count};
use crate::text::t;

/// What the pairing could not be sure of.
#[derive(Default)]
struct Doubts {
    /// Frees that were paired by size.
    guessed: u64,
    /// Addresses that were allocated again without a free.
    twice: u64,
}

/// Fills the allocations from memory events in the order of time: by address, or, where the trace has none, by device
/// and size, the youngest first. `process_of` tells the process of a thread.
pub(super) fn pair(
    recording: &mut Recording,
    memory: &[MemoryEvent],
    attributed: &Attributed,
    process_of: &[u32],
) {
    let mut doubts = Doubts::default();
    recording.allocations = allocations(memory, attributed, process_of, &mut doubts);
    if doubts.guessed > 0 {
        recording.warn(
            "guessed-pairs",
            t!(
                "the trace has no addresses (PyTorch 1.9 and before): {count} frees were paired by size, so that only net changes are sure",
                count = format_count(doubts.guessed)
            ),
        );
    }
    if doubts.twice > 0 {
        recording.warn(
            "free-lost",
            t!(
                "{count} addresses were allocated again without a free in between",
                count = format_count(doubts.twice)
            ),
        );
    }
}

fn allocations(
    memory: &[MemoryEvent],
    attributed: &Attributed,
    process_of: &[u32],
    doubts: &mut Doubts,
) -> Allocations {
    let mut alive: FxHashMap<(u32, Device, u64), u32> = FxHashMap::default();
    let mut by_size: FxHashMap<(u32, Device, u64), Vec<u32>> = FxHashMap::default();
    let mut table = Allocations::default();
    table.reserve(memory.len() / 2);
    for (index, event) in memory.iter().enumerate().filter(|(_, event)| event.bytes != 0) {
        let size_bytes = event.bytes.unsigned_abs();
        let process = process_of.get(event.thread as usize).copied().unwrap_or(0);
        let key = (process, event.device, event.address.unwrap_or(size_bytes));
        let base = Allocation {
            address: event.address.unwrap_or(0),
            size_bytes,
            rounded_bytes: size_bytes,
            device: event.device,
            flags: match event.address {
                Some(_) => AllocationFlags::TRACE_ONLY,
                None => AllocationFlags::TRACE_ONLY.with(AllocationFlags::GUESSED_PAIR),
            },
            ..Default::default()
        };
        if event.bytes > 0 {
            let (op, stack) = (attributed.op[index], attributed.stack[index]);
            let row = table.push(Allocation { alloc_ns: event.time_ns, op, stack, ..base });
            if event.address.is_none() {
                by_size.entry(key).or_default().push(row);
            } else if let Some(older) = alive.insert(key, row) {
                doubts.twice += 1;
                close(&mut table, older, event.time_ns);
                let flags = &mut table.flags[older as usize];
                *flags = flags.with(AllocationFlags::FREE_LOST);
            }
            continue;
        }
        let row = if event.address.is_some() {
            alive.remove(&key)
        } else {
            doubts.guessed += 1;
            by_size.get_mut(&key).and_then(Vec::pop)
        };
        let row = row.unwrap_or_else(|| table.push(Allocation { alloc_ns: BEFORE_NS, ..base }));
        close(&mut table, row, event.time_ns);
    }
    table.sort_by_time();
    table
}

fn close(table: &mut Allocations, row: u32, time_ns: i64) {
    table.free_requested_ns[row as usize] = time_ns;
    table.free_completed_ns[row as usize] = time_ns;
}
