//! What the modules added, as a tree: allocated in forward and backward, freed, kept and peak.
//!
//! The same as printing `memory_allocated()` before and after each block, for all blocks at once.

use rustc_hash::FxHashMap;

use super::index::NO_MODULE;
use super::query::classify;
use super::{Index, Query, RowClass, Totals};
use crate::model::{Phase, ProcessId, StrId};

/// What joins the parts of a module path.
const PATH_SEPARATOR: &str = " > ";

/// A module with those inside it; its figures include theirs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetNode {
    /// The module's own name: `Conv2d_0`.
    pub name: String,
    /// The names from the outermost module to this one, as an op's module is written.
    pub path: String,
    /// How deep it lies; those that lie in no other have 0.
    pub depth: usize,
    /// Allocated in it in the range, all phases together.
    pub allocated: Totals,
    /// Of these, allocated by its forward.
    pub forward: Totals,
    /// Of these, allocated by its backward.
    pub backward: Totals,
    /// Of these, freed by the end of the range.
    pub freed: Totals,
    /// Of these, survivors of the query.
    pub kept: Totals,
    /// The highest level that these reached together.
    pub peak_bytes: u64,
    /// How many modules inside follow it in the list.
    pub descendants: usize,
}

impl NetNode {
    /// Allocated minus freed by the end of the range.
    pub fn net_bytes(&self) -> i64 {
        let clamp = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        clamp(self.allocated.bytes).saturating_sub(clamp(self.freed.bytes))
    }
}

/// A module while its rows pass by.
#[derive(Default)]
struct Branch {
    node: NetNode,
    /// (time, bytes) of allocations and frees, for the peak.
    changes: Vec<(i64, i64)>,
    children: Vec<usize>,
}

/// The modules in which something was allocated in the range: each before those inside it, and of siblings the one that
/// keeps most first.
pub fn module_tree(index: &Index, query: &Query) -> Vec<NetNode> {
    let mut branches = vec![Branch::default()];
    let mut path_of: FxHashMap<(ProcessId, StrId), Vec<usize>> = FxHashMap::default();
    let until_ns = query.free_by.until_ns(query.range);
    let session = &index.session;
    for id in query.selection.processes(session) {
        let process = session.process(id);
        let table = &process.allocations;
        for row in table.rows_in(query.range) {
            if !query.selection.device.admits(table.device[row]) {
                continue;
            }
            let module = index.module(id, table.op[row]);
            let path = path_of
                .entry((id, module.unwrap_or_default()))
                .or_insert_with(|| path(&mut branches, module.map_or(NO_MODULE, |label| index.label(label))));
            let phase = process.ops.get(table.op[row]).map_or(Phase::Unknown, |op| op.phase);
            let bytes = table.size_bytes[row];
            let free_ns = table.free_completed_ns[row];
            let is_kept = classify(table, row, until_ns) == RowClass::Kept;
            let change = i64::try_from(bytes).unwrap_or(i64::MAX);
            for &at in &*path {
                let Branch { node, changes, .. } = &mut branches[at];
                node.allocated.add(bytes);
                match phase {
                    Phase::Forward => node.forward.add(bytes),
                    Phase::Backward => node.backward.add(bytes),
                    _ => {}
                }
                changes.push((table.alloc_ns[row], change));
                if free_ns < query.range.end_ns {
                    node.freed.add(bytes);
                    changes.push((free_ns, -change));
                }
                if is_kept {
                    node.kept.add(bytes);
                }
            }
        }
    }
    for branch in &mut branches {
        branch.node.peak_bytes = peak_of(&mut branch.changes);
    }
    in_order(branches)
}

/// The branches from the outermost module to the innermost of a path, made where they aren't there yet. The first branch
/// is the root, which is no module.
fn path(branches: &mut Vec<Branch>, text: &str) -> Vec<usize> {
    let mut at = 0;
    let mut end = 0;
    text.split(PATH_SEPARATOR)
        .enumerate()
        .map(|(depth, name)| {
            end += name.len() + if depth > 0 { PATH_SEPARATOR.len() } else { 0 };
            let known =
                branches[at].children.iter().copied().find(|&child| branches[child].node.name == name);
            at = known.unwrap_or_else(|| {
                let child = branches.len();
                branches[at].children.push(child);
                let path = text[..end].to_owned();
                let node = NetNode { name: name.to_owned(), path, depth, ..NetNode::default() };
                branches.push(Branch { node, ..Branch::default() });
                child
            });
            at
        })
        .collect()
}

