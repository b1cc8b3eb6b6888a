//! Curves: a figure over time.

use super::bytes::MAX_BYTES;
use super::{Device, TimeRange};
use crate::text::msg;

/// What a curve shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Quantity {
    /// Bytes in blocks handed to tensors (`memory_allocated`).
    Allocated,
    /// Allocated plus blocks whose free waits for a stream.
    Active,
    /// Bytes as tensors asked for them, before rounding.
    Requested,
    /// Bytes in segments taken from the driver (`memory_reserved`).
    Reserved,
    /// Free bytes in segments that hold live blocks too, so that they can't be given back.
    InactiveSplit,
    /// The largest free block in any segment.
    LargestFree,
    /// The highest allocated since the last reset: never falls by itself, so its rise is no leak.
    PeakAllocated,
    /// The highest reserved since the last reset.
    PeakReserved,
    /// What the driver counts as used on the whole device (`memory.used`).
    DriverUsed,
    /// What the driver counts for one process.
    ProcessUsed,
    /// What the driver counts as used on one MIG instance, by its label: `MIG 3/0 used`.
    InstanceUsed(String),
    /// What the driver has for tensors and contexts (`memory.total`).
    Capacity,
    /// A level by category, from `export_memory_timeline`: parameters, activations, gradients…
    Category(String),
    /// Something else that counts bytes, by the name that the file gives.
    Other(String),
}

impl Quantity {
    /// The words for legends, tables and reports.
    pub fn label(&self) -> &str {
        match self {
            Self::Allocated => msg!("allocated"),
            Self::Active => msg!("active"),
            Self::Requested => msg!("requested"),
            Self::Reserved => msg!("reserved"),
            Self::InactiveSplit => msg!("inactive split"),
            Self::LargestFree => msg!("largest free block"),
            Self::PeakAllocated => msg!("peak allocated"),
            Self::PeakReserved => msg!("peak reserved"),
            Self::DriverUsed => msg!("driver used"),
            Self::ProcessUsed => msg!("process used"),
            Self::Capacity => msg!("capacity"),
            Self::InstanceUsed(name) | Self::Category(name) | Self::Other(name) => name,
        }
    }
}

/// A curve: points in the order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What it shows.
    pub quantity: Quantity,
    /// On which device.
    pub device: Device,
    /// Of which process, by the id in the file; `None` for the whole device.
    pub pid: Option<u64>,
    /// The process's name where the file gives one.
    pub process_name: String,
    /// The times, ascending, on the clock of the file that it came from.
    pub times_ns: Vec<i64>,
    /// The figures.
    pub bytes: Vec<i64>,
    /// Whether a value holds until the next point (events), or points are samples to be joined by lines.
    pub is_step: bool,
}

impl Series {
    /// A curve without points.
    pub fn new(quantity: Quantity, device: Device, is_step: bool) -> Self {
        Self {
            quantity,
            device,
            pid: None,
            process_name: String::new(),
            times_ns: Vec::new(),
            bytes: Vec::new(),
            is_step,
        }
    }

    /// Adds a point, its figure within [`MAX_BYTES`].
    pub fn push(&mut self, time_ns: i64, bytes: i64) {
        self.times_ns.push(time_ns);
        self.bytes.push(bytes.clamp(-(MAX_BYTES as i64), MAX_BYTES as i64));
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.times_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }

    /// The value that holds at `time_ns`: of the last point at or before it.
    pub fn at(&self, time_ns: i64) -> Option<i64> {
        let after = self.times_ns.partition_point(|&time| time <= time_ns);
        after.checked_sub(1).map(|index| self.bytes[index])
    }

    /// The points within `range`, as indices.
    pub fn rows_in(&self, range: TimeRange) -> std::ops::Range<usize> {
        let start = self.times_ns.partition_point(|&time| time < range.start_ns);
        start..self.times_ns.partition_point(|&time| time < range.end_ns).max(start)
    }

    /// From the first point to just after the last.
    pub fn span(&self) -> Option<TimeRange> {
        Some(TimeRange::new(*self.times_ns.first()?, self.times_ns.last()?.saturating_add(1)))
    }
}
