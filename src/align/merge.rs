//! Linking: the same allocation seen by several recordings of one process becomes one row.
//!
//! A snapshot knows whole stacks and requested sizes, a trace knows ops, shapes and modules. Both write the same clock
//! within microseconds, so "same address, same moment" tells twins.

use crate::model::{
    Allocation, AllocationFlags, Allocations, BEFORE_NS, Device, NEVER_NS, Op, OpId, Ops, PoolId, Recording,
    StackId, Stacks, StrId, Strings, TimeRange,
};

/// How far apart two recordings may put the same event.
const SAME_MOMENT_NS: i64 = 1_000_000;
/// How many rows tell whether two tables are of one process.
const MAX_SAMPLED: usize = 4_096;

/// Rows of a table ordered by device, address and time, to look up an address's history.
pub(super) struct AddressIndex {
    order: Vec<u32>,
}

impl AddressIndex {
    pub(super) fn new(table: &Allocations) -> Self {
        let mut order: Vec<u32> = (0..table.len() as u32).collect();
        // The table is sorted by time already, so a stable sort by the rest keeps each address's history in order.
        order.sort_by_key(|&row| place(table, row));
        Self { order }
    }

    /// The rows at one address in the order of time.
    fn rows_at(&self, table: &Allocations, key: (Device, u64)) -> &[u32] {
        let start = self.order.partition_point(|&row| place(table, row) < key);
        let count = self.order[start..].partition_point(|&row| place(table, row) == key);
        &self.order[start..start + count]
    }

    /// How many of the rows of `other` (on GPUs, allocated within the table's time) have a twin, and how many were looked
    /// at. Of many rows a sample tells as well: the ranks of a run are compared each with each.
    pub(super) fn count_twins(&self, table: &Allocations, other: &Allocations, offset_ns: i64) -> (u64, u64) {
        let known = |time: i64| time != BEFORE_NS;
        let Some(first_ns) = table.alloc_ns.iter().copied().find(|&time| known(time)) else {
            return (0, 0);
        };
        let last_ns = table.alloc_ns.last().copied().unwrap_or(first_ns);
        let shared = TimeRange::new(
            first_ns.saturating_sub(SAME_MOMENT_NS),
            last_ns.saturating_add(SAME_MOMENT_NS + 1),
        );
        let rows = other.rows_in(shared.shifted(offset_ns.saturating_neg()));
        let every = rows.len().div_ceil(MAX_SAMPLED).max(1);
        let (mut twins, mut candidates) = (0, 0);
        for row in rows.step_by(every).map(|row| other.get(row)) {
            let alloc_ns = row.alloc_ns.saturating_add(offset_ns);
            if !row.device.is_host() && known(row.alloc_ns) {
                candidates += 1;
                let rows = self.rows_at(table, (row.device, row.address));
                twins += u64::from(
                    rows.iter().any(|&twin| is_same_moment(table.alloc_ns[twin as usize], alloc_ns)),
                );
            }
        }
        (twins, candidates)
    }
}

fn place(table: &Allocations, row: u32) -> (Device, u64) {
    (table.device[row as usize], table.address[row as usize])
}

fn is_same_moment(a_ns: i64, b_ns: i64) -> bool {
    a_ns != BEFORE_NS
        && b_ns != BEFORE_NS
        && a_ns != NEVER_NS
        && b_ns != NEVER_NS
        && a_ns.abs_diff(b_ns) <= SAME_MOMENT_NS.unsigned_abs()
}

/// The joined tables of one process.
#[derive(Default)]
pub(super) struct Merged {
    pub strings: Strings,
    pub stacks: Stacks,
    pub ops: Ops,
    pub allocations: Allocations,
    pub pools: Vec<(i64, i64)>,
}

/// Ids of a recording's tables in those of the process.
pub(super) struct IdMap {
    strings: Vec<StrId>,
    stacks: Vec<StackId>,
    ops: Vec<OpId>,
    pools: Vec<PoolId>,
}

