//! Which op allocated: interned, since thousands of allocations share one.

use rustc_hash::FxHashMap;

use super::StrId;

/// An op of an [`Ops`] table, or [`OpId::NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u32);

impl OpId {
    /// The op is not known.
    pub const NONE: Self = Self(u32::MAX);
}

impl Default for OpId {
    fn default() -> Self {
        Self::NONE
    }
}

/// Which part of a training step an op belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Nothing tells.
    #[default]
    Unknown,
    /// Building the graph, or computing without one.
    Forward,
    /// On the autograd thread, or under an autograd node.
    Backward,
    /// Inside an optimizer's step.
    Optimizer,
}

/// What is known of the op behind an allocation. Empty strings mean "not known".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Op {
    /// The innermost op, `aten::empty`; or a library function read from the stack, `torch.nn.functional.batch_norm`.
    pub name: StrId,
    /// The outermost op around it on the same thread, `aten::conv2d`.
    pub outer: StrId,
    /// For a backward op, the forward op that it belongs to.
    pub forward: StrId,
    /// Input shapes of the op that has them, innermost first: `[[64, 3, 7, 7], [64]]`.
    pub shapes: StrId,
    /// Input types beside the shapes: `["float", "float"]`.
    pub dtypes: StrId,
    /// The module path, outermost first: `DeepLabV3_0 > IntermediateLayerGetter_0 > Conv2d_0`.
    pub module: StrId,
    /// The innermost user annotation that isn't a step.
    pub annotation: StrId,
    /// The tensor's likely shape and dtype, `[8, 64, 128, 128] float`.
    pub inferred_tensor: StrId,
    /// The rule by which [`Self::inferred_tensor`] was found.
    pub inferred_rule: StrId,
    /// The part of the step.
    pub phase: Phase,
    /// Read from a Python stack, not recorded by a trace.
    pub is_from_stack: bool,
}

impl Op {
    /// The same op with its strings mapped to another table.
    #[must_use]
    pub fn map_strings(self, map: impl Fn(StrId) -> StrId) -> Self {
        Self {
            name: map(self.name),
            outer: map(self.outer),
            forward: map(self.forward),
            shapes: map(self.shapes),
            dtypes: map(self.dtypes),
            module: map(self.module),
            annotation: map(self.annotation),
            inferred_tensor: map(self.inferred_tensor),
            inferred_rule: map(self.inferred_rule),
            ..self
        }
    }
}

/// A table of distinct ops.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    list: Vec<Op>,
    ids: FxHashMap<Op, OpId>,
}

impl Ops {
    /// The id of `op`, adding it when it is new.
    pub fn intern(&mut self, op: Op) -> OpId {
        *self.ids.entry(op).or_insert_with(|| {
            self.list.push(op);
            OpId(self.list.len() as u32 - 1)
        })
    }

    /// The op of an id; `None` for [`OpId::NONE`].
    pub fn get(&self, id: OpId) -> Option<Op> {
        self.list.get(id.0 as usize).copied()
    }

    /// How many distinct ops there are. Ids are `0..len`.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All ops in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = Op> + '_ {
        self.list.iter().copied()
    }
}
