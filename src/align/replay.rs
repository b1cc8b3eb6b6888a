//! The caching allocator, played again: which blocks its segments held at every moment.
//!
//! A snapshot's events give requested sizes and segments; what `memory_allocated()` counts are whole blocks. Their
//! sizes follow from the allocator's rules (`c10/cuda/CUDACachingAllocator.cpp`): sizes are rounded to 512 bytes, a
//! free block is split when enough remains, free neighbours merge. The addresses tell which block was taken, so only
//! those rules are needed, not its search. What was there before the history begins is laid out first, from the
//! segments at the end and the allocations that no event shows, so that the curves are absolute.

use crate::model::{
    Allocations, BEFORE_NS, Device, MarkerKind, NEVER_NS, Process, Quantity, SegmentEvent, SegmentEventKind,
    Series,
};

/// Sizes are multiples of this (`kMinBlockSize`).
const ROUND_BYTES: u64 = 512;
/// A large block is split when more than this remains (`kSmallSize`).
const LARGE_REMAINDER_BYTES: u64 = 1 << 20;
/// Segments of small blocks have this size (`kSmallBuffer`).
const SMALL_SEGMENT_BYTES: u64 = 2 << 20;
/// At how many instants free blocks are looked at; at out-of-memory events always.
const SAMPLES: usize = 4096;

/// Curves of every GPU that the process's snapshot tells of: allocated, active (where it differs), requested, reserved,
/// inactive split and largest free block.
pub(super) fn curves(process: &Process) -> Vec<Series> {
    let mut devices: Vec<Device> = process.segments.iter().map(|segment| segment.device).collect();
    devices.extend(process.segment_events.iter().map(|event| event.device));
    devices.sort_unstable();
    devices.dedup();
    // Pinned host memory has an allocator of its own, with other rules.
    devices.retain(|device| !device.is_host());
    devices.into_iter().flat_map(|device| Replay::new(process, device).run()).collect()
}

/// A part of a segment.
#[derive(Clone, Copy, Debug)]
struct Block {
    start: u64,
    size_bytes: u64,
    is_free: bool,
}

/// A segment with its blocks in the order of addresses.
#[derive(Debug)]
struct Segment {
    start: u64,
    size_bytes: u64,
    is_small: bool,
    is_expandable: bool,
    blocks: Vec<Block>,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.size_bytes)
    }

    /// The block that holds `address`.
    fn block_at(&self, address: u64) -> Option<usize> {
        let index = self.blocks.partition_point(|block| block.start <= address).checked_sub(1)?;
        (address < self.blocks[index].start + self.blocks[index].size_bytes).then_some(index)
    }

    /// Takes a block at `address` and returns its size.
    fn take(&mut self, address: u64, requested_bytes: u64) -> u64 {
        let rounded = round(requested_bytes);
        let Some(index) = self.block_at(address).filter(|&index| self.blocks[index].is_free) else {
            return rounded;
        };
        let free = self.blocks[index];
        let before = address - free.start;
        let available = free.size_bytes - before;
        let remainder = available.saturating_sub(rounded);
        let least = if self.is_small || self.is_expandable { ROUND_BYTES } else { LARGE_REMAINDER_BYTES + 1 };
        let size_bytes = if remainder >= least { rounded } else { available };
        self.blocks[index] = Block { start: address, size_bytes, is_free: false };
        if available > size_bytes {
            let rest =
                Block { start: address + size_bytes, size_bytes: available - size_bytes, is_free: true };
            self.blocks.insert(index + 1, rest);
        }
        // Blocks are taken from their start; a gap before shows what the events don't: keep it free.
        if before > 0 {
            self.blocks.insert(index, Block { size_bytes: before, ..free });
        }
        size_bytes
    }

    /// Gives the block at `address` back and merges it with free neighbours.
    fn give_back(&mut self, address: u64) {
        let Some(mut index) = self.block_at(address).filter(|&index| !self.blocks[index].is_free) else {
            return;
        };
        self.blocks[index].is_free = true;
        if self.blocks.get(index + 1).is_some_and(|next| next.is_free) {
            self.blocks[index].size_bytes += self.blocks.remove(index + 1).size_bytes;
        }
        if index > 0 && self.blocks[index - 1].is_free {
            index -= 1;
            self.blocks[index].size_bytes += self.blocks.remove(index + 1).size_bytes;
        }
    }
}

