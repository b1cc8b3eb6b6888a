//! The allocation table: columns sorted by allocation time, not a list of objects.

use super::bytes::MAX_BYTES;
use super::{BEFORE_NS, Device, NEVER_NS, OpId, StackId, TimeRange};

/// A memory pool of an [`Allocations`] table. [`PoolId::DEFAULT`] is the allocator's own, others are private pools
/// (CUDA graphs, `torch.cuda.MemPool`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u16);

impl PoolId {
    /// The allocator's own pool, `segment_pool_id` (0, 0).
    pub const DEFAULT: Self = Self(0);
}

/// What is special about an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AllocationFlags(pub u8);

impl AllocationFlags {
    /// Alloc and free were paired by size and order, since the trace has no addresses (PyTorch 1.8 and 1.9).
    pub const GUESSED_PAIR: Self = Self(1);
    /// Seen by a trace and a snapshot of the same process.
    pub const LINKED: Self = Self(2);
    /// Known from a trace alone: alive at the end of a short window is weaker evidence than a snapshot's.
    pub const TRACE_ONLY: Self = Self(4);
    /// The address was allocated again without a free in between: the free was lost or never recorded.
    pub const FREE_LOST: Self = Self(8);

    /// Whether all of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of flags.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One allocation: a row of [`Allocations`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allocation {
    /// The block's address.
    pub address: u64,
    /// Bytes as requested; as rounded when only a trace saw it.
    pub size_bytes: u64,
    /// Bytes that the block takes, 0 when not known.
    pub rounded_bytes: u64,
    /// When it was allocated, [`BEFORE_NS`] when that was before the recording began.
    pub alloc_ns: i64,
    /// When its free was asked for, [`NEVER_NS`] when the recording doesn't show it.
    pub free_requested_ns: i64,
    /// When its memory came back, [`NEVER_NS`] when the recording doesn't show it.
    pub free_completed_ns: i64,
    /// The device.
    pub device: Device,
    /// The stream's handle, 0 for the default stream.
    pub stream: u64,
    /// The pool.
    pub pool: PoolId,
    /// The call stack of the allocation.
    pub stack: StackId,
    /// The op that allocated, [`OpId::NONE`] when not known.
    pub op: OpId,
    /// Index into the process's steps, [`Allocation::NO_STEP`] outside all of them.
    pub step: u32,
    /// What is special about it.
    pub flags: AllocationFlags,
}

impl Allocation {
    /// Outside every step.
    pub const NO_STEP: u32 = u32::MAX;

    /// Whether it was allocated before the recording began.
    pub fn is_before_recording(&self) -> bool {
        self.alloc_ns == BEFORE_NS
    }

    /// A row as tests need it: freed at once when its free was asked for.
    #[cfg(test)]
    pub(crate) fn from_to(address: u64, size_bytes: u64, alloc_ns: i64, free_ns: i64) -> Self {
        Self {
            address,
            size_bytes,
            alloc_ns,
            free_requested_ns: free_ns,
            free_completed_ns: free_ns,
            ..Self::default()
        }
    }
}

impl Default for Allocation {
    fn default() -> Self {
        Self {
            address: 0,
            size_bytes: 0,
            rounded_bytes: 0,
            alloc_ns: BEFORE_NS,
            free_requested_ns: NEVER_NS,
            free_completed_ns: NEVER_NS,
            device: Device::default(),
            stream: 0,
            pool: PoolId::DEFAULT,
            stack: StackId::EMPTY,
            op: OpId::NONE,
            step: Self::NO_STEP,
            flags: AllocationFlags::default(),
        }
    }
}

/// Allocations as columns, sorted by [`Allocation::alloc_ns`]: those from before the recording come first.
///
/// Columns are public for analysis, which scans them; they all have the same length.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "each column is the field of the same name in Allocation")]
pub struct Allocations {
    pub address: Vec<u64>,
    pub size_bytes: Vec<u64>,
    pub rounded_bytes: Vec<u64>,
    pub alloc_ns: Vec<i64>,
    pub free_requested_ns: Vec<i64>,
    pub free_completed_ns: Vec<i64>,
    pub device: Vec<Device>,
    pub stream: Vec<u64>,
    pub pool: Vec<PoolId>,
    pub stack: Vec<StackId>,
    pub op: Vec<OpId>,
    pub step: Vec<u32>,
    pub flags: Vec<AllocationFlags>,
}

