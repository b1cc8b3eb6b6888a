//! Rows summed by call site, op, stack, module, step or size.

use std::ops::{Deref, Range};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::index::NO_MODULE;
use super::kinds::Kind;
use super::{Index, RowRef};
use crate::model::{ProcessId, StackId, StrId, format_bytes_exact};

/// How many ops a group names.
const MAX_OPS: usize = 8;
/// Rows that one thread sums at a time.
const CHUNK_ROWS: usize = 1 << 16;

/// What rows are summed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// The innermost frame that is the user's own.
    #[default]
    CallSite,
    /// The op.
    Op,
    /// The whole stack.
    Stack,
    /// The module.
    Module,
    /// The training step.
    Step,
    /// The requested size.
    Size,
}

impl GroupBy {
    /// All of them, in the order of menus.
    pub const ALL: [Self; 6] = [Self::CallSite, Self::Op, Self::Stack, Self::Module, Self::Step, Self::Size];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::CallSite => "call-site",
            Self::Op => "op",
            Self::Stack => "stack",
            Self::Module => "module",
            Self::Step => "step",
            Self::Size => "size",
        }
    }

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::CallSite => "call site",
            other => other.name(),
        }
    }
}

/// Rows with something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they have in common, as text.
    pub key: String,
    /// How many rows.
    pub count: u64,
    /// Their requested bytes.
    pub bytes: u64,
    /// The call site that holds most of the bytes.
    pub call_site: String,
    /// The ops, by bytes.
    pub ops: Vec<String>,
    /// The stack that holds most of the bytes.
    pub stack: (ProcessId, StackId),
    /// The first and the last step's number.
    pub steps: Option<(i64, i64)>,
    /// Bytes for each step from the first to the last; 0 when steps are not known.
    pub per_step_bytes: u64,
    /// The rows, in the order they came.
    pub rows: GroupRows,
}

/// The rows of a group: a part of a list that all groups of one answer share.
#[derive(Clone, Debug, Default)]
pub struct GroupRows {
    all: Arc<Vec<RowRef>>,
    range: Range<usize>,
}

impl Deref for GroupRows {
    type Target = [RowRef];

    fn deref(&self) -> &[RowRef] {
        self.all.get(self.range.clone()).unwrap_or_default()
    }
}

impl PartialEq for GroupRows {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'a> IntoIterator for &'a GroupRows {
    type Item = &'a RowRef;
    type IntoIter = std::slice::Iter<'a, RowRef>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Sums rows; the largest group first, equal ones by key.
///
/// Rows are summed into cells, one for each kind (a pair of stack and op) within a step or size where that matters;
/// cells are few, so that the rest costs nothing however many rows there are.
pub fn group(index: &Index, rows: &[RowRef], by: GroupBy) -> Vec<Group> {
    let cells = Cells::of(index, rows, by);
    let sums = cells.sum(index, rows);
    let mut of_key: FxHashMap<u64, usize> = FxHashMap::default();
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut group_of_cell = vec![usize::MAX; sums.len()];
    for (cell, sum) in sums.iter().enumerate() {
        if sum.count > 0 {
            let key = key_of(index, cells.kind(index, cell), cells.key(cell), by);
            let group = *of_key.entry(key).or_insert_with(|| {
                members.push(Vec::new());
                members.len() - 1
            });
            members[group].push(cell);
            group_of_cell[cell] = group;
        }
    }
    let rows = scatter(index, rows, &cells, &sums, &members, &group_of_cell);
    let mut groups: Vec<Group> = members
        .iter()
        .zip(rows)
        .map(|(members, rows)| summarize(index, &cells, &sums, members, rows, by))
        .collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    groups
}

/// What is summed of a cell.
#[derive(Clone, Copy)]
struct Sum {
    count: u64,
    bytes: u64,
    first_step: i64,
    last_step: i64,
}

impl Sum {
    const NONE: Self = Self { count: 0, bytes: 0, first_step: i64::MAX, last_step: i64::MIN };

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.first_step = self.first_step.min(other.first_step);
        self.last_step = self.last_step.max(other.last_step);
    }
}

/// Which cell each row belongs to.
enum Cells {
    /// The kind alone tells.
    Kinds,
    /// The kind within a step or size: (key, kind) of each cell, and the cell of each row.
    Keyed { list: Vec<(u64, u32)>, of_rows: Vec<u32> },
}

impl Cells {
    fn of(index: &Index, rows: &[RowRef], by: GroupBy) -> Self {
        if !matches!(by, GroupBy::Step | GroupBy::Size) {
            return Self::Kinds;
        }
        let mut known: FxHashMap<(u64, u32), u32> = FxHashMap::default();
        let mut list: Vec<(u64, u32)> = Vec::new();
        // A kind's rows mostly share their size, and those of a step come together: the last cell of a kind answers.
        let mut last: Vec<(u64, u32)> = vec![(0, u32::MAX); index.kinds.len()];
        let of_rows = rows
            .iter()
            .map(|row| {
                let process = index.session.process(row.process);
                let kind = index.kinds.of_process(row.process)[row.row as usize];
                let key = if by == GroupBy::Size {
                    process.allocations.size_bytes[row.row as usize]
                } else {
                    let step = process.steps.get(process.allocations.step[row.row as usize] as usize);
                    step.map_or(u64::MAX, |step| step.number as u64)
                };
                let (last_key, last_cell) = last[kind as usize];
                if last_cell != u32::MAX && last_key == key {
                    return last_cell;
                }
                let cell = *known.entry((key, kind)).or_insert_with(|| {
                    list.push((key, kind));
                    list.len() as u32 - 1
                });
                last[kind as usize] = (key, cell);
                cell
            })
            .collect();
        Self::Keyed { list, of_rows }
    }