/// What happens at an instant, in the order in which it must happen when times are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    FreeRequested,
    FreeCompleted,
    SegmentGone,
    SegmentNew,
    Alloc,
    Look,
}

impl Kind {
    const IN_ORDER: [Self; 6] = [
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentGone,
        Self::SegmentNew,
        Self::Alloc,
        Self::Look,
    ];
}

/// An instant, what happens then, and to which row of the allocations or which segment event, packed in this order into
/// one number: millions of them are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event(u128);

impl Event {
    fn new(time_ns: i64, kind: Kind, index: usize) -> Self {
        // Flipping the sign bit orders signed numbers as unsigned ones.
        let time = u128::from(time_ns.cast_unsigned() ^ (1 << 63));
        Self((time << 64) | ((kind as u128) << 32) | u128::from(index as u32))
    }

    fn time_ns(self) -> i64 {
        (((self.0 >> 64) as u64) ^ (1 << 63)).cast_signed()
    }

    fn kind(self) -> Kind {
        Kind::IN_ORDER[(self.0 >> 32) as u32 as usize]
    }

    fn index(self) -> usize {
        self.0 as u32 as usize
    }
}

/// Two lists in order as one.
fn merged(first: Vec<Event>, second: Vec<Event>) -> impl Iterator<Item = Event> {
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    std::iter::from_fn(move || match (first.peek(), second.peek()) {
        (Some(a), Some(b)) if a < b => first.next(),
        (Some(_), None) => first.next(),
        _ => second.next(),
    })
}

struct Replay<'a> {
    process: &'a Process,
    table: &'a Allocations,
    device: Device,
    segments: Vec<Segment>,
    /// The size of each row's block.
    block_bytes: Vec<u64>,
    allocated: i64,
    active: i64,
    requested: i64,
    reserved: i64,
    of_allocated: Series,
    /// From the first free that waits for its stream; until then active is what is allocated.
    of_active: Option<Series>,
    of_requested: Series,
    of_reserved: Series,
    of_inactive_split: Series,
    of_largest_free: Series,
}

impl<'a> Replay<'a> {
    fn new(process: &'a Process, device: Device) -> Self {
        let series = |quantity| Series::new(quantity, device, true);
        Self {
            process,
            table: &process.allocations,
            device,
            segments: Vec::new(),
            block_bytes: vec![0; process.allocations.len()],
            allocated: 0,
            active: 0,
            requested: 0,
            reserved: 0,
            of_allocated: series(Quantity::Allocated),
            of_active: None,
            of_requested: series(Quantity::Requested),
            of_reserved: series(Quantity::Reserved),
            of_inactive_split: series(Quantity::InactiveSplit),
            of_largest_free: series(Quantity::LargestFree),
        }
    }

    fn run(mut self) -> Vec<Series> {
        self.lay_out_start();
        let (allocs, others) = self.events();
        let count = allocs.len() + others.len();
        let mut events = merged(allocs, others).peekable();
        let start_ns = events.peek().map_or(self.process.recorded.start_ns, |event| event.time_ns());
        self.of_allocated.times_ns.reserve(count);
        self.of_allocated.bytes.reserve(count);
        self.look(start_ns);
        self.point(start_ns, start_ns);
        let every = count.div_ceil(SAMPLES).max(1);
        for nth in 0.. {
            let Some(event) = events.next() else { break };
            self.happen(event);
            let next_ns = events.peek().map_or(i64::MAX, |next| next.time_ns());
            self.point(event.time_ns(), next_ns);
            if nth % every == 0 || nth + 1 == count || event.kind() == Kind::Look {
                self.look(event.time_ns());
            }
        }
        let mut series = vec![self.of_allocated];
        series.extend(self.of_active);
        series.extend([self.of_requested, self.of_reserved, self.of_inactive_split, self.of_largest_free]);
        series
    }

