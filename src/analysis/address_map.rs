//! Segments and what stood in them at an instant: blocks and the holes between them, by address.

use std::collections::BTreeMap;

use super::{RowRef, Selection};
use crate::model::{Device, Process, ProcessId, SegmentEventKind, Session};

/// A stretch of memory taken from the driver, as it was at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentAt {
    /// Whose.
    pub process: ProcessId,
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub total_bytes: u64,
    /// The device.
    pub device: Device,
    /// The stream's handle.
    pub stream: u64,
    /// What stood in it, in the order of addresses.
    pub blocks: Vec<BlockAt>,
}

/// A block that was alive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockAt {
    /// Its address.
    pub address: u64,
    /// The bytes that it takes.
    pub bytes: u64,
    /// The allocation.
    pub row: RowRef,
    /// Whether its free was asked for by then and waits for a stream.
    pub is_pending: bool,
}

impl SegmentAt {
    /// The bytes of its blocks.
    pub fn used_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).fold(0, u64::saturating_add)
    }

    /// Its largest hole.
    pub fn largest_hole_bytes(&self) -> u64 {
        let mut at = self.address;
        let mut largest = 0;
        for block in &self.blocks {
            largest = largest.max(block.address.saturating_sub(at));
            at = block.address.saturating_add(block.bytes);
        }
        largest.max(self.address.saturating_add(self.total_bytes).saturating_sub(at))
    }
}

/// The segments of the selected processes at `at_ns`, the largest first. Empty without a snapshot.
pub fn address_map(session: &Session, selection: Selection, at_ns: i64) -> Vec<SegmentAt> {
    let mut segments: Vec<SegmentAt> = selection
        .processes(session)
        .flat_map(|id| of_process(session.process(id), id, selection, at_ns))
        .collect();
    segments
        .sort_by_key(|segment| (std::cmp::Reverse(segment.total_bytes), segment.process, segment.address));
    segments
}

fn of_process(process: &Process, id: ProcessId, selection: Selection, at_ns: i64) -> Vec<SegmentAt> {
    let mut segments = segments_at(process, id, at_ns);
    segments.retain(|segment| selection.device.admits(segment.device));
    let table = &process.allocations;
    let end = table.alloc_ns.partition_point(|&time| time <= at_ns);
    for row in 0..end {
        if table.free_completed_ns[row] <= at_ns {
            continue;
        }
        let address = table.address[row];
        let after = segments.partition_point(|segment| segment.address <= address);
        let Some(segment) = after.checked_sub(1).and_then(|at| segments.get_mut(at)) else { continue };
        let is_inside = address - segment.address < segment.total_bytes;
        if is_inside && segment.device == table.device[row] {
            segment.blocks.push(BlockAt {
                address,
                bytes: table.rounded_bytes[row].max(table.size_bytes[row]),
                row: RowRef { process: id, row: row as u32 },
                is_pending: table.free_requested_ns[row] <= at_ns,
            });
        }
    }
    for segment in &mut segments {
        segment.blocks.sort_by_key(|block| block.address);
    }
    segments
}

/// The segments at an instant by address: those of the snapshot, with what happened since undone.
fn segments_at(process: &Process, id: ProcessId, at_ns: i64) -> Vec<SegmentAt> {
    let mut extents: BTreeMap<u64, (u64, Device, u64)> = process
        .segments
        .iter()
        .map(|segment| (segment.address, (segment.total_bytes, segment.device, segment.stream)))
        .collect();
    let after = process.segment_events.iter().rev().filter(|event| event.time_ns > at_ns);
    for event in after {
        match event.kind {
            SegmentEventKind::Alloc | SegmentEventKind::Map => {
                remove(&mut extents, event.address, event.size_bytes);
            }
            SegmentEventKind::Free | SegmentEventKind::Unmap => {
                extents.insert(event.address, (event.size_bytes, event.device, event.stream));
            }
        }
    }
    let mut segments: Vec<SegmentAt> = Vec::new();
    for (address, (total_bytes, device, stream)) in extents {
        // Parts of an expandable segment that touch are one stretch.
        if let Some(last) = segments.last_mut()
            && last.address.checked_add(last.total_bytes) == Some(address)
            && (last.device, last.stream) == (device, stream)
        {
            last.total_bytes = last.total_bytes.saturating_add(total_bytes);
        } else {
            segments.push(SegmentAt {
                process: id,
                address,
                total_bytes,
                device,
                stream,
                blocks: Vec::new(),
            });
        }
    }
    segments
}