impl IdMap {
    pub(super) fn string(&self, id: StrId) -> StrId {
        self.strings.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn stack(&self, id: StackId) -> StackId {
        self.stacks.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn pool(&self, id: PoolId) -> PoolId {
        self.pools.get(id.0 as usize).copied().unwrap_or_default()
    }

    fn op(&self, id: OpId) -> OpId {
        self.ops.get(id.0 as usize).copied().unwrap_or_default()
    }
}

/// How many of a recording's GPU allocations found their twin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Matched {
    pub allocations: u64,
    pub matched: u64,
}

impl Merged {
    /// The tables of the first recording.
    pub(super) fn new(recording: &Recording, offset_ns: i64) -> (Self, IdMap) {
        let mut allocations = recording.allocations.clone();
        if offset_ns != 0 {
            for times in [
                &mut allocations.alloc_ns,
                &mut allocations.free_requested_ns,
                &mut allocations.free_completed_ns,
            ] {
                times.iter_mut().for_each(|time| *time = shift(*time, offset_ns));
            }
        }
        let merged = Self {
            strings: recording.strings.clone(),
            stacks: recording.stacks.clone(),
            ops: recording.ops.clone(),
            allocations,
            pools: recording.pools.clone(),
        };
        let map = IdMap {
            strings: (0..merged.strings.len() as u32).map(StrId).collect(),
            stacks: (0..merged.stacks.len() as u32).map(StackId).collect(),
            ops: (0..merged.ops.len() as u32).map(OpId).collect(),
            pools: (0..merged.pools.len() as u16).map(PoolId).collect(),
        };
        (merged, map)
    }

    /// Adds another recording of the same process: twins become one row, the rest are rows of their own.
    pub(super) fn add(&mut self, recording: &Recording, offset_ns: i64) -> (IdMap, Matched) {
        let map = self.absorb_tables(recording);
        let index = AddressIndex::new(&self.allocations);
        let mut is_taken = vec![false; self.allocations.len()];
        let mut result = Matched::default();
        let other_span = recording.span.map(|span| span.shifted(offset_ns));
        let mut news = Vec::new();
        for mut row in recording.allocations.iter() {
            row.alloc_ns = shift(row.alloc_ns, offset_ns);
            row.free_requested_ns = shift(row.free_requested_ns, offset_ns);
            row.free_completed_ns = shift(row.free_completed_ns, offset_ns);
            row.stack = map.stack(row.stack);
            row.op = map.op(row.op);
            row.pool = map.pool(row.pool);
            row.step = Allocation::NO_STEP;
            let counts = row.alloc_ns != BEFORE_NS && !row.device.is_host();
            result.allocations += u64::from(counts);
            let rows = index.rows_at(&self.allocations, (row.device, row.address));
            let other_end_ns = other_span.map_or(i64::MAX, |span| span.end_ns);
            match self.twin(rows, &row, &is_taken, other_end_ns) {
                Some(twin) => {
                    is_taken[twin] = true;
                    result.matched += u64::from(counts);
                    self.overlay(twin, &row);
                }
                None => {
                    self.close_before(rows, &row, other_span.map(|span| span.start_ns));
                    news.push(row);
                }
            }
        }
        self.allocations.reserve(news.len());
        for row in news {
            self.allocations.push(row);
        }
        self.allocations.sort_by_time();
        (map, result)
    }

    fn absorb_tables(&mut self, recording: &Recording) -> IdMap {
        let strings = self.strings.absorb(&recording.strings);
        let stacks = self.stacks.absorb(&recording.stacks, &strings);
        let string = |id: StrId| strings.get(id.0 as usize).copied().unwrap_or_default();
        let ops = recording.ops.iter().map(|op: Op| self.ops.intern(op.map_strings(string))).collect();
        let pools = recording
            .pools
            .iter()
            .map(|&pool| {
                let position = self.pools.iter().position(|&known| known == pool).unwrap_or_else(|| {
                    self.pools.push(pool);
                    self.pools.len() - 1
                });
                PoolId(position.min(usize::from(u16::MAX)) as u16)
            })
            .collect();
        IdMap { strings, stacks, ops, pools }
    }

