//! Rows summed by call site, op, stack, module, category, step or size.

use std::ops::{Deref, Range};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::index::NO_MODULE;
use super::kinds::Kind;
use super::{Category, Index, RowRef};
use crate::model::{Process, ProcessId, StackId, StrId, format_bytes_exact};
use crate::text::{msg, t};

/// How many ops a group names.
const MAX_OPS: usize = 8;
/// Rows that one thread sums at a time.
const CHUNK_ROWS: usize = 1 << 16;
/// How many sizes are found without hashing.
const RECENT_SIZES: usize = 256;
/// Groups of more rows are tallied by several threads.
const LARGE_ROWS: usize = 4 * CHUNK_ROWS;

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
    /// What it is for, inferred.
    Category,
    /// The training step.
    Step,
    /// The requested size.
    Size,
}

impl GroupBy {
    /// All of them, in the order of menus.
    pub const ALL: [Self; 7] =
        [Self::CallSite, Self::Op, Self::Stack, Self::Module, Self::Category, Self::Step, Self::Size];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::CallSite => "call-site",
            Self::Op => "op",
            Self::Stack => "stack",
            Self::Module => "module",
            Self::Category => "category",
            Self::Step => "step",
            Self::Size => "size",
        }
    }

    /// The words for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::CallSite => t!("call site"),
            Self::Op => t!("op"),
            Self::Stack => t!("stack"),
            Self::Module => t!("module"),
            Self::Category => t!("category"),
            Self::Step => t!("step"),
            Self::Size => t!("size"),
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
    /// How much each step adds from the first to the last, by how often one does; 0 when a single step did, or steps are not
    /// known.
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
/// Rows are summed into cells: one for each kind (a pair of stack and op), or one for each step or size. Cells are few,
/// so that the rest costs nothing however many rows there are.
pub fn group(index: &Index, rows: &[RowRef], by: GroupBy) -> Vec<Group> {
    let cells = Cells::of(index, rows, by);
    let sums = cells.sum(index, rows);
    let mut of_key: FxHashMap<u64, usize> = FxHashMap::default();
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut group_of_cell = vec![usize::MAX; sums.len()];
    for (cell, sum) in sums.iter().enumerate() {
        if sum.count > 0 {
            let key = match &cells {
                Cells::Kinds => key_of(index, index.kinds.get(cell as u32), by),
                Cells::Keyed { list, .. } => list[cell],
            };
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
        .par_iter()
        .zip(rows)
        .map_init(
            || Tallies::new(index),
            |tallies, (members, rows)| {
                let mut total = Sum::NONE;
                for &cell in members {
                    total.join(&sums[cell]);
                    if matches!(cells, Cells::Kinds) {
                        tallies.add_kind(index, cell as u32, sums[cell].bytes);
                    }
                }
                let mut number = 0;
                if let Cells::Keyed { list, .. } = &cells {
                    number = members.first().map_or(0, |&cell| list[cell]);
                    tallies.add_rows(index, &rows);
                }
                summarize(index, total, tallies, number, rows, by)
            },
        )
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
    /// In how many steps; of several cells, in how many of them that comes most often.
    step_count: u64,
    /// The step that was counted last.
    counted_step: i64,
}

impl Sum {
    const NONE: Self = Self {
        count: 0,
        bytes: 0,
        first_step: i64::MAX,
        last_step: i64::MIN,
        step_count: 0,
        counted_step: i64::MIN,
    };

    fn add(&mut self, size_bytes: u64, step: Option<i64>) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(size_bytes);
        if let Some(step) = step {
            self.first_step = self.first_step.min(step);
            self.last_step = self.last_step.max(step);
            // Rows come in the order of time, and steps with them.
            self.step_count += u64::from(self.counted_step != step);
            self.counted_step = step;
        }
    }

    /// Takes in the same cell's rows that follow.
    fn follow(&mut self, next: &Self) {
        let is_shared = next.step_count > 0 && self.counted_step == next.first_step;
        let step_count = self.step_count + next.step_count - u64::from(is_shared);
        let counted_step = if next.step_count > 0 { next.counted_step } else { self.counted_step };
        self.join(next);
        (self.step_count, self.counted_step) = (step_count, counted_step);
    }

    /// Takes in another cell.
    fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.first_step = self.first_step.min(other.first_step);
        self.last_step = self.last_step.max(other.last_step);
        self.step_count = self.step_count.max(other.step_count);
    }

    fn steps(&self) -> Option<(i64, i64)> {
        (self.first_step <= self.last_step).then_some((self.first_step, self.last_step))
    }

    /// Bytes for each step. Each step that allocates stands for the steps until the next one does: what every fourth step
    /// adds is spread over four. What one step did has no rate, however large it is.
    fn per_step_bytes(&self) -> u64 {
        let Some((first, last)) = self.steps().filter(|(first, last)| first < last) else { return 0 };
        let count = u128::from(self.step_count.max(2));
        let span = u128::from(last.abs_diff(first));
        u64::try_from(u128::from(self.bytes) * (count - 1) / (span * count)).unwrap_or(u64::MAX)
    }
}

