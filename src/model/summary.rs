//! The figures of a `torch.cuda.memory_summary()` table or of `memory_stats()`.

use super::Device;

/// One summary. Byte figures are `None` where the text doesn't give them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemorySummary {
    /// Where in time it stands on the file's own clock, when that is known.
    pub time_ns: Option<i64>,
    /// The device.
    pub device: Device,
    /// The line in the file, from 1.
    pub line: u64,
    /// `memory_allocated`, now and at its peak.
    pub allocated_bytes: Option<u64>,
    /// The highest allocated.
    pub peak_allocated_bytes: Option<u64>,
    /// Active blocks.
    pub active_bytes: Option<u64>,
    /// As asked for, before rounding.
    pub requested_bytes: Option<u64>,
    /// `memory_reserved`.
    pub reserved_bytes: Option<u64>,
    /// The highest reserved.
    pub peak_reserved_bytes: Option<u64>,
    /// Free but not releasable: `inactive_split`.
    pub inactive_split_bytes: Option<u64>,
    /// How many allocations are live.
    pub allocations: Option<u64>,
    /// How often `cudaMalloc` failed at first.
    pub alloc_retries: Option<u64>,
    /// How many out-of-memory errors there were.
    pub ooms: Option<u64>,
    /// Every figure of the text in its order, as named there: `Allocated memory / from large pool / Cur`.
    pub figures: Vec<(String, i64)>,
}