    /// The row that is the same allocation as `row`.
    fn twin(&self, rows: &[u32], row: &Allocation, is_taken: &[bool], other_end_ns: i64) -> Option<usize> {
        let table = &self.allocations;
        let free = rows.iter().map(|&twin| twin as usize).filter(|&twin| !is_taken[twin]);
        if row.alloc_ns == BEFORE_NS {
            // Known by its free, or alive until the end.
            return free.into_iter().rev().find(|&twin| {
                let (alloc_ns, free_ns) = (table.alloc_ns[twin], table.free_completed_ns[twin]);
                if row.free_completed_ns == NEVER_NS {
                    return alloc_ns < other_end_ns && free_ns >= other_end_ns;
                }
                let was_left_open = table.flags[twin].contains(AllocationFlags::TRACE_ONLY)
                    && free_ns == NEVER_NS
                    && alloc_ns < row.free_completed_ns;
                is_same_moment(free_ns, row.free_completed_ns) || was_left_open
            });
        }
        let same = free
            .clone()
            .filter(|&twin| is_same_moment(table.alloc_ns[twin], row.alloc_ns))
            .min_by_key(|&twin| table.alloc_ns[twin].abs_diff(row.alloc_ns));
        same.or_else(|| {
            // The other recording began later, or its ring lost the beginning: it knows the block, not its birth.
            let before = free.into_iter().find(|&twin| table.alloc_ns[twin] == BEFORE_NS)?;
            let free_ns = table.free_completed_ns[before];
            let outlives =
                row.free_completed_ns == NEVER_NS && free_ns >= other_end_ns && !self.is_reused(rows, row);
            (is_same_moment(free_ns, row.free_completed_ns) || outlives).then_some(before)
        })
    }

    /// Whether the address was allocated again after `row`.
    fn is_reused(&self, rows: &[u32], row: &Allocation) -> bool {
        rows.iter().any(|&other| self.allocations.alloc_ns[other as usize] > row.alloc_ns)
    }

    /// What `row` knows and its twin doesn't.
    fn overlay(&mut self, twin: usize, row: &Allocation) {
        let table = &mut self.allocations;
        if table.alloc_ns[twin] == BEFORE_NS {
            table.alloc_ns[twin] = row.alloc_ns;
        }
        if table.free_requested_ns[twin] == NEVER_NS {
            table.free_requested_ns[twin] = row.free_requested_ns;
        }
        if table.free_completed_ns[twin] == NEVER_NS {
            table.free_completed_ns[twin] = row.free_completed_ns;
        }
        if table.rounded_bytes[twin] == 0 {
            table.rounded_bytes[twin] = row.rounded_bytes;
        }
        if table.stack[twin].is_empty() {
            table.stack[twin] = row.stack;
        }
        if table.op[twin] == OpId::NONE {
            table.op[twin] = row.op;
        }
        table.flags[twin] = table.flags[twin].with(AllocationFlags::LINKED);
    }

