//! Which op, module, annotation and Python stack each change of memory belongs to: what encloses it on its thread.

use rustc_hash::FxHashMap;

use super::collect::{Collected, RawSlice};
use crate::model::{Frame, Op, OpId, Ops, Phase, SliceKind, StackId, Stacks, StrId, Strings};

/// Slices nest deeper than this only in damaged files.
const MAX_DEPTH: usize = 4096;

/// What was found for each memory event.
pub(super) struct Attributed {
    pub ops: Ops,
    pub stacks: Stacks,
    /// By memory event.
    pub op: Vec<OpId>,
    /// By memory event.
    pub stack: Vec<StackId>,
    /// By slice, in the order of `slices` after sorting.
    pub depth: Vec<u16>,
}

/// What encloses an instant, from the outermost slice inwards.
#[derive(Clone, Copy, Default)]
struct Context {
    end_ns: i64,
    stack: StackId,
    op: Op,
    sequence: Option<i64>,
    is_backward: bool,
    is_optimizer: bool,
}

/// Sorts the slices by thread and start, and sweeps over them with the memory events (sorted by time).
pub(super) fn attribute(collected: &mut Collected) -> Attributed {
    collected.slices.sort_by_key(|slice| (slice.thread, slice.start_ns, std::cmp::Reverse(slice.end_ns)));
    let memory = &collected.memory;
    let mut by_thread: Vec<Vec<u32>> = vec![Vec::new(); collected.threads.len()];
    for (index, event) in memory.iter().enumerate() {
        by_thread[event.thread as usize].push(index as u32);
    }
    let forward = forward_ops(collected);
    let mut sweep = Sweep {
        ops: Ops::default(),
        stacks: Stacks::default(),
        frames: FxHashMap::default(),
        modules: FxHashMap::default(),
        op: vec![OpId::NONE; memory.len()],
        stack: vec![StackId::EMPTY; memory.len()],
        depth: Vec::with_capacity(collected.slices.len()),
    };
    let mut first = 0;
    for (thread, events) in by_thread.iter().enumerate() {
        let count = collected.slices[first..].partition_point(|slice| slice.thread as usize == thread);
        let slices = &collected.slices[first..first + count];
        first += count;
        let parts =
            Parts { strings: &mut collected.strings, op_args: &collected.op_args, memory, forward: &forward };
        sweep.thread(slices, events, parts);
    }
    Attributed { ops: sweep.ops, stacks: sweep.stacks, op: sweep.op, stack: sweep.stack, depth: sweep.depth }
}

/// What the sweep reads beside the slices.
struct Parts<'a> {
    strings: &'a mut Strings,
    op_args: &'a [super::collect::OpArgs],
    memory: &'a [super::collect::MemoryEvent],
    forward: &'a FxHashMap<i64, Vec<(i64, StrId)>>,
}

/// Forward ops by sequence number with their starts. The last one to start with a number is the one whose node the
/// backward op runs: ops that make no node leave the number to the next.
fn forward_ops(collected: &Collected) -> FxHashMap<i64, Vec<(i64, StrId)>> {
    let mut forward: FxHashMap<i64, Vec<(i64, StrId)>> = FxHashMap::default();
    for slice in collected.slices.iter().filter(|slice| slice.kind == SliceKind::CpuOp) {
        if let Some(args) = collected.op_args.get(slice.args as usize)
            && let Some(sequence) = args.sequence.filter(|&sequence| sequence >= 0)
            && args.forward_thread.unwrap_or(0) == 0
        {
            forward.entry(sequence).or_default().push((slice.start_ns, slice.name));
        }
    }
    forward
}

struct Sweep {
    ops: Ops,
    stacks: Stacks,
    frames: FxHashMap<StrId, Frame>,
    modules: FxHashMap<(StrId, StrId), StrId>,
    op: Vec<OpId>,
    stack: Vec<StackId>,
    depth: Vec<u16>,
}

impl Sweep {
    fn thread(&mut self, slices: &[RawSlice], events: &[u32], mut parts: Parts<'_>) {
        let mut open: Vec<Context> = Vec::new();
        let mut events = events.iter().copied().peekable();
        for slice in slices {
            while let Some(&event) = events.peek()
                && parts.memory[event as usize].time_ns < slice.start_ns
            {
                self.memory_event(event, &mut open, &mut parts);
                events.next();
            }
            close(&mut open, slice.start_ns);
            self.depth.push(open.len().min(usize::from(u16::MAX)) as u16);
            if slice.kind != SliceKind::Kernel && slice.kind != SliceKind::Runtime && open.len() < MAX_DEPTH {
                let outer = open.last().copied().unwrap_or_default();
                open.push(self.enter(outer, slice, &mut parts));
            }
        }
        for event in events {
            self.memory_event(event, &mut open, &mut parts);
        }
    }