/// Runs the same expression on every column.
macro_rules! each_column {
    ($table:expr, $column:ident => $body:expr) => {{
        {
            let $column = &mut $table.address;
            $body;
        }
        {
            let $column = &mut $table.size_bytes;
            $body;
        }
        {
            let $column = &mut $table.rounded_bytes;
            $body;
        }
        {
            let $column = &mut $table.alloc_ns;
            $body;
        }
        {
            let $column = &mut $table.free_requested_ns;
            $body;
        }
        {
            let $column = &mut $table.free_completed_ns;
            $body;
        }
        {
            let $column = &mut $table.device;
            $body;
        }
        {
            let $column = &mut $table.stream;
            $body;
        }
        {
            let $column = &mut $table.pool;
            $body;
        }
        {
            let $column = &mut $table.stack;
            $body;
        }
        {
            let $column = &mut $table.op;
            $body;
        }
        {
            let $column = &mut $table.step;
            $body;
        }
        {
            let $column = &mut $table.flags;
            $body;
        }
    }};
}

impl Allocations {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.alloc_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.alloc_ns.is_empty()
    }

    /// Makes room for `rows` more rows.
    pub fn reserve(&mut self, rows: usize) {
        each_column!(self, column => column.reserve(rows));
    }

    /// Gives back memory that growth left unused.
    pub fn shrink_to_fit(&mut self) {
        each_column!(self, column => column.shrink_to_fit());
    }

    /// Adds a row, its sizes within [`MAX_BYTES`], and returns its index. Call [`Self::sort_by_time`] at the end unless rows come in order.
    pub fn push(&mut self, row: Allocation) -> u32 {
        let index = self.len() as u32;
        self.address.push(row.address);
        self.size_bytes.push(row.size_bytes.min(MAX_BYTES));
        self.rounded_bytes.push(row.rounded_bytes.min(MAX_BYTES));
        self.alloc_ns.push(row.alloc_ns);
        self.free_requested_ns.push(row.free_requested_ns);
        self.free_completed_ns.push(row.free_completed_ns);
        self.device.push(row.device);
        self.stream.push(row.stream);
        self.pool.push(row.pool);
        self.stack.push(row.stack);
        self.op.push(row.op);
        self.step.push(row.step);
        self.flags.push(row.flags);
        index
    }

    /// The row at `index`. Panics beyond the end, as slices do.
    pub fn get(&self, index: usize) -> Allocation {
        Allocation {
            address: self.address[index],
            size_bytes: self.size_bytes[index],
            rounded_bytes: self.rounded_bytes[index],
            alloc_ns: self.alloc_ns[index],
            free_requested_ns: self.free_requested_ns[index],
            free_completed_ns: self.free_completed_ns[index],
            device: self.device[index],
            stream: self.stream[index],
            pool: self.pool[index],
            stack: self.stack[index],
            op: self.op[index],
            step: self.step[index],
            flags: self.flags[index],
        }
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Allocation> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The rows allocated in `range`: they stand together, since the table is sorted.
    pub fn rows_in(&self, range: TimeRange) -> std::ops::Range<usize> {
        let start = self.alloc_ns.partition_point(|&time| time < range.start_ns);
        let end = self.alloc_ns.partition_point(|&time| time < range.end_ns);
        start..end.max(start)
    }

    /// Sorts by allocation time; rows of the same time keep their order. Returns the old index of each new row when
    /// anything moved.
    pub fn sort_by_time(&mut self) -> Option<Vec<u32>> {
        if self.alloc_ns.is_sorted() {
            return None;
        }
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        order.sort_by_key(|&row| self.alloc_ns[row as usize]);
        each_column!(self, column => *column = order.iter().map(|&row| column[row as usize]).collect());
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(alloc_ns: i64, address: u64) -> Allocation {
        Allocation { alloc_ns, address, ..Default::default() }
    }

    #[test]
    fn sorting_keeps_rows_whole_and_ties_in_order() {
        let mut table = Allocations::default();
        for row in [at(30, 1), at(10, 2), at(30, 3), at(BEFORE_NS, 4)] {
            table.push(row);
        }
        table.sort_by_time();
        assert_eq!(table.address, [4, 2, 1, 3]);
        assert_eq!(table.alloc_ns, [BEFORE_NS, 10, 30, 30]);
        assert_eq!(table.rows_in(TimeRange::new(10, 30)), 1..2);
        assert_eq!(table.rows_in(TimeRange::new(30, 31)), 2..4);
    }
}