    /// Segments and blocks as they were before the first event.
    fn lay_out_start(&mut self) {
        let events = || self.process.segment_events.iter().filter(|event| event.device == self.device);
        // Walk back from the end: what was made goes, what went comes back.
        let mut ranges: Vec<(u64, u64, bool, bool)> = self
            .process
            .segments
            .iter()
            .filter(|segment| segment.device == self.device)
            .map(|segment| (segment.address, segment.total_bytes, segment.is_small, segment.is_expandable))
            .collect();
        let backwards: Vec<&SegmentEvent> = events().rev().collect();
        for event in backwards {
            match event.kind {
                SegmentEventKind::Alloc => ranges.retain(|range| range.0 != event.address),
                SegmentEventKind::Free => {
                    ranges.push((
                        event.address,
                        event.size_bytes,
                        event.size_bytes == SMALL_SEGMENT_BYTES,
                        false,
                    ));
                }
                SegmentEventKind::Map => cut_out(&mut ranges, event.address, event.size_bytes),
                SegmentEventKind::Unmap => join_in(&mut ranges, event.address, event.size_bytes),
            }
        }
        for (start, size_bytes, is_small, is_expandable) in ranges {
            self.add_segment(start, size_bytes, is_small, is_expandable);
        }
        for row in 0..self.table.len() {
            if self.table.alloc_ns[row] != BEFORE_NS {
                break;
            }
            if self.table.device[row] == self.device {
                self.alloc(row);
            }
        }
    }

    /// The allocations and what else happens, each in order.
    fn events(&self) -> (Vec<Event>, Vec<Event>) {
        let table = self.table;
        let rows = (0..table.len()).filter(|&row| table.device[row] == self.device);
        // In order as the table is.
        let allocs: Vec<Event> = rows
            .clone()
            .filter(|&row| table.alloc_ns[row] != BEFORE_NS)
            .map(|row| Event::new(table.alloc_ns[row], Kind::Alloc, row))
            .collect();
        let mut events = Vec::with_capacity(table.len());
        for row in rows {
            let (alloc_ns, requested_ns, completed_ns) =
                (table.alloc_ns[row], table.free_requested_ns[row], table.free_completed_ns[row]);
            // A block that lives for less than the clock's step is taken and given back at once.
            if completed_ns == alloc_ns {
                continue;
            }
            if requested_ns != completed_ns && requested_ns != NEVER_NS && requested_ns > alloc_ns {
                events.push(Event::new(requested_ns, Kind::FreeRequested, row));
            }
            if completed_ns != NEVER_NS {
                events.push(Event::new(completed_ns, Kind::FreeCompleted, row));
            }
        }
        for (index, event) in self.process.segment_events.iter().enumerate() {
            if event.device == self.device {
                let kind = match event.kind {
                    SegmentEventKind::Alloc | SegmentEventKind::Map => Kind::SegmentNew,
                    SegmentEventKind::Free | SegmentEventKind::Unmap => Kind::SegmentGone,
                };
                events.push(Event::new(event.time_ns, kind, index));
            }
        }
        for marker in &self.process.markers {
            if marker.device == self.device && matches!(marker.kind, MarkerKind::OutOfMemory { .. }) {
                events.push(Event::new(marker.time_ns, Kind::Look, 0));
            }
        }
        events.sort_unstable();
        (allocs, events)
    }