    fn memory_event(&mut self, event: u32, open: &mut Vec<Context>, parts: &mut Parts<'_>) {
        let memory = &parts.memory[event as usize];
        close(open, memory.time_ns);
        let context = open.last().copied().unwrap_or_default();
        let index = event as usize;
        self.stack[index] = if context.stack.is_empty() && !memory.call_stack.is_empty() {
            self.call_stack(memory.call_stack, parts.strings)
        } else {
            context.stack
        };
        let mut op = context.op;
        if op == Op::default() {
            return;
        }
        op.phase = match (context.is_optimizer, context.is_backward, op.name.is_empty()) {
            (true, _, _) => Phase::Optimizer,
            (_, true, _) => Phase::Backward,
            (_, _, false) => Phase::Forward,
            _ => Phase::Unknown,
        };
        if op.phase == Phase::Backward
            && let Some(of_sequence) = context.sequence.and_then(|sequence| parts.forward.get(&sequence))
        {
            let before = of_sequence.iter().filter(|(start_ns, _)| *start_ns < memory.time_ns);
            op.forward = before.max_by_key(|(start_ns, _)| *start_ns).map_or(StrId::EMPTY, |&(_, name)| name);
        }
        self.op[index] = self.ops.intern(op);
    }

    /// The context inside a slice.
    fn enter(&mut self, outer: Context, slice: &RawSlice, parts: &mut Parts<'_>) -> Context {
        let mut inner = Context { end_ns: slice.end_ns, ..outer };
        match slice.kind {
            SliceKind::CpuOp => {
                inner.op.name = slice.name;
                if inner.op.outer.is_empty() {
                    inner.op.outer = slice.name;
                }
                if let Some(args) = parts.op_args.get(slice.args as usize) {
                    if has_shapes(parts.strings.get(args.dims)) {
                        inner.op.shapes = args.dims;
                        inner.op.dtypes = args.types;
                    }
                    if args.forward_thread.unwrap_or(0) != 0 {
                        inner.is_backward = true;
                        inner.sequence = args.sequence;
                    }
                }
                if !inner.is_backward
                    && parts.strings.get(slice.name).starts_with("autograd::engine::evaluate_function")
                {
                    inner.is_backward = true;
                }
            }
            SliceKind::PythonFunction => {
                let frame =
                    *self.frames.entry(slice.name).or_insert_with(|| frame_of(slice.name, parts.strings));
                let frame = self.stacks.intern_frame(frame);
                inner.stack = self.stacks.push(outer.stack, frame);
            }
            SliceKind::Module => {
                let strings = &mut *parts.strings;
                inner.op.module = *self.modules.entry((outer.op.module, slice.name)).or_insert_with(|| {
                    let name = strings.get(slice.name).trim_start_matches("nn.Module: ").to_owned();
                    match strings.get(outer.op.module) {
                        "" => strings.intern(&name),
                        path => strings.intern(&format!("{path} > {name}")),
                    }
                });
            }
            SliceKind::Annotation => {
                let name = parts.strings.get(slice.name);
                if name.starts_with("Optimizer.step#") {
                    inner.is_optimizer = true;
                }
                let is_counted = name.rsplit_once('#').is_some_and(|(_, number)| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                });
                if !is_counted {
                    inner.op.annotation = slice.name;
                }
            }
            _ => {}
        }
        inner
    }

    /// `Call stack` of old traces: `;`-joined, innermost first.
    fn call_stack(&mut self, text: StrId, strings: &mut Strings) -> StackId {
        let frames: Vec<String> =
            strings.get(text).split(';').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        frames.iter().rev().fold(StackId::EMPTY, |stack, text| {
            let name = strings.intern(text.trim());
            let frame = *self.frames.entry(name).or_insert_with(|| frame_of(name, strings));
            let frame = self.stacks.intern_frame(frame);
            self.stacks.push(stack, frame)
        })
    }
}

/// Leaves the slices that ended before `time_ns`. Slices may overlap without nesting; then the inner one counts.
fn close(open: &mut Vec<Context>, time_ns: i64) {
    while open
        .last()
        .is_some_and(|context| context.end_ns < time_ns || (context.end_ns == time_ns && context.end_ns != 0))
    {
        open.pop();
    }
}

fn has_shapes(dims: &str) -> bool {
    dims.bytes().any(|byte| byte.is_ascii_digit())
}

/// `file.py(12): function` as a frame; built-ins lose their address, which differs in every run.
fn frame_of(name: StrId, strings: &mut Strings) -> Frame {
    let text = strings.get(name).to_owned();
    if let Some((place, function)) = text.split_once("): ")
        && let Some((file, line)) = place.rsplit_once('(')
        && let Ok(line) = line.parse()
    {
        return Frame { file: strings.intern(file), function: strings.intern(function), line };
    }
    let function = match text.find(" at 0x") {
        Some(at) => {
            let rest = text[at + 6..].trim_start_matches(|c: char| c.is_ascii_hexdigit());
            strings.intern(&format!("{}{rest}", &text[..at]))
        }
        None => name,
    };
    Frame { file: StrId::EMPTY, function, line: 0 }
}
