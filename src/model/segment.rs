//! Segments and blocks at the moment of a snapshot, and the events that made them.

use super::{Device, PoolId, StackId};

/// What a block was at the moment of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockState {
    /// Handed out.
    Allocated,
    /// Freed, but a stream still uses it (`active_pending_free`, formerly `active_awaiting_free`).
    PendingFree,
    /// Free, kept for reuse.
    Inactive,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its address.
    pub address: u64,
    /// Its bytes, rounded.
    pub size_bytes: u64,
    /// The bytes asked for, 0 when inactive or not known.
    pub requested_bytes: u64,
    /// What it is.
    pub state: BlockState,
    /// Who allocated it, where the history was on.
    pub stack: StackId,
}

/// A range of memory taken from the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its address.
    pub address: u64,
    /// Its bytes.
    pub total_bytes: u64,
    /// The device.
    pub device: Device,
    /// The stream's handle.
    pub stream: u64,
    /// The pool.
    pub pool: PoolId,
    /// Whether it belongs to the pool of small blocks.
    pub is_small: bool,
    /// Whether it grows by mapping (`expandable_segments`).
    pub is_expandable: bool,
    /// Its blocks in the order of addresses.
    pub blocks: Vec<Block>,
}

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentEventKind {
    /// `segment_alloc`.
    Alloc,
    /// `segment_free`.
    Free,
    /// `segment_map` of an expandable segment.
    Map,
    /// `segment_unmap` of an expandable segment.
    Unmap,
}

/// A segment taken from or given back to the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentEvent {
    /// When.
    pub time_ns: i64,
    /// What.
    pub kind: SegmentEventKind,
    /// The segment's (or the mapped part's) address.
    pub address: u64,
    /// Its bytes.
    pub size_bytes: u64,
    /// The device.
    pub device: Device,
    /// The stream's handle.
    pub stream: u64,
    /// The call stack.
    pub stack: StackId,
}