    /// A block that an earlier trace left alive, at an address that is allocated anew: its free fell between the two.
    fn close_before(&mut self, rows: &[u32], row: &Allocation, other_start_ns: Option<i64>) {
        let Some(other_start_ns) = other_start_ns.filter(|_| row.alloc_ns != BEFORE_NS) else {
            return;
        };
        let table = &mut self.allocations;
        for &open in rows {
            let open = open as usize;
            let is_open = table.flags[open].contains(AllocationFlags::TRACE_ONLY)
                && table.free_completed_ns[open] == NEVER_NS
                && table.alloc_ns[open] < other_start_ns;
            if is_open {
                table.free_requested_ns[open] = other_start_ns;
                table.free_completed_ns[open] = other_start_ns;
                table.flags[open] = table.flags[open].with(AllocationFlags::FREE_LOST);
            }
        }
    }
}

fn shift(time_ns: i64, offset_ns: i64) -> i64 {
    match time_ns {
        BEFORE_NS | NEVER_NS => time_ns,
        time_ns => time_ns.saturating_add(offset_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Clock, SourceKind, TimeRange};

    fn recording(kind: SourceKind, span: (i64, i64), rows: &[(u64, i64, i64)]) -> Recording {
        let mut recording = Recording::new(kind, "test", Clock::Unix);
        recording.span = Some(TimeRange::new(span.0, span.1));
        for &(address, alloc_ns, free_completed_ns) in rows {
            let flags = if kind == SourceKind::Trace {
                AllocationFlags::TRACE_ONLY
            } else {
                AllocationFlags::default()
            };
            recording.allocations.push(Allocation {
                address,
                alloc_ns,
                free_completed_ns,
                free_requested_ns: free_completed_ns,
                size_bytes: 100,
                flags,
                ..Default::default()
            });
        }
        recording.allocations.sort_by_time();
        recording
    }

    const MS: i64 = 1_000_000;

    fn times(merged: &Merged) -> Vec<(u64, i64, i64)> {
        merged.allocations.iter().map(|row| (row.address, row.alloc_ns, row.free_completed_ns)).collect()
    }

    #[test]
    fn twins_become_one_row_even_when_an_address_is_reused_at_once() {
        let snapshot = recording(
            SourceKind::Snapshot,
            (0, 100 * MS),
            &[(1, 10 * MS, 10 * MS + 300), (1, 10 * MS + 400, NEVER_NS), (2, 50 * MS, 60 * MS)],
        );
        let trace = recording(
            SourceKind::Trace,
            (5 * MS, 30 * MS),
            &[(1, 10 * MS + 20, 10 * MS + 310), (1, 10 * MS + 410, NEVER_NS)],
        );
        let (mut merged, _) = Merged::new(&snapshot, 0);
        let (_, matched) = merged.add(&trace, 0);
        assert_eq!(matched, Matched { allocations: 2, matched: 2 });
        assert_eq!(times(&merged), times(&Merged::new(&snapshot, 0).0));
        assert!(merged.allocations.flags[0].contains(AllocationFlags::LINKED));
        assert!(!merged.allocations.flags[2].contains(AllocationFlags::LINKED));
    }

    #[test]
    fn a_trace_tells_the_birth_of_a_block_that_the_ring_lost() {
        let snapshot = recording(
            SourceKind::Snapshot,
            (50 * MS, 100 * MS),
            &[(1, BEFORE_NS, NEVER_NS), (2, BEFORE_NS, 60 * MS)],
        );
        let trace = recording(
            SourceKind::Trace,
            (0, 40 * MS),
            &[(1, 10 * MS, NEVER_NS), (2, 20 * MS, NEVER_NS), (3, 5 * MS, 6 * MS)],
        );
        let (mut merged, _) = Merged::new(&snapshot, 0);
        merged.add(&trace, 0);
        assert_eq!(times(&merged), [(3, 5 * MS, 6 * MS), (1, 10 * MS, NEVER_NS), (2, 20 * MS, 60 * MS)]);
    }

    #[test]
    fn cycles_of_one_process_join() {
        let first = recording(
            SourceKind::Trace,
            (0, 40 * MS),
            &[(1, 10 * MS, NEVER_NS), (2, 20 * MS, NEVER_NS), (3, 30 * MS, NEVER_NS)],
        );
        // Block 1 is freed in the second cycle, 2 is allocated anew (its free fell in between), 3 is not seen again.
        let second = recording(
            SourceKind::Trace,
            (60 * MS, 90 * MS),
            &[(1, BEFORE_NS, 70 * MS), (2, 80 * MS, NEVER_NS)],
        );
        let (mut merged, _) = Merged::new(&first, 0);
        merged.add(&second, 0);
        assert_eq!(
            times(&merged),
            [(1, 10 * MS, 70 * MS), (2, 20 * MS, 60 * MS), (3, 30 * MS, NEVER_NS), (2, 80 * MS, NEVER_NS)]
        );
    }
}