    fn happen(&mut self, event: Event) {
        let row = event.index();
        match event.kind() {
            Kind::Alloc => {
                self.alloc(row);
                if self.table.free_completed_ns[row] == self.table.alloc_ns[row] {
                    self.free(row, false);
                }
            }
            Kind::FreeRequested => {
                if self.of_active.is_none() {
                    self.of_active = Some(Series { quantity: Quantity::Active, ..self.of_allocated.clone() });
                }
                self.allocated -= self.block_bytes[row] as i64;
            }
            Kind::FreeCompleted => {
                let requested_ns = self.table.free_requested_ns[row];
                let was_requested = requested_ns != self.table.free_completed_ns[row]
                    && requested_ns != NEVER_NS
                    && requested_ns > self.table.alloc_ns[row];
                self.free(row, was_requested);
            }
            Kind::SegmentNew | Kind::SegmentGone => {
                if let Some(event) = self.process.segment_events.get(row) {
                    self.segment_event(event);
                }
            }
            Kind::Look => {}
        }
    }

    fn alloc(&mut self, row: usize) {
        let (address, requested_bytes) = (self.table.address[row], self.table.size_bytes[row]);
        let known_bytes = self.table.rounded_bytes[row];
        let played_bytes = match self.segment_of(address) {
            // What is known of a block's true size is laid out as it is.
            Some(segment) => self.segments[segment].take(address, requested_bytes.max(known_bytes)),
            None => round(requested_bytes),
        };
        let bytes = if known_bytes > 0 { known_bytes } else { played_bytes };
        self.block_bytes[row] = bytes;
        self.allocated += bytes as i64;
        self.active += bytes as i64;
        self.requested += requested_bytes as i64;
    }

    fn free(&mut self, row: usize, was_requested: bool) {
        let bytes = self.block_bytes[row] as i64;
        if !was_requested {
            self.allocated -= bytes;
        }
        self.active -= bytes;
        self.requested -= self.table.size_bytes[row] as i64;
        let address = self.table.address[row];
        if let Some(segment) = self.segment_of(address) {
            self.segments[segment].give_back(address);
        }
    }

    fn segment_of(&self, address: u64) -> Option<usize> {
        let index = self.segments.partition_point(|segment| segment.start <= address).checked_sub(1)?;
        (address < self.segments[index].end()).then_some(index)
    }

    fn add_segment(&mut self, start: u64, size_bytes: u64, is_small: bool, is_expandable: bool) {
        let at = self.segments.partition_point(|segment| segment.start < start);
        let blocks = vec![Block { start, size_bytes, is_free: true }];
        self.segments.insert(at, Segment { start, size_bytes, is_small, is_expandable, blocks });
        self.reserved += size_bytes as i64;
    }

    fn segment_event(&mut self, event: &SegmentEvent) {
        let (start, size_bytes) = (event.address, event.size_bytes);
        match event.kind {
            SegmentEventKind::Alloc => {
                self.add_segment(start, size_bytes, size_bytes == SMALL_SEGMENT_BYTES, false);
            }
            SegmentEventKind::Free => {
                if let Some(index) =
                    self.segment_of(start).filter(|&index| self.segments[index].start == start)
                {
                    self.reserved -= self.segments.remove(index).size_bytes as i64;
                }
            }
            SegmentEventKind::Map => self.map(start, size_bytes),
            SegmentEventKind::Unmap => self.unmap(start, size_bytes),
        }
    }

    /// An expandable segment grows at its end, or a new one begins.
    fn map(&mut self, start: u64, size_bytes: u64) {
        let before = self.segments.partition_point(|segment| segment.start <= start).checked_sub(1);
        let grows =
            before.filter(|&index| self.segments[index].end() == start && self.segments[index].is_expandable);
        let Some(index) = grows else {
            self.add_segment(start, size_bytes, false, true);
            return;
        };
        let segment = &mut self.segments[index];
        segment.size_bytes += size_bytes;
        match segment.blocks.last_mut().filter(|block| block.is_free) {
            Some(last) => last.size_bytes += size_bytes,
            None => segment.blocks.push(Block { start, size_bytes, is_free: true }),
        }
        self.reserved += size_bytes as i64;
    }