/// Which cell each row belongs to.
enum Cells {
    /// The kind alone tells.
    Kinds,
    /// The categories, the steps' numbers or the sizes, and of each row its cell.
    Keyed { list: Vec<u64>, of_rows: Vec<u32> },
}

impl Cells {
    fn of(index: &Index, rows: &[RowRef], by: GroupBy) -> Self {
        match by {
            GroupBy::CallSite | GroupBy::Op | GroupBy::Stack | GroupBy::Module => Self::Kinds,
            GroupBy::Category => Self::Keyed {
                list: Category::ALL.iter().map(|&category| category as u64).collect(),
                of_rows: rows.par_iter().map(|row| index.category(*row) as u32).collect(),
            },
            GroupBy::Step => Self::of_steps(index, rows),
            GroupBy::Size => Self::of_sizes(index, rows),
        }
    }

    fn of_steps(index: &Index, rows: &[RowRef]) -> Self {
        // Rows outside of all steps have a cell of their own.
        let mut list = vec![u64::MAX];
        let mut known: FxHashMap<u64, u32> = FxHashMap::default();
        let mut cell_of = |number: u64| {
            *known.entry(number).or_insert_with(|| {
                list.push(number);
                list.len() as u32 - 1
            })
        };
        let cells_of = |process: &Process| -> Vec<u32> {
            process.steps.iter().map(|step| cell_of(step.number as u64)).collect()
        };
        let cells: Vec<Vec<u32>> = index.session.processes.iter().map(cells_of).collect();
        let of_row = |row: &RowRef| {
            let step = index.session.process(row.process).allocations.step[row.row as usize];
            cells[row.process.0 as usize].get(step as usize).copied().unwrap_or(0)
        };
        let of_rows = rows.par_iter().map(of_row).collect();
        Self::Keyed { list, of_rows }
    }