    fn len(&self, index: &Index) -> usize {
        match self {
            Self::Kinds => index.kinds.len(),
            Self::Keyed { list, .. } => list.len(),
        }
    }

    /// The cell of the row at `position` of the list that was asked for.
    fn cell(&self, index: &Index, position: usize, row: RowRef) -> usize {
        match self {
            Self::Kinds => index.kinds.of_process(row.process)[row.row as usize] as usize,
            Self::Keyed { of_rows, .. } => of_rows[position] as usize,
        }
    }

    fn kind(&self, index: &Index, cell: usize) -> Kind {
        match self {
            Self::Kinds => index.kinds.get(cell as u32),
            Self::Keyed { list, .. } => index.kinds.get(list[cell].1),
        }
    }

    /// The step's number or the size.
    fn key(&self, cell: usize) -> u64 {
        match self {
            Self::Kinds => 0,
            Self::Keyed { list, .. } => list[cell].0,
        }
    }

    fn sum(&self, index: &Index, rows: &[RowRef]) -> Vec<Sum> {
        let cells = self.len(index);
        let sum_chunk = |(nth, rows): (usize, &[RowRef])| {
            let mut sums = vec![Sum::NONE; cells];
            for (offset, row) in rows.iter().enumerate() {
                let process = index.session.process(row.process);
                let sum = &mut sums[self.cell(index, nth * CHUNK_ROWS + offset, *row)];
                sum.count += 1;
                sum.bytes = sum.bytes.saturating_add(process.allocations.size_bytes[row.row as usize]);
                if let Some(step) = process.steps.get(process.allocations.step[row.row as usize] as usize) {
                    sum.first_step = sum.first_step.min(step.number);
                    sum.last_step = sum.last_step.max(step.number);
                }
            }
            sums
        };
        let merge = |mut a: Vec<Sum>, b: Vec<Sum>| {
            if a.is_empty() {
                return b;
            }
            a.iter_mut().zip(&b).for_each(|(a, b)| a.merge(b));
            a
        };
        if rows.len() <= CHUNK_ROWS {
            return sum_chunk((0, rows));
        }
        rows.par_chunks(CHUNK_ROWS).enumerate().map(sum_chunk).reduce(Vec::new, merge)
    }
}

/// The rows of each group in their order, in one list.
fn scatter(
    index: &Index,
    rows: &[RowRef],
    cells: &Cells,
    sums: &[Sum],
    members: &[Vec<usize>],
    group_of_cell: &[usize],
) -> Vec<GroupRows> {
    let mut next = 0;
    let ranges: Vec<Range<usize>> = members
        .iter()
        .map(|members| {
            let start = next;
            next += members.iter().map(|&cell| sums[cell].count as usize).sum::<usize>();
            start..next
        })
        .collect();
    let mut cursors: Vec<usize> = ranges.iter().map(|range| range.start).collect();
    let mut all = vec![RowRef { process: ProcessId(0), row: 0 }; rows.len()];
    for (position, &row) in rows.iter().enumerate() {
        let cursor = &mut cursors[group_of_cell[cells.cell(index, position, row)]];
        all[*cursor] = row;
        *cursor += 1;
    }
    let all = Arc::new(all);
    ranges.into_iter().map(|range| GroupRows { all: all.clone(), range }).collect()
}

/// A number that cells of one group share and others don't.
fn key_of(index: &Index, kind: Kind, key: u64, by: GroupBy) -> u64 {
    let label = |id: StrId| u64::from(id.0);
    match by {
        GroupBy::CallSite => label(index.call_site(kind.process, kind.stack)),
        GroupBy::Op => label(index.op(kind.process, kind.op, kind.stack)),
        GroupBy::Stack => u64::from(kind.process.0) << 32 | u64::from(kind.stack.0),
        GroupBy::Module => index.module(kind.process, kind.op).map_or(0, label),
        GroupBy::Step | GroupBy::Size => key,
    }
}

fn summarize(
    index: &Index,
    cells: &Cells,
    sums: &[Sum],
    members: &[usize],
    rows: GroupRows,
    by: GroupBy,
) -> Group {
    let mut total = Sum::NONE;
    let mut by_stack: FxHashMap<(ProcessId, StackId), u64> = FxHashMap::default();
    let mut by_op: FxHashMap<StrId, u64> = FxHashMap::default();
    for &cell in members {
        let (kind, sum) = (cells.kind(index, cell), &sums[cell]);
        total.merge(sum);
        *by_stack.entry((kind.process, kind.stack)).or_default() += sum.bytes;
        *by_op.entry(index.op(kind.process, kind.op, kind.stack)).or_default() += sum.bytes;
    }
    let first = members.first().map(|&cell| cells.kind(index, cell));
    let stack = by_stack
        .into_iter()
        .max_by_key(|&(stack, bytes)| (bytes, std::cmp::Reverse(stack)))
        .map_or((ProcessId(0), StackId::EMPTY), |(stack, _)| stack);
    let call_site = index.label(index.call_site(stack.0, stack.1)).to_owned();
    let mut ops: Vec<(StrId, u64)> = by_op.into_iter().collect();
    ops.sort_by_key(|&(label, bytes)| (std::cmp::Reverse(bytes), label));
    let number = members.first().map_or(0, |&cell| cells.key(cell));
    let key = match (by, first) {
        (GroupBy::CallSite, _) | (_, None) => call_site.clone(),
        (GroupBy::Op, Some(kind)) => index.label(index.op(kind.process, kind.op, kind.stack)).to_owned(),
        (GroupBy::Stack, _) => stack_key(index, stack),
        (GroupBy::Module, Some(kind)) => {
            index.module(kind.process, kind.op).map_or(NO_MODULE, |label| index.label(label)).to_owned()
        }
        (GroupBy::Step, _) if number == u64::MAX => "(outside steps)".to_owned(),
        (GroupBy::Step, _) => format!("step {}", number as i64),
        (GroupBy::Size, _) => format_bytes_exact(number),
    };
    let steps = (total.first_step <= total.last_step).then_some((total.first_step, total.last_step));
    Group {
        key,
        count: total.count,
        bytes: total.bytes,
        call_site,
        ops: ops.iter().take(MAX_OPS).map(|&(label, _)| index.label(label).to_owned()).collect(),
        stack,
        steps,
        per_step_bytes: steps.map_or(0, |(low, high)| total.bytes / (high - low + 1).unsigned_abs().max(1)),
        rows,
    }
}

/// The two innermost frames, which tell most stacks apart for a reader.
fn stack_key(index: &Index, (process, stack): (ProcessId, StackId)) -> String {
    let process_of = index.session.process(process);
    let call_site = index.label(index.call_site(process, stack));
    match process_of.stacks.innermost(stack) {
        Some(frame) => {
            let innermost = crate::model::Stacks::format_frame(&process_of.strings, frame);
            if innermost == call_site { innermost } else { format!("{innermost} < {call_site}") }
        }
        None => call_site.to_owned(),
    }
}
