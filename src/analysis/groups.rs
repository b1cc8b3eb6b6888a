//! Rows summed by call site, op, stack, module, step or size.

use rustc_hash::FxHashMap;

use super::index::NO_MODULE;
use super::{Index, RowRef};
use crate::model::{Allocation, ProcessId, StackId, StrId, format_bytes_exact};

/// How many ops a group names.
const MAX_OPS: usize = 8;

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
    pub rows: Vec<RowRef>,
}

/// Sums rows; the largest group first, equal ones by key.
pub fn group(index: &Index, rows: &[RowRef], by: GroupBy) -> Vec<Group> {
    let mut positions: FxHashMap<u64, usize> = FxHashMap::default();
    let mut groups: Vec<(RowRef, Vec<RowRef>)> = Vec::new();
    for &row in rows {
        let key = key_of(index, row, &row.get(&index.session), by);
        let position = *positions.entry(key).or_insert_with(|| {
            groups.push((row, Vec::new()));
            groups.len() - 1
        });
        groups[position].1.push(row);
    }
    let mut groups: Vec<Group> =
        groups.into_iter().map(|(first, rows)| summarize(index, first, rows, by)).collect();
    groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));
    groups
}

/// A number that rows of one group share and others don't.
fn key_of(index: &Index, row: RowRef, allocation: &Allocation, by: GroupBy) -> u64 {
    let label = |id: StrId| u64::from(id.0);
    match by {
        GroupBy::CallSite => label(index.call_site(row.process, allocation.stack)),
        GroupBy::Op => label(index.op(row.process, allocation.op, allocation.stack)),
        GroupBy::Stack => u64::from(row.process.0) << 32 | u64::from(allocation.stack.0),
        GroupBy::Module => index.module(row.process, allocation.op).map_or(0, label),
        GroupBy::Step => step_number(index, row.process, allocation).map_or(u64::MAX, |number| number as u64),
        GroupBy::Size => allocation.size_bytes,
    }
}

fn step_number(index: &Index, process: ProcessId, allocation: &Allocation) -> Option<i64> {
    index.session.process(process).steps.get(allocation.step as usize).map(|step| step.number)
}

fn summarize(index: &Index, first: RowRef, rows: Vec<RowRef>, by: GroupBy) -> Group {
    let mut bytes = 0_u64;
    let mut by_stack: FxHashMap<(ProcessId, StackId), u64> = FxHashMap::default();
    let mut by_op: FxHashMap<StrId, u64> = FxHashMap::default();
    let mut steps: Option<(i64, i64)> = None;
    for row in &rows {
        let allocation = row.get(&index.session);
        bytes = bytes.saturating_add(allocation.size_bytes);
        *by_stack.entry((row.process, allocation.stack)).or_default() += allocation.size_bytes;
        *by_op.entry(index.op(row.process, allocation.op, allocation.stack)).or_default() +=
            allocation.size_bytes;
        if let Some(number) = step_number(index, row.process, &allocation) {
            let (low, high) = steps.unwrap_or((number, number));
            steps = Some((low.min(number), high.max(number)));
        }
    }
    let stack = by_stack
        .into_iter()
        .max_by_key(|&(stack, bytes)| (bytes, std::cmp::Reverse(stack)))
        .map_or((first.process, StackId::EMPTY), |(stack, _)| stack);
    let call_site = index.label(index.call_site(stack.0, stack.1)).to_owned();
    let mut ops: Vec<(StrId, u64)> = by_op.into_iter().collect();
    ops.sort_by_key(|&(label, bytes)| (std::cmp::Reverse(bytes), label));
    let allocation = first.get(&index.session);
    let key = match by {
        GroupBy::CallSite => call_site.clone(),
        GroupBy::Op => index.label(index.op(first.process, allocation.op, allocation.stack)).to_owned(),
        GroupBy::Stack => stack_key(index, stack),
        GroupBy::Module => index
            .module(first.process, allocation.op)
            .map_or(NO_MODULE, |label| index.label(label))
            .to_owned(),
        GroupBy::Step => step_number(index, first.process, &allocation)
            .map_or_else(|| "(outside steps)".to_owned(), |number| format!("step {number}")),
        GroupBy::Size => format_bytes_exact(allocation.size_bytes),
    };
    Group {
        key,
        count: rows.len() as u64,
        bytes,
        call_site,
        ops: ops.iter().take(MAX_OPS).map(|&(label, _)| index.label(label).to_owned()).collect(),
        stack,
        steps,
        per_step_bytes: steps.map_or(0, |(low, high)| bytes / (high - low + 1).unsigned_abs().max(1)),
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
