//! How tables are sorted.

use std::cmp::Reverse;

use rayon::prelude::*;

use super::survey::Row;
use crate::analysis::{Difference, Group, Index, NetGroup, RowRef};
use crate::report::Process;

/// A column and a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort<C> {
    /// By what.
    pub column: C,
    /// The largest first.
    pub is_descending: bool,
}

impl<C: PartialEq + Copy> Sort<C> {
    /// The largest first.
    pub fn descending(column: C) -> Self {
        Self { column, is_descending: true }
    }

    /// What a click on the header of `column` makes of it: another column, or the other direction.
    #[must_use]
    pub fn clicked(self, column: C) -> Self {
        let is_descending = if column == self.column { !self.is_descending } else { true };
        Self { column, is_descending }
    }
}

/// Columns of a list of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowColumn {
    Bytes,
    Time,
    Lifetime,
    Op,
    CallSite,
    Step,
}

/// Columns of a list of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupColumn {
    Bytes,
    Count,
    Key,
    PerStep,
}

/// Columns of the net table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetColumn {
    Net,
    Allocated,
    Freed,
    Kept,
    Peak,
    Key,
}

/// Columns of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DifferenceColumn {
    Change,
    Count,
    After,
    Before,
    Key,
}

/// Columns of the table of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RankColumn {
    Name,
    Kept,
    PerStep,
    Peak,
    Allocations,
    Steps,
    Finding,
}

/// Sorts rows; equal ones keep the order of time.
pub fn sort_rows(index: &Index, rows: &mut [RowRef], sort: Sort<RowColumn>) {
    let get = |row: RowRef| row.get(&index.session);
    match sort.column {
        RowColumn::Bytes => rows.par_sort_by_cached_key(|&row| get(row).size_bytes),
        RowColumn::Time => rows.par_sort_by_cached_key(|&row| get(row).alloc_ns),
        RowColumn::Lifetime => rows.par_sort_by_cached_key(|&row| {
            let allocation = get(row);
            allocation.free_completed_ns.saturating_sub(allocation.alloc_ns)
        }),
        RowColumn::Op => rows.par_sort_by_cached_key(|&row| {
            let allocation = get(row);
            index.label(index.op(row.process, allocation.op, allocation.stack))
        }),
        RowColumn::CallSite => {
            rows.par_sort_by_cached_key(|&row| index.label(index.call_site(row.process, get(row).stack)));
        }
        RowColumn::Step => rows.par_sort_by_cached_key(|&row| get(row).step),
    }
    if sort.is_descending {
        rows.reverse();
    }
}

/// The order in which groups are shown.
pub fn order_of_groups(groups: &[Group], sort: Sort<GroupColumn>) -> Vec<u32> {
    let by = |key: fn(&Group) -> u64| order(groups.len(), |at| key(&groups[at]), sort.is_descending);
    match sort.column {
        GroupColumn::Bytes => by(|group| group.bytes),
        GroupColumn::Count => by(|group| group.count),
        GroupColumn::PerStep => by(|group| group.per_step_bytes),
        GroupColumn::Key => order(groups.len(), |at| groups[at].key.as_str(), sort.is_descending),
    }
}

/// The order in which net groups are shown.
pub fn order_of_nets(groups: &[NetGroup], sort: Sort<NetColumn>) -> Vec<u32> {
    match sort.column {
        NetColumn::Net => order(groups.len(), |at| groups[at].net_bytes(), sort.is_descending),
        NetColumn::Allocated => order(groups.len(), |at| groups[at].allocated.bytes, sort.is_descending),
        NetColumn::Freed => order(groups.len(), |at| groups[at].freed.bytes, sort.is_descending),
        NetColumn::Kept => order(groups.len(), |at| groups[at].kept.bytes, sort.is_descending),
        NetColumn::Peak => order(groups.len(), |at| groups[at].peak_bytes, sort.is_descending),
        NetColumn::Key => order(groups.len(), |at| groups[at].group.key.as_str(), sort.is_descending),
    }
}

/// The order in which differences are shown.
pub fn order_of_differences(rows: &[Difference], sort: Sort<DifferenceColumn>) -> Vec<u32> {
    match sort.column {
        DifferenceColumn::Change => order(rows.len(), |at| rows[at].delta_bytes(), sort.is_descending),
        DifferenceColumn::Count => order(rows.len(), |at| rows[at].delta_count(), sort.is_descending),
        DifferenceColumn::After => order(rows.len(), |at| rows[at].after.totals.bytes, sort.is_descending),
        DifferenceColumn::Before => order(rows.len(), |at| rows[at].before.totals.bytes, sort.is_descending),
        DifferenceColumn::Key => order(rows.len(), |at| rows[at].call_site.as_str(), sort.is_descending),
    }
}

/// The order in which ranks are shown; those without figures come last.
pub fn order_of_ranks(rows: &[Row], sort: Sort<RankColumn>) -> Vec<u32> {
    let by = |key: fn(&Process) -> i128| {
        let figure = |at: usize| rows[at].figures.as_ref().map_or(i128::MIN, key);
        order(rows.len(), figure, sort.is_descending)
    };
    let mut order = match sort.column {
        RankColumn::Kept => by(|process| process.survivors.bytes.into()),
        RankColumn::PerStep => order(rows.len(), |at| rows[at].weight(), sort.is_descending),
        RankColumn::Peak => by(|process| process.peak_bytes.unwrap_or(0).into()),
        RankColumn::Allocations => by(|process| process.allocations.into()),
        RankColumn::Steps => by(|process| process.steps.into()),
        RankColumn::Name => order(rows.len(), |at| by_number(&rows[at]), sort.is_descending),
        RankColumn::Finding => order(rows.len(), |at| rows[at].finding(), sort.is_descending),
    };
    order.sort_by_key(|&at| rows[at as usize].figures.is_err());
    order
}

/// Rank 2 before rank 10, and ranks before what has no number.
fn by_number(row: &Row) -> (bool, Option<u32>, &str) {
    let rank = row.figures.as_ref().ok().and_then(|process| process.rank);
    (rank.is_none(), rank, &row.name)
}

fn order<K: Ord>(len: usize, key: impl Fn(usize) -> K, is_descending: bool) -> Vec<u32> {
    let mut order: Vec<u32> = (0..len as u32).collect();
    if is_descending {
        order.sort_by_key(|&at| Reverse(key(at as usize)));
    } else {
        order.sort_by_key(|&at| key(at as usize));
    }
    order
}