    /// A free range of an expandable segment goes; what lies behind it becomes a segment of its own.
    fn unmap(&mut self, start: u64, size_bytes: u64) {
        let Some(index) = self.segment_of(start) else { return };
        let end = start.saturating_add(size_bytes).min(self.segments[index].end());
        let segment = self.segments.remove(index);
        self.reserved -= (end - start) as i64;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for block in segment.blocks {
            let block_end = block.start + block.size_bytes;
            if block.start < start {
                before.push(Block { size_bytes: block_end.min(start) - block.start, ..block });
            }
            if block_end > end {
                let from = block.start.max(end);
                after.push(Block { start: from, size_bytes: block_end - from, ..block });
            }
        }
        for blocks in [after, before] {
            if let (Some(first), Some(last)) = (blocks.first(), blocks.last()) {
                let (start, size_bytes) = (first.start, last.start + last.size_bytes - first.start);
                self.segments.insert(index, Segment { start, size_bytes, blocks, ..segment });
            }
        }
    }

    /// Adds a point to the curves that count, unless more happens at the same instant.
    fn point(&mut self, time_ns: i64, next_ns: i64) {
        if time_ns == next_ns && !self.of_allocated.is_empty() {
            return;
        }
        let active = self.of_active.as_mut().map(|series| (series, self.active));
        let always = [(&mut self.of_allocated, self.allocated), (&mut self.of_reserved, self.reserved)];
        for (series, level) in always.into_iter().chain(active) {
            if series.bytes.last() != Some(&level) || next_ns == i64::MAX {
                series.push(time_ns, level);
            }
        }
    }

    /// Looks at the free blocks: the largest, and those that share a segment with others.
    fn look(&mut self, time_ns: i64) {
        let (mut largest, mut inactive_split) = (0, 0);
        for segment in &self.segments {
            let is_split = segment.blocks.len() > 1;
            for block in segment.blocks.iter().filter(|block| block.is_free) {
                largest = largest.max(block.size_bytes);
                inactive_split += if is_split { block.size_bytes } else { 0 };
            }
        }
        for (series, level) in [
            (&mut self.of_requested, self.requested),
            (&mut self.of_inactive_split, inactive_split as i64),
            (&mut self.of_largest_free, largest as i64),
        ] {
            if series.times_ns.last() == Some(&time_ns) {
                series.bytes.pop();
                series.times_ns.pop();
            }
            series.push(time_ns, level);
        }
    }
}

fn round(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(ROUND_BYTES).saturating_mul(ROUND_BYTES)
}

/// Takes a mapped part out of the ranges again.
fn cut_out(ranges: &mut Vec<(u64, u64, bool, bool)>, start: u64, size_bytes: u64) {
    let end = start.saturating_add(size_bytes);
    let Some(index) =
        ranges.iter().position(|range| range.0 <= start && start < range.0.saturating_add(range.1))
    else {
        return;
    };
    let (from, whole, is_small, is_expandable) = ranges.swap_remove(index);
    let to = from.saturating_add(whole);
    if from < start {
        ranges.push((from, start - from, is_small, is_expandable));
    }
    if end < to {
        ranges.push((end, to - end, is_small, is_expandable));
    }
}

/// Puts an unmapped part back, joined with the ranges that it touches.
fn join_in(ranges: &mut Vec<(u64, u64, bool, bool)>, start: u64, size_bytes: u64) {
    let (mut from, mut to) = (start, start.saturating_add(size_bytes));
    ranges.retain(|range| {
        let touches = range.3 && (range.0.saturating_add(range.1) == from || range.0 == to);
        if touches {
            (from, to) = (from.min(range.0), to.max(range.0.saturating_add(range.1)));
        }
        !touches
    });
    ranges.push((from, to - from, false, true));
}
