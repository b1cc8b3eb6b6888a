//! Bytes by call stack as a tree: who called whom, and how much each held.

use rustc_hash::FxHashMap;

use super::{Index, RowRef};
use crate::model::{FrameId, ProcessId, StackId, Stacks};

/// How many nodes a tree has at most; the rest of its bytes stays with the callers.
const MAX_NODES: usize = 20_000;
/// How deep it goes at most.
const MAX_DEPTH: usize = 256;

/// Which end of the stacks is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlameOrder {
    /// The program's entry is the root: what did each function lead to?
    #[default]
    TopDown,
    /// The allocating function is the root: who called it?
    BottomUp,
}

/// A function called from the functions above it.
#[derive(Clone, Debug, PartialEq)]
pub struct FlameNode {
    /// `file.py:LINE function`; empty for the root.
    pub label: String,
    /// The node above, as an index; the root's is itself.
    pub parent: u32,
    /// How many nodes are above.
    pub depth: u16,
    /// The bytes that it and what it led to hold.
    pub bytes: u64,
    /// In how many allocations.
    pub count: u64,
    /// The bytes of its siblings that stand before it and of everything before its parent: where it begins.
    pub start_bytes: u64,
}

/// Sums rows by stack. The first node is the root; siblings stand in the order of their bytes.
pub fn flame(index: &Index, rows: &[RowRef], order: FlameOrder) -> Vec<FlameNode> {
    let mut by_stack: FxHashMap<(ProcessId, StackId), (u64, u64)> = FxHashMap::default();
    for &row in rows {
        let table = &index.session.process(row.process).allocations;
        let sum = by_stack.entry((row.process, table.stack[row.row as usize])).or_default();
        sum.0 = sum.0.saturating_add(table.size_bytes[row.row as usize]);
        sum.1 += 1;
    }
    let mut stacks: Vec<_> = by_stack.into_iter().collect();
    stacks.sort_by_key(|&(stack, (bytes, _))| (std::cmp::Reverse(bytes), stack));

    let mut nodes =
        vec![FlameNode { label: String::new(), parent: 0, depth: 0, bytes: 0, count: 0, start_bytes: 0 }];
    let mut children: FxHashMap<(u32, ProcessId, FrameId), u32> = FxHashMap::default();
    for ((process, stack), (bytes, count)) in stacks {
        let tables = index.session.process(process);
        let mut frames: Vec<FrameId> = tables
            .stacks
            .walk(stack)
            .filter_map(|stack| tables.stacks.innermost_id(stack))
            .take(MAX_DEPTH)
            .collect();
        if order == FlameOrder::TopDown {
            frames.reverse();
        }
        let mut at = 0_u32;
        add(&mut nodes, at, bytes, count);
        for frame in frames {
            let next = match children.get(&(at, process, frame)) {
                Some(&next) => next,
                None if nodes.len() >= MAX_NODES => break,
                None => {
                    let next = nodes.len() as u32;
                    let label = tables
                        .stacks
                        .frame(frame)
                        .map_or_else(String::new, |frame| Stacks::format_frame(&tables.strings, frame));
                    let depth = nodes[at as usize].depth + 1;
                    nodes.push(FlameNode { label, parent: at, depth, bytes: 0, count: 0, start_bytes: 0 });
                    children.insert((at, process, frame), next);
                    next
                }
            };
            at = next;
            add(&mut nodes, at, bytes, count);
        }
    }
    place(&mut nodes);
    nodes
}

fn add(nodes: &mut [FlameNode], at: u32, bytes: u64, count: u64) {
    let node = &mut nodes[at as usize];
    node.bytes = node.bytes.saturating_add(bytes);
    node.count += count;
}

/// Gives each node its place beside its siblings. A parent always stands before its children in the list.
fn place(nodes: &mut [FlameNode]) {
    let mut order: Vec<u32> = (1..nodes.len() as u32).collect();
    order.sort_by_key(|&at| {
        let node = &nodes[at as usize];
        (node.depth, node.parent, std::cmp::Reverse(node.bytes), at)
    });
    let mut used = vec![0_u64; nodes.len()];
    for at in order {
        let parent = nodes[at as usize].parent as usize;
        nodes[at as usize].start_bytes = nodes[parent].start_bytes.saturating_add(used[parent]);
        used[parent] = used[parent].saturating_add(nodes[at as usize].bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::align;
    use crate::analysis::UserCode;
    use crate::model::{Allocation, Clock, Frame, Recording, SourceKind, TimeRange};

    #[test]
    fn bytes_sum_up_the_callers_and_siblings_stand_side_by_side() {
        let mut recording = Recording::new(SourceKind::Snapshot, "test", Clock::Unix);
        let mut frame = |name: &str| {
            let function = recording.strings.intern(name);
            recording.stacks.intern_frame(Frame { function, ..Default::default() })
        };
        let (main, train, validate, conv) = (frame("main"), frame("train"), frame("validate"), frame("conv"));
        for (frames, size_bytes) in
            [(vec![conv, train, main], 100), (vec![conv, validate, main], 300), (vec![train, main], 50)]
        {
            let stack = recording.stacks.intern_innermost_first(&frames);
            recording.allocations.push(Allocation { size_bytes, alloc_ns: 1, stack, ..Default::default() });
        }
        recording.span = Some(TimeRange::new(0, 10));
        let opened = align::Opened::new("s.pickle", Arc::new(recording));
        let index = Index::new(Arc::new(align::build(&[opened])), UserCode::default());
        let rows: Vec<RowRef> = (0..3).map(|row| RowRef { process: ProcessId(0), row }).collect();
        let told = |order| -> Vec<(String, u64, u64)> {
            let nodes = flame(&index, &rows, order);
            nodes.into_iter().map(|node| (node.label, node.bytes, node.start_bytes)).collect()
        };
        let names = |told: &[(String, u64, u64)]| -> Vec<String> {
            told.iter().map(|(name, bytes, start)| format!("{name} {bytes} {start}")).collect()
        };
        assert_eq!(
            names(&told(FlameOrder::TopDown)),
            [" 450 0", "main 450 0", "validate 300 0", "conv 300 0", "train 150 300", "conv 100 300"]
        );
        let up = names(&told(FlameOrder::BottomUp));
        assert!(up.contains(&"conv 400 0".to_owned()) && up.contains(&"train 50 400".to_owned()), "{up:?}");
    }
}