/// Takes a stretch out of the extent that holds it; what is left on either side stays.
fn remove(extents: &mut BTreeMap<u64, (u64, Device, u64)>, address: u64, bytes: u64) {
    let Some((&start, &(total, device, stream))) = extents.range(..=address).next_back() else { return };
    if address - start >= total {
        return;
    }
    extents.remove(&start);
    if address > start {
        extents.insert(start, (address - start, device, stream));
    }
    let removed_to = (address - start).saturating_add(bytes);
    if removed_to < total {
        extents.insert(start.saturating_add(removed_to), (total - removed_to, device, stream));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align;
    use crate::model::{
        Allocation, Clock, NEVER_NS, PoolId, Recording, Segment, SegmentEvent, SourceKind, StackId, TimeRange,
    };

    fn session() -> Session {
        let mut recording = Recording::new(SourceKind::Snapshot, "test", Clock::Unix);
        for (address, size_bytes, alloc_ns, free_ns) in
            [(1_000, 100, 10, NEVER_NS), (1_300, 50, 12, 40), (5_000, 512, 30, NEVER_NS)]
        {
            recording.allocations.push(Allocation::from_to(address, size_bytes, alloc_ns, free_ns));
        }
        for (address, total_bytes) in [(1_000, 1_000), (5_000, 600)] {
            recording.segments.push(Segment {
                address,
                total_bytes,
                device: Device::cuda(0),
                stream: 0,
                pool: PoolId::DEFAULT,
                is_small: false,
                is_expandable: false,
                blocks: Vec::new(),
            });
        }
        for (time_ns, kind, address, size_bytes) in [
            (5, SegmentEventKind::Alloc, 1_000, 1_000),
            (8, SegmentEventKind::Alloc, 9_000, 200),
            (25, SegmentEventKind::Free, 9_000, 200),
            (29, SegmentEventKind::Alloc, 5_000, 600),
        ] {
            let (device, stream, stack) = (Device::cuda(0), 0, StackId::EMPTY);
            recording.segment_events.push(SegmentEvent {
                time_ns,
                kind,
                address,
                size_bytes,
                device,
                stream,
                stack,
            });
        }
        recording.span = Some(TimeRange::new(0, 50));
        align::build(&[align::Opened::new("s.pickle", Arc::new(recording))])
    }

    #[test]
    fn segments_and_blocks_are_those_of_the_instant() {
        let session = session();
        let at = |at_ns| address_map(&session, Selection::default(), at_ns);
        let told = |at_ns| -> Vec<(u64, usize, u64)> {
            at(at_ns)
                .iter()
                .map(|segment| (segment.address, segment.blocks.len(), segment.largest_hole_bytes()))
                .collect()
        };
        assert_eq!(told(20), [(1_000, 2, 650), (9_000, 0, 200)]);
        assert_eq!(told(45), [(1_000, 1, 900), (5_000, 1, 88)]);
        assert_eq!(at(45)[1].used_bytes(), 512);
    }

    #[test]
    fn a_part_of_an_extent_can_be_unmapped() {
        let mut extents = BTreeMap::from([(100, (100, Device::cuda(0), 0))]);
        remove(&mut extents, 140, 20);
        assert_eq!(extents.keys().copied().collect::<Vec<_>>(), [100, 160]);
        assert_eq!(extents[&160].0, 40);
        remove(&mut extents, 500, 20);
        assert_eq!(extents.len(), 2);
    }
}
