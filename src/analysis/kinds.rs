//! Kinds of allocations: each distinct pair of stack and op gets a dense number, so that a million rows are summed
//! without hashing.

use rustc_hash::FxHashMap;

use crate::model::{OpId, ProcessId, Session, StackId};

/// The kind of every row of a session.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// What each kind is.
    list: Vec<Kind>,
    /// The kind of each row, by process.
    of_rows: Vec<Vec<u32>>,
}

/// What all rows of one kind share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub process: ProcessId,
    pub stack: StackId,
    pub op: OpId,
    /// The first kind with this stack: a dense number of the stack.
    pub of_stack: u32,
}

impl Kinds {
    pub fn new(session: &Session) -> Self {
        let mut kinds = Self::default();
        for (position, process) in session.processes.iter().enumerate() {
            let id = ProcessId(position as u32);
            let table = &process.allocations;
            let mut known: FxHashMap<(StackId, OpId), u32> = FxHashMap::default();
            // Most stacks have one op: the last one seen answers without hashing.
            let mut last_of_stack: Vec<(OpId, u32)> = vec![(OpId::NONE, u32::MAX); process.stacks.len()];
            let mut first_of_stack: FxHashMap<StackId, u32> = FxHashMap::default();
            let rows = table.stack.iter().zip(&table.op).map(|(&stack, &op)| {
                let last = last_of_stack.get(stack.0 as usize).copied();
                if let Some((last_op, kind)) = last
                    && last_op == op
                    && kind != u32::MAX
                {
                    return kind;
                }
                let kind = *known.entry((stack, op)).or_insert_with(|| {
                    let kind = kinds.list.len() as u32;
                    let of_stack = *first_of_stack.entry(stack).or_insert(kind);
                    kinds.list.push(Kind { process: id, stack, op, of_stack });
                    kind
                });
                if let Some(last) = last_of_stack.get_mut(stack.0 as usize) {
                    *last = (op, kind);
                }
                kind
            });
            let of_rows: Vec<u32> = rows.collect();
            kinds.of_rows.push(of_rows);
        }
        kinds
    }

    /// How many kinds there are; their numbers are `0..len`.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// What a kind is.
    pub fn get(&self, kind: u32) -> Kind {
        self.list[kind as usize]
    }

    /// The kinds of a process's rows.
    pub fn of_process(&self, process: ProcessId) -> &[u32] {
        self.of_rows.get(process.0 as usize).map_or(&[], Vec::as_slice)
    }
}