    fn of_sizes(index: &Index, rows: &[RowRef]) -> Self {
        // Each chunk numbers the sizes that it meets; then those numbers become the list's.
        let number_chunk = |rows: &[RowRef]| {
            let mut known: FxHashMap<u64, u32> = FxHashMap::default();
            let mut list = Vec::new();
            // Sizes come again and again: most are found here.
            let mut recent = [(0, u32::MAX); RECENT_SIZES];
            let numbers: Vec<u32> = rows
                .iter()
                .map(|row| {
                    let size = index.session.process(row.process).allocations.size_bytes[row.row as usize];
                    let place = (size.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % RECENT_SIZES;
                    if recent[place].0 != size || recent[place].1 == u32::MAX {
                        let number = *known.entry(size).or_insert_with(|| {
                            list.push(size);
                            list.len() as u32 - 1
                        });
                        recent[place] = (size, number);
                    }
                    recent[place].1
                })
                .collect();
            (list, numbers)
        };
        let chunks: Vec<(Vec<u64>, Vec<u32>)> = rows.par_chunks(CHUNK_ROWS).map(number_chunk).collect();
        let mut known: FxHashMap<u64, u32> = FxHashMap::default();
        let mut list: Vec<u64> = Vec::new();
        let mut cell_of = |size: u64| {
            *known.entry(size).or_insert_with(|| {
                list.push(size);
                list.len() as u32 - 1
            })
        };
        let chunks: Vec<(Vec<u32>, Vec<u32>)> = chunks
            .into_iter()
            .map(|(sizes, numbers)| (sizes.into_iter().map(&mut cell_of).collect(), numbers))
            .collect();
        let mut of_rows = vec![0; rows.len()];
        of_rows.par_chunks_mut(CHUNK_ROWS).zip(chunks).for_each(|(of_rows, (cells, numbers))| {
            of_rows.iter_mut().zip(numbers).for_each(|(cell, number)| *cell = cells[number as usize]);
        });
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

    fn sum(&self, index: &Index, rows: &[RowRef]) -> Vec<Sum> {
        let cells = self.len(index);
        let sum_chunk = |(nth, rows): (usize, &[RowRef])| {
            let mut sums = vec![Sum::NONE; cells];
            for (offset, row) in rows.iter().enumerate() {
                let process = index.session.process(row.process);
                let sum = &mut sums[self.cell(index, nth * CHUNK_ROWS + offset, *row)];
                let step = process.steps.get(process.allocations.step[row.row as usize] as usize);
                sum.add(process.allocations.size_bytes[row.row as usize], step.map(|step| step.number));
            }
            sums
        };
        let merge = |mut a: Vec<Sum>, b: Vec<Sum>| {
            if a.is_empty() {
                return b;
            }
            a.iter_mut().zip(&b).for_each(|(a, b)| a.follow(b));
            a
        };
        // Each chunk's sums take room for every cell: many cells (as many sizes as rows) are summed in one go.
        if rows.len() <= CHUNK_ROWS || cells > CHUNK_ROWS {
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

/// A number that kinds of one group share and others don't.
fn key_of(index: &Index, kind: Kind, by: GroupBy) -> u64 {
    let label = |id: StrId| u64::from(id.0);
    match by {
        GroupBy::CallSite => label(index.call_site(kind.process, kind.stack)),
        GroupBy::Op => label(index.op(kind.process, kind.op, kind.stack)),
        GroupBy::Module => index.module(kind.process, kind.op).map_or(0, label),
        GroupBy::Stack | GroupBy::Category | GroupBy::Step | GroupBy::Size => {
            u64::from(kind.process.0) << 32 | u64::from(kind.stack.0)
        }
    }
}

/// Bytes by dense number, without hashing: a figure for every number, and which were met.
struct Tally {
    bytes: Vec<u64>,
    met: Vec<u32>,
    is_met: Vec<bool>,
}

impl Tally {
    fn new(numbers: usize) -> Self {
        Self { bytes: vec![0; numbers], met: Vec::new(), is_met: vec![false; numbers] }
    }

    fn add(&mut self, number: u32, bytes: u64) {
        let at = number as usize;
        if !std::mem::replace(&mut self.is_met[at], true) {
            self.met.push(number);
        }
        self.bytes[at] = self.bytes[at].saturating_add(bytes);
    }

    /// What was met, with its bytes; nothing is left.
    fn take(&mut self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let (bytes, is_met) = (&mut self.bytes, &mut self.is_met);
        self.met.drain(..).map(move |number| {
            is_met[number as usize] = false;
            (number, std::mem::take(&mut bytes[number as usize]))
        })
    }
}

/// The bytes of one group by kind, stack and op.
struct Tallies {
    kinds: Tally,
    /// By the first kind of each stack.
    stacks: Tally,
    /// By the op's label.
    ops: Tally,
    first: Option<Kind>,
}

impl Tallies {
    fn new(index: &Index) -> Self {
        let kinds = index.kinds.len();
        Self {
            kinds: Tally::new(kinds),
            stacks: Tally::new(kinds),
            ops: Tally::new(index.label_count()),
            first: None,
        }
    }

    fn add_kind(&mut self, index: &Index, kind: u32, bytes: u64) {
        let kind = index.kinds.get(kind);
        self.first.get_or_insert(kind);
        self.stacks.add(kind.of_stack, bytes);
        self.ops.add(index.op(kind.process, kind.op, kind.stack).0, bytes);
    }

    fn add_rows(&mut self, index: &Index, rows: &[RowRef]) {
        let add = |tally: &mut Tally, rows: &[RowRef]| {
            for row in rows {
                let kind = index.kinds.of_process(row.process)[row.row as usize];
                tally.add(kind, index.session.process(row.process).allocations.size_bytes[row.row as usize]);
            }
        };
        if rows.len() > LARGE_ROWS {
            let part_rows = rows.len().div_ceil(rayon::current_num_threads());
            let tally_part = |rows: &[RowRef]| {
                let mut tally = Tally::new(index.kinds.len());
                add(&mut tally, rows);
                tally
            };
            // In the order of the rows: the first kind names the group.
            let parts: Vec<Tally> = rows.par_chunks(part_rows).map(tally_part).collect();
            for mut part in parts {
                part.take().for_each(|(kind, bytes)| self.kinds.add(kind, bytes));
            }
        } else {
            add(&mut self.kinds, rows);
        }
        let kinds: Vec<(u32, u64)> = self.kinds.take().collect();
        for (kind, bytes) in kinds {
            self.add_kind(index, kind, bytes);
        }
    }
}

/// `tallies` holds the group's bytes and is empty afterwards, `number` is its step or size.
fn summarize(
    index: &Index,
    total: Sum,
    tallies: &mut Tallies,
    number: u64,
    rows: GroupRows,
    by: GroupBy,
) -> Group {
    let first = tallies.first.take();
    let stacks = tallies.stacks.take().map(|(kind, bytes)| {
        let kind = index.kinds.get(kind);
        ((kind.process, kind.stack), bytes)
    });
    let stack = stacks
        .max_by_key(|&(stack, bytes)| (bytes, std::cmp::Reverse(stack)))
        .map_or((ProcessId(0), StackId::EMPTY), |(stack, _)| stack);
    let call_site = index.label(index.call_site(stack.0, stack.1)).to_owned();
    let mut ops: Vec<(StrId, u64)> = tallies.ops.take().map(|(label, bytes)| (StrId(label), bytes)).collect();
    ops.sort_by_key(|&(label, bytes)| (std::cmp::Reverse(bytes), label));
    let key = match (by, first) {
        (GroupBy::CallSite, _) | (_, None) => call_site.clone(),
        (GroupBy::Op, Some(kind)) => index.label(index.op(kind.process, kind.op, kind.stack)).to_owned(),
        (GroupBy::Stack, _) => stack_key(index, stack),
        (GroupBy::Module, Some(kind)) => {
            index.module(kind.process, kind.op).map_or(NO_MODULE, |label| index.label(label)).to_owned()
        }
        (GroupBy::Category, _) => Category::of_number(number).label().to_owned(),
        (GroupBy::Step, _) if number == u64::MAX => msg!("(outside steps)").to_owned(),
        (GroupBy::Step, _) => format!("step {}", number as i64),
        (GroupBy::Size, _) => format_bytes_exact(number),
    };
    Group {
        key,
        count: total.count,
        bytes: total.bytes,
        call_site,
        ops: ops.iter().take(MAX_OPS).map(|&(label, _)| index.label(label).to_owned()).collect(),
        stack,
        steps: total.steps(),
        per_step_bytes: total.per_step_bytes(),
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

#[cfg(test)]
mod tests {
    use super::Sum;

    fn per_step(steps: &[i64]) -> u64 {
        let mut sum = Sum::NONE;
        steps.iter().for_each(|&step| sum.add(100, Some(step)));
        sum.per_step_bytes()
    }

    #[test]
    fn what_comes_every_fourth_step_is_spread_over_four() {
        assert_eq!(per_step(&[0, 1, 2, 3]), 100);
        assert_eq!(per_step(&[3, 7, 11]), 25);
        assert_eq!(per_step(&[11, 15]), 25);
        assert_eq!(per_step(&[11, 11, 15, 15]), 50);
    }

    /// Optimizer state is made in one step: a rate would make it the worst leak of all.
    #[test]
    fn what_one_step_made_has_no_rate() {
        assert_eq!(per_step(&[]), 0);
        assert_eq!(per_step(&[5, 5, 5]), 0);
    }

    #[test]
    fn parts_of_a_cell_count_each_step_once() {
        let mut parts = [Sum::NONE; 3];
        [3, 7, 7].into_iter().for_each(|step| parts[0].add(100, Some(step)));
        parts[1].add(100, None);
        [7, 11].into_iter().for_each(|step| parts[2].add(100, Some(step)));
        let mut whole = Sum::NONE;
        parts.iter().for_each(|part| whole.follow(part));
        assert_eq!((whole.count, whole.step_count, whole.steps()), (6, 3, Some((3, 11))));
    }
}
