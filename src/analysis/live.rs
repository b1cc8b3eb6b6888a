//! What was alive at an instant, and what each op, module or step added in a range.

use rayon::prelude::*;

use super::net::peak_of;
use super::query::classify;
use super::{Group, GroupBy, Index, Query, RowClass, RowRef, Selection, Totals, group};
use crate::model::{BEFORE_NS, NEVER_NS, Session};

/// Rows alive at `at_ns`, by process, then by allocation time: allocated at or before it and freed after it.
pub fn live(session: &Session, selection: Selection, at_ns: i64) -> Vec<RowRef> {
    rows_where(session, selection, at_ns.saturating_add(1), |_, free_ns| free_ns > at_ns)
}

/// What a group of allocations added in a range.
#[derive(Clone, Debug, PartialEq)]
pub struct NetGroup {
    /// Everything of the group that was allocated or freed in the range.
    pub group: Group,
    /// Allocated in the range.
    pub allocated: Totals,
    /// Freed in the range, whenever it was allocated.
    pub freed: Totals,
    /// Allocated in the range, and a survivor of the query.
    pub kept: Totals,
    /// The highest level that what was allocated in the range reached together.
    pub peak_bytes: u64,
}

impl NetGroup {
    /// Allocated minus freed.
    pub fn net_bytes(&self) -> i64 {
        let clamp = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        clamp(self.allocated.bytes).saturating_sub(clamp(self.freed.bytes))
    }
}

/// What each group added in a range, the largest net first; the nets sum up to the range's net.
pub fn net(index: &Index, query: &Query, by: GroupBy) -> Vec<NetGroup> {
    let (selection, range) = (query.selection, query.range);
    let until_ns = query.free_by.until_ns(range);
    let is_freed = |free_ns: i64| free_ns != NEVER_NS && range.contains(free_ns);
    let is_allocated = |alloc_ns: i64| alloc_ns != BEFORE_NS && range.contains(alloc_ns);
    let rows = rows_where(&index.session, selection, range.end_ns, |alloc_ns, free_ns| {
        is_allocated(alloc_ns) || is_freed(free_ns)
    });
    let mut groups: Vec<NetGroup> = group(index, &rows, by)
        .into_par_iter()
        .map(|group| {
            let (mut allocated, mut freed, mut kept) =
                (Totals::default(), Totals::default(), Totals::default());
            let mut changes = Vec::new();
            for row in &group.rows {
                let allocation = row.get(&index.session);
                let (alloc_ns, free_ns) = (allocation.alloc_ns, allocation.free_completed_ns);
                let change = i64::try_from(allocation.size_bytes).unwrap_or(i64::MAX);
                if is_allocated(alloc_ns) {
                    allocated.add(allocation.size_bytes);
                    changes.push((alloc_ns, change));
                    if is_freed(free_ns) {
                        changes.push((free_ns, -change));
                    }
                    let table = &index.session.process(row.process).allocations;
                    if classify(table, row.row as usize, until_ns) == RowClass::Kept {
                        kept.add(allocation.size_bytes);
                    }
                }
                if is_freed(free_ns) {
                    freed.add(allocation.size_bytes);
                }
            }
            let peak_bytes = peak_of(&mut changes);
            NetGroup { group, allocated, freed, kept, peak_bytes }
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.net_bytes()));
    groups
}

/// The rows allocated before `end_ns` whose times of allocation and free satisfy `is_wanted`.
fn rows_where(
    session: &Session,
    selection: Selection,
    end_ns: i64,
    is_wanted: impl Fn(i64, i64) -> bool + Sync,
) -> Vec<RowRef> {
    let mut rows = Vec::new();
    for id in selection.processes(session) {
        let table = &session.process(id).allocations;
        let end = table.alloc_ns.partition_point(|&time| time < end_ns);
        rows.par_extend((0..end).into_par_iter().with_min_len(1 << 16).filter_map(|row| {
            let is_in = selection.device.admits(table.device[row])
                && is_wanted(table.alloc_ns[row], table.free_completed_ns[row]);
            is_in.then_some(RowRef { process: id, row: row as u32 })
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align;
    use crate::analysis::{FreeBy, UserCode, totals};
    use crate::model::{Allocation, Clock, Recording, SourceKind, TimeRange};

    fn index() -> Index {
        let mut recording = Recording::new(SourceKind::Snapshot, "test", Clock::Unix);
        for (address, alloc_ns, free_ns) in
            [(1, BEFORE_NS, 15), (2, 10, 20), (3, 12, NEVER_NS), (4, 30, NEVER_NS), (5, 5, 18)]
        {
            recording.allocations.push(Allocation::from_to(address, 1 << address, alloc_ns, free_ns));
        }
        recording.allocations.sort_by_time();
        recording.span = Some(TimeRange::new(5, 40));
        let opened = align::Opened::new("snapshot.pickle", Arc::new(recording));
        Index::new(Arc::new(align::build(&[opened])), UserCode::default())
    }

    #[test]
    fn alive_at_an_instant_means_allocated_by_then_and_freed_later() {
        let index = index();
        let addresses = |at_ns| {
            let rows = live(&index.session, Selection::default(), at_ns);
            rows.iter().map(|row| row.get(&index.session).address).collect::<Vec<_>>()
        };
        assert_eq!(addresses(12), [1, 5, 2, 3]);
        assert_eq!(addresses(18), [2, 3], "a block freed at an instant is gone at it");
        assert_eq!(addresses(40), [3, 4]);
    }

    #[test]
    fn nets_of_groups_sum_up_to_the_net_of_the_range() {
        let index = index();
        let range = TimeRange::new(10, 30);
        let query = Query { selection: Selection::default(), range, free_by: FreeBy::RecordingEnd };
        let groups = net(&index, &query, GroupBy::Size);
        let sum: i64 = groups.iter().map(NetGroup::net_bytes).sum();
        assert_eq!(sum, totals(&index.session, Selection::default(), range).net_bytes());
        assert_eq!(sum, 4 + 8 - 4 - 2 - 32);
        let kept: u64 = groups.iter().map(|group| group.kept.bytes).sum();
        assert_eq!(kept, 8, "of what was allocated in the range one row was never freed");
        let peaks: Vec<(u64, u64)> =
            groups.iter().map(|group| (group.peak_bytes, group.allocated.bytes)).collect();
        assert_eq!(peaks, [(8, 8), (4, 4), (0, 0), (0, 0)]);
    }
}