/// The nodes as a list, each before those inside it.
fn in_order(mut branches: Vec<Branch>) -> Vec<NetNode> {
    for at in 0..branches.len() {
        let mut children = std::mem::take(&mut branches[at].children);
        // What is popped first comes first.
        children.sort_by_key(|&child| {
            let node = &branches[child].node;
            (node.kept.bytes, node.allocated.bytes, std::cmp::Reverse(node.name.clone()))
        });
        branches[at].children = children;
    }
    let mut nodes: Vec<NetNode> = Vec::with_capacity(branches.len());
    let mut pending = branches[0].children.clone();
    while let Some(at) = pending.pop() {
        pending.extend(&branches[at].children);
        nodes.push(std::mem::take(&mut branches[at].node));
    }
    for at in 0..nodes.len() {
        let inside = nodes[at + 1..].iter().take_while(|node| node.depth > nodes[at].depth).count();
        nodes[at].descendants = inside;
    }
    nodes
}

/// The highest level of changes, sorted here: of those at one instant frees come first.
pub(super) fn peak_of(changes: &mut [(i64, i64)]) -> u64 {
    changes.sort_unstable();
    let (mut level, mut peak) = (0_i64, 0_i64);
    for &(_, bytes) in changes.iter() {
        level = level.saturating_add(bytes);
        peak = peak.max(level);
    }
    peak.max(0) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align;
    use crate::analysis::{FreeBy, Selection, UserCode};
    use crate::model::{Allocation, Clock, NEVER_NS, Op, Recording, SourceKind, TimeRange};

    #[test]
    fn modules_include_what_lies_inside_them() {
        let mut recording = Recording::new(SourceKind::Trace, "test", Clock::Unix);
        let mut op = |module: &str, phase: Phase| {
            let module = recording.strings.intern(module);
            let name = recording.strings.intern("aten::empty");
            recording.ops.intern(Op { name, module, phase, ..Op::default() })
        };
        let conv = op("Net_0 > Conv2d_0", Phase::Forward);
        let conv_back = op("Net_0 > Conv2d_0", Phase::Backward);
        let relu = op("Net_0 > ReLU_0", Phase::Forward);
        let rows =
            [(conv, 10, NEVER_NS, 100), (conv_back, 20, 30, 40), (relu, 25, 28, 7), (relu, 30, NEVER_NS, 5)];
        for (address, (op, alloc_ns, free_ns, size_bytes)) in rows.into_iter().enumerate() {
            recording.allocations.push(Allocation {
                op,
                ..Allocation::from_to(address as u64 + 1, size_bytes, alloc_ns, free_ns)
            });
        }
        recording.span = Some(TimeRange::new(0, 50));
        let session = align::build(&[align::Opened::new("t.json", Arc::new(recording))]);
        let index = Index::new(Arc::new(session), UserCode::default());
        let query = Query {
            selection: Selection { device: crate::analysis::DeviceFilter::All, ..Selection::default() },
            range: TimeRange::new(0, 50),
            free_by: FreeBy::RecordingEnd,
        };
        let nodes = module_tree(&index, &query);
        let names: Vec<(&str, usize, usize)> =
            nodes.iter().map(|node| (node.name.as_str(), node.depth, node.descendants)).collect();
        assert_eq!(names, [("Net_0", 0, 2), ("Conv2d_0", 1, 0), ("ReLU_0", 1, 0)]);
        assert_eq!(nodes[1].path, "Net_0 > Conv2d_0");
        let net = &nodes[0];
        assert_eq!((net.allocated.bytes, net.freed.bytes, net.kept.bytes), (152, 47, 105));
        assert_eq!((net.forward.bytes, net.backward.bytes, net.net_bytes()), (112, 40, 105));
        assert_eq!(net.peak_bytes, 147);
        assert_eq!((nodes[1].peak_bytes, nodes[2].peak_bytes), (140, 7));
    }
}
