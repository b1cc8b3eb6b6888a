//! Interned call stacks: frames once, stacks as a prefix tree.

use rustc_hash::FxHashMap;

use super::{StrId, Strings};

/// One frame of a call stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The file as the recording names it: whole paths in snapshots, shortened ones in traces, empty for C++.
    pub file: StrId,
    /// The function.
    pub function: StrId,
    /// The line, 0 when not known. Snapshots give the line that was executing, traces the function's first line.
    pub line: u32,
}

/// A frame of a [`Stacks`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub u32);

/// A stack of a [`Stacks`] table: the node of its innermost frame. [`StackId::EMPTY`] has no frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack without frames.
    pub const EMPTY: Self = Self(0);

    /// Whether the stack has no frames.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }
}

/// A table of frames and stacks. Each stack is a node whose parent is its caller's stack.
#[derive(Clone, Debug)]
pub struct Stacks {
    frames: Vec<Frame>,
    frame_ids: FxHashMap<Frame, FrameId>,
    /// (caller's stack, innermost frame); entry 0 is the empty stack and points to itself.
    nodes: Vec<(StackId, FrameId)>,
    node_ids: FxHashMap<(StackId, FrameId), StackId>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            frame_ids: FxHashMap::default(),
            nodes: vec![(StackId::EMPTY, FrameId(u32::MAX))],
            node_ids: FxHashMap::default(),
        }
    }
}

impl Stacks {
    /// The id of `frame`, adding it when it is new.
    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        *self.frame_ids.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            FrameId(self.frames.len() as u32 - 1)
        })
    }

    /// The stack of `caller` with `frame` called from it.
    pub fn push(&mut self, caller: StackId, frame: FrameId) -> StackId {
        *self.node_ids.entry((caller, frame)).or_insert_with(|| {
            self.nodes.push((caller, frame));
            StackId(self.nodes.len() as u32 - 1)
        })
    }

    /// The stack with these frames, innermost first (the order of snapshots).
    pub fn intern_innermost_first(&mut self, frames: &[FrameId]) -> StackId {
        frames.iter().rev().fold(StackId::EMPTY, |stack, &frame| self.push(stack, frame))
    }

    /// The caller's stack; the empty stack's caller is itself.
    pub fn caller(&self, stack: StackId) -> StackId {
        self.nodes.get(stack.0 as usize).map_or(StackId::EMPTY, |node| node.0)
    }

    /// The innermost frame.
    pub fn innermost(&self, stack: StackId) -> Option<Frame> {
        let &(_, frame) = self.nodes.get(stack.0 as usize)?;
        self.frames.get(frame.0 as usize).copied()
    }

    /// The id of the innermost frame.
    pub fn innermost_id(&self, stack: StackId) -> Option<FrameId> {
        let &(_, frame) = self.nodes.get(stack.0 as usize)?;
        ((frame.0 as usize) < self.frames.len()).then_some(frame)
    }

    /// The frame of an id.
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id.0 as usize).copied()
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = Frame> + '_ {
        self.walk(stack).filter_map(|stack| self.innermost(stack))
    }

    /// The stack and its callers' stacks, innermost first, without the empty one.
    pub fn walk(&self, stack: StackId) -> impl Iterator<Item = StackId> + '_ {
        std::iter::successors(Some(stack), |&stack| Some(self.caller(stack)))
            .take_while(|stack| !stack.is_empty())
    }

    /// How many distinct stacks there are, the empty one included. Ids are `0..len`.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is only the empty stack.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// How many distinct frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// Adds every stack of `other`, whose strings map here through `strings`, and returns the map of its stack ids.
    pub fn absorb(&mut self, other: &Self, strings: &[StrId]) -> Vec<StackId> {
        let map = |id: StrId| strings.get(id.0 as usize).copied().unwrap_or_default();
        let frames: Vec<FrameId> = other
            .frames
            .iter()
            .map(|f| self.intern_frame(Frame { file: map(f.file), function: map(f.function), line: f.line }))
            .collect();
        let mut stacks = Vec::with_capacity(other.nodes.len());
        stacks.push(StackId::EMPTY);
        // A node's caller always stands before it, so its new id is known by then.
        for &(caller, frame) in &other.nodes[1..] {
            let stack = self.push(stacks[caller.0 as usize], frames[frame.0 as usize]);
            stacks.push(stack);
        }
        stacks
    }

    /// `file.py:LINE function` of a frame, with the file's last path component: how call sites are written everywhere.
    pub fn format_frame(strings: &Strings, frame: Frame) -> String {
        let function = strings.get(frame.function);
        let file = strings.get(frame.file);
        let short = file.rsplit(['/', '\\']).next().unwrap_or(file);
        place_and_function(short, frame.line, function)
    }

    /// The same with the file's whole path: how stacks are written.
    pub fn format_whole_frame(strings: &Strings, frame: Frame) -> String {
        place_and_function(strings.get(frame.file), frame.line, strings.get(frame.function))
    }
}

fn place_and_function(file: &str, line: u32, function: &str) -> String {
    // `??`: the unwinder found no source.
    match (file.is_empty() || file == "??", line) {
        (true, _) => function.to_owned(),
        (false, 0) => format!("{file} {function}"),
        (false, line) => format!("{file}:{line} {function}"),
    }
}
