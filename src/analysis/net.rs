//! What each module, op and step added: allocated, freed, kept and peak, as a table and as a tree of modules.
//!
//! The same as printing `memory_allocated()` before and after each block, for all blocks at once.

use rustc_hash::FxHashMap;

use super::index::NO_MODULE;
use super::query::classify;
use super::{Index, Query, RowClass, RowRef, Totals};
use crate::model::{Phase, StrId};

/// What joins the parts of a module path.
const PATH_SEPARATOR: &str = " > ";

/// What net figures are summed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NetBy {
    /// The module that was running, forward and backward apart.
    #[default]
    Module,
    /// The op.
    Op,
    /// The step.
    Step,
}

impl NetBy {
    /// All of them, in the order of menus.
    pub const ALL: [Self; 3] = [Self::Module, Self::Op, Self::Step];

    /// The word for people and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Op => "op",
            Self::Step => "step",
        }
    }
}

/// The figures of one module, op or step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetRow {
    /// Which one, in words.
    pub key: String,
    /// The part of the step, for modules and ops.
    pub phase: Phase,
    /// Allocated there in the range.
    pub allocated: Totals,
    /// Of these, freed by the end of the range.
    pub freed: Totals,
    /// Of these, survivors of the query.
    pub kept: Totals,
    /// The highest that its own allocations reached together.
    pub peak_bytes: u64,
    /// The kept rows, in the order they came.
    pub rows: Vec<RowRef>,
}

impl NetRow {
    /// Allocated minus freed by the end of the range.
    pub fn net_bytes(&self) -> i64 {
        self.allocated.bytes as i64 - self.freed.bytes as i64
    }
}

/// A module with those inside it; its figures include theirs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetNode {
    /// The module's own name: `Conv2d_0`.
    pub name: String,
    /// Allocated in it.
    pub allocated: Totals,
    /// Freed by the end of the range.
    pub freed: Totals,
    /// Survivors of the query.
    pub kept: Totals,
    /// The highest of any row inside.
    pub peak_bytes: u64,
    /// The modules inside, those that keep most first.
    pub children: Vec<NetNode>,
}

/// Sums what is kept of one key while its rows pass by in the order of time.
#[derive(Default)]
struct Sum {
    row: NetRow,
    /// (time, bytes) of this key's frees, for the peak.
    changes: Vec<(i64, i64)>,
}

/// The table: what keeps most first, or steps in their order.
pub fn net_table(index: &Index, query: &Query, by: NetBy) -> Vec<NetRow> {
    let mut sums: FxHashMap<(u64, Phase), Sum> = FxHashMap::default();
    let until_ns = query.free_by.until_ns(query.range);
    let session = &index.session;
    for id in query.selection.processes(session) {
        let process = session.process(id);
        let table = &process.allocations;
        for row in table.rows_in(query.range) {
            if !query.selection.device.admits(table.device[row]) {
                continue;
            }
            let op = process.ops.get(table.op[row]);
            let phase = op.map_or(Phase::Unknown, |op| op.phase);
            let key = match by {
                NetBy::Module => index.module(id, table.op[row]).map_or(0, |label| u64::from(label.0)),
                NetBy::Op => u64::from(index.op(id, table.op[row], table.stack[row]).0),
                NetBy::Step => {
                    process.steps.get(table.step[row] as usize).map_or(u64::MAX, |step| step.number as u64)
                }
            };
            let phase = if by == NetBy::Step { Phase::Unknown } else { phase };
            let sum = sums.entry((key, phase)).or_insert_with(|| Sum {
                row: NetRow { key: key_text(index, by, key), phase, ..NetRow::default() },
                changes: Vec::new(),
            });
            let bytes = table.size_bytes[row];
            sum.row.allocated.add(bytes);
            if table.free_completed_ns[row] < query.range.end_ns {
                sum.row.freed.add(bytes);
            }
            if classify(table, row, until_ns) == RowClass::Kept {
                sum.row.kept.add(bytes);
                sum.row.rows.push(RowRef { process: id, row: row as u32 });
            }
            let change = i64::try_from(bytes).unwrap_or(i64::MAX);
            sum.changes.push((table.alloc_ns[row], change));
            sum.changes.push((table.free_completed_ns[row], -change));
        }
    }
    let mut rows: Vec<(u64, NetRow)> = sums
        .into_iter()
        .map(|((key, _), mut sum)| {
            sum.row.peak_bytes = peak_of(&mut sum.changes);
            (key, sum.row)
        })
        .collect();
    if by == NetBy::Step {
        rows.sort_by_key(|&(number, _)| number as i64);
    } else {
        rows.sort_by(|(_, a), (_, b)| {
            (b.kept.bytes, b.allocated.bytes)
                .cmp(&(a.kept.bytes, a.allocated.bytes))
                .then_with(|| a.key.cmp(&b.key))
        });
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn key_text(index: &Index, by: NetBy, key: u64) -> String {
    match by {
        NetBy::Module if key == 0 => NO_MODULE.to_owned(),
        NetBy::Module | NetBy::Op => index.label(StrId(key as u32)).to_owned(),
        NetBy::Step if key == u64::MAX => "(outside steps)".to_owned(),
        NetBy::Step => format!("step {}", key as i64),
    }
}

fn peak_of(changes: &mut [(i64, i64)]) -> u64 {
    changes.sort_unstable();
    let (mut level, mut peak) = (0_i64, 0_i64);
    for &(_, bytes) in changes.iter() {
        level = level.saturating_add(bytes);
        peak = peak.max(level);
    }
    peak.max(0) as u64
}

/// The modules as a tree, forward and backward together; those that keep most first.
pub fn module_tree(index: &Index, query: &Query) -> Vec<NetNode> {
    let mut root = NetNode::default();
    for row in net_table(index, query, NetBy::Module) {
        let mut node = &mut root;
        for name in row.key.split(PATH_SEPARATOR) {
            let position = node.children.iter().position(|child| child.name == name).unwrap_or_else(|| {
                node.children.push(NetNode { name: name.to_owned(), ..NetNode::default() });
                node.children.len() - 1
            });
            node = &mut node.children[position];
            add(&mut node.allocated, row.allocated);
            add(&mut node.freed, row.freed);
            add(&mut node.kept, row.kept);
            node.peak_bytes = node.peak_bytes.max(row.peak_bytes);
        }
    }
    let mut pending = vec![&mut root];
    while let Some(node) = pending.pop() {
        node.children.sort_by_key(|child| std::cmp::Reverse((child.kept.bytes, child.allocated.bytes)));
        pending.extend(node.children.iter_mut());
    }
    root.children
}

fn add(sum: &mut Totals, more: Totals) {
    sum.count += more.count;
    sum.bytes = sum.bytes.saturating_add(more.bytes);
}
