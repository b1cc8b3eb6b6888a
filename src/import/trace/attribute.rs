//! Which op, module, annotation and Python stack each change of memory belongs to: what is open on its thread.

use std::cmp::Reverse;

use rayon::slice::ParallelSliceMut as _;
use rustc_hash::FxHashMap;

use super::collect::{Collected, MemoryEvent, OpArgs, PythonIds, RawSlice};
use super::frame::frame_of;
use super::infer::{self, OpInputs};
use super::nesting::{Open, OpenAnnotation, OpenCall, OpenOp};
use crate::model::{Device, Frame, Op, OpId, Ops, Phase, SliceKind, StackId, Stacks, StrId, Strings};

/// Of a module within modules the path is written no longer than about this.
const MODULE_BYTES: usize = 4 << 10;

/// What was found for each memory event.
pub(super) struct Attributed {
    pub ops: Ops,
    pub stacks: Stacks,
    /// By memory event; frees have none.
    pub op: Vec<OpId>,
    /// By memory event, then by out-of-memory event.
    pub stack: Vec<StackId>,
    /// By slice, in the order of `slices` after sorting.
    pub depth: Vec<u16>,
}

/// Sorts the slices by thread and start, and sweeps over them with the memory events (sorted by time).
pub(super) fn attribute(collected: &mut Collected) -> Attributed {
    collected.slices.par_sort_by_key(|slice| (slice.thread, slice.start_ns, Reverse(slice.end_ns)));
    let Collected { strings, memory, slices, op_args, python_ids, out_of_memory, threads, .. } = collected;
    let mut instants: Vec<Vec<(i64, u32)>> = vec![Vec::new(); threads.len()];
    let of_memory = memory.iter().map(|event| (event.thread, event.time_ns, event.bytes > 0));
    let of_errors = out_of_memory.iter().map(|event| (event.thread, event.time_ns, true));
    for (index, (thread, time_ns, is_wanted)) in of_memory.chain(of_errors).enumerate() {
        if is_wanted && let Some(instants) = instants.get_mut(thread as usize) {
            instants.push((time_ns, index as u32));
        }
    }
    let forward = ForwardOps::new(slices, op_args);
    let mut sweep = Sweep {
        strings,
        memory,
        op_args,
        python_ids,
        forward: &forward,
        slack_ns: clock_slack_ns(slices),
        ops: Ops::default(),
        stacks: Stacks::default(),
        frames: FxHashMap::default(),
        modules: FxHashMap::default(),
        chains: Chains::default(),
        inferred: FxHashMap::default(),
        op: vec![OpId::NONE; memory.len()],
        stack: vec![StackId::EMPTY; memory.len() + out_of_memory.len()],
        depth: Vec::with_capacity(slices.len()),
    };
    let mut first = 0;
    for (thread, instants) in instants.iter_mut().enumerate() {
        instants.sort_by_key(|&(time_ns, _)| time_ns);
        let count = slices[first..].partition_point(|slice| slice.thread as usize == thread);
        sweep.thread(&slices[first..first + count], instants);
        first += count;
    }
    let Sweep { ops, stacks, op, stack, depth, .. } = sweep;
    Attributed { ops, stacks, op, stack, depth }
}

/// Traces before PyTorch 2.4 count whole microseconds: an end is up to one later than it says.
fn clock_slack_ns(slices: &[RawSlice]) -> i64 {
    let is_whole = slices.iter().all(|slice| slice.start_ns % 1000 == 0 && slice.end_ns % 1000 == 0);
    if is_whole { 999 } else { 0 }
}

/// Forward ops by sequence number and start. The last one to start with a number is the one whose node the backward op
/// runs: ops that make no node leave the number to the next.
struct ForwardOps(Vec<(i64, i64, StrId)>);

impl ForwardOps {
    fn new(slices: &[RawSlice], op_args: &[OpArgs]) -> Self {
        let mut list: Vec<_> = slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::CpuOp)
            .filter_map(|slice| {
                let args = op_args.get(slice.args as usize)?;
                let sequence = args.sequence.filter(|&sequence| sequence >= 0)?;
                (args.forward_thread.unwrap_or(0) == 0).then_some((sequence, slice.start_ns, slice.name))
            })
            .collect();
        list.sort_unstable();
        Self(list)
    }

    fn before(&self, sequence: i64, time_ns: i64) -> StrId {
        let end = self.0.partition_point(|&(of, start_ns, _)| (of, start_ns) < (sequence, time_ns));
        let last = end.checked_sub(1).and_then(|last| self.0.get(last));
        last.filter(|(of, ..)| *of == sequence).map_or(StrId::EMPTY, |&(_, _, name)| name)
    }
}

/// An op within others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Link {
    outer: u32,
    name: StrId,
    dims: StrId,
    types: StrId,
    concrete: StrId,
}

/// The tree of ops within ops, each distinct nesting once. Node 0 is "no op".
#[derive(Default)]
struct Chains {
    links: Vec<Link>,
    ids: FxHashMap<Link, u32>,
}

impl Chains {
    fn enter(&mut self, link: Link) -> u32 {
        *self.ids.entry(link).or_insert_with(|| {
            self.links.push(link);
            self.links.len() as u32
        })
    }

    fn link(&self, chain: u32) -> Option<&Link> {
        self.links.get((chain as usize).checked_sub(1)?)
    }

    /// The ops of a chain, innermost first.
    fn walk(&self, chain: u32) -> impl Iterator<Item = &Link> {
        std::iter::successors(self.link(chain), |link| self.link(link.outer))
    }
}

struct Sweep<'a> {
    strings: &'a mut Strings,
    memory: &'a [MemoryEvent],
    op_args: &'a [OpArgs],
    python_ids: &'a [PythonIds],
    forward: &'a ForwardOps,
    slack_ns: i64,
    ops: Ops,
    stacks: Stacks,
    frames: FxHashMap<StrId, Frame>,
    modules: FxHashMap<(StrId, StrId), StrId>,
    chains: Chains,
    /// Likely tensor and rule by op chain, device and bytes.
    inferred: FxHashMap<(u32, Device, i64), (StrId, StrId)>,
    op: Vec<OpId>,
    stack: Vec<StackId>,
    depth: Vec<u16>,
}

impl Sweep<'_> {
    fn thread(&mut self, slices: &[RawSlice], instants: &[(i64, u32)]) {
        let mut open = Open::default();
        let mut instants = instants.iter().copied().peekable();
        for slice in slices {
            while let Some((time_ns, index)) = instants.next_if(|&(time_ns, _)| time_ns < slice.start_ns) {
                self.instant(time_ns, index as usize, &mut open);
            }
            self.depth.push(open.row(slice));
            self.enter(slice, &mut open);
        }
        for (time_ns, index) in instants {
            self.instant(time_ns, index as usize, &mut open);
        }
    }

    fn enter(&mut self, slice: &RawSlice, open: &mut Open) {
        match slice.kind {
            SliceKind::CpuOp => self.enter_op(slice, open),
            SliceKind::PythonFunction | SliceKind::Module => self.enter_call(slice, open),
            SliceKind::Annotation => {
                open.leave_annotations(slice.start_ns);
                let name = self.strings.get(slice.name);
                let is_counted = name.rsplit_once('#').is_some_and(|(_, number)| {
                    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
                });
                let annotation = OpenAnnotation {
                    end_ns: slice.end_ns,
                    name: slice.name,
                    // `train_step#3` inside `ProfilerStep#3` is a step as well, `layer#3` inside it is a part.
                    is_step: is_counted && open.annotations.iter().all(|outer| self.is_profiler_step(outer)),
                    is_optimizer: name.starts_with("Optimizer.step#"),
                };
                open.enter_annotation(annotation);
            }
            _ => {}
        }
    }

    fn is_profiler_step(&self, annotation: &OpenAnnotation) -> bool {
        self.strings.get(annotation.name).starts_with("ProfilerStep#")
    }

    fn enter_op(&mut self, slice: &RawSlice, open: &mut Open) {
        let outer = open.outer_op(slice.start_ns).unwrap_or_default();
        let args = self.op_args.get(slice.args as usize);
        let (dims, types) = args.map_or_else(Default::default, |args| (args.dims, args.types));
        let concrete = args.map_or(StrId::EMPTY, |args| args.concrete);
        let chain = self.chains.enter(Link { outer: outer.chain, name: slice.name, dims, types, concrete });
        let mut op = OpenOp {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            outer: if outer.chain == 0 { slice.name } else { outer.outer },
            chain,
            ..outer
        };
        if self.strings.get(dims).bytes().any(|byte| byte.is_ascii_digit()) {
            (op.shapes, op.dtypes) = (dims, types);
        }
        match args.filter(|args| args.forward_thread.unwrap_or(0) != 0) {
            Some(args) => (op.is_backward, op.sequence) = (true, args.sequence),
            None => op.is_backward |= is_backward_name(self.strings.get(slice.name)),
        }
        open.enter_op(op);
    }

    fn enter_call(&mut self, slice: &RawSlice, open: &mut Open) {
        let ids = self.python_ids.get(slice.args as usize).copied();
        let caller = open.caller(slice.start_ns, ids);
        let mut call = OpenCall {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns.min(caller.end_ns),
            id: ids.map(|ids| ids.id),
            ..caller
        };
        if slice.kind == SliceKind::Module {
            call.module = self.module(caller.module, slice.name);
        } else {
            let frame = self.frame(slice.name);
            call.stack = self.stacks.push(caller.stack, frame);
        }
        open.enter_call(call);
    }

    fn module(&mut self, outer: StrId, name: StrId) -> StrId {
        if let Some(&module) = self.modules.get(&(outer, name)) {
            return module;
        }
        let own = self.strings.get(name).trim_start_matches("nn.Module: ");
        let path = match self.strings.get(outer) {
            "" => own.to_owned(),
            // Modules nest some ten deep.
            outer if outer.len() > MODULE_BYTES => outer.to_owned(),
            outer => format!("{outer} > {own}"),
        };
        let module = self.strings.intern(&path);
        self.modules.insert((outer, name), module);
        module
    }

    fn frame(&mut self, name: StrId) -> crate::model::FrameId {
        let frame = match self.frames.get(&name) {
            Some(&frame) => frame,
            None => {
                let frame = frame_of(name, self.strings);
                self.frames.insert(name, frame);
                frame
            }
        };
        self.stacks.intern_frame(frame)
    }

    /// Tells what belongs to the memory event (or, behind those, the out-of-memory event) of this index.
    fn instant(&mut self, time_ns: i64, index: usize, open: &mut Open) {
        open.leave(time_ns, self.slack_ns);
        let call = open.calls.last().copied().unwrap_or_default();
        let Some(&event) = self.memory.get(index) else {
            self.stack[index] = call.stack;
            return;
        };
        self.stack[index] = if call.stack.is_empty() && !event.call_stack.is_empty() {
            self.call_stack(event.call_stack)
        } else {
            call.stack
        };
        let annotation = open.annotations.iter().rev().find(|annotation| !annotation.is_step);
        let running = open.ops.last().copied().unwrap_or_default();
        let mut op = Op {
            name: self.chains.link(running.chain).map_or(StrId::EMPTY, |link| link.name),
            outer: running.outer,
            shapes: running.shapes,
            dtypes: running.dtypes,
            module: call.module,
            annotation: annotation.map_or(StrId::EMPTY, |annotation| annotation.name),
            ..Op::default()
        };
        op.phase = if open.annotations.iter().any(|annotation| annotation.is_optimizer) {
            Phase::Optimizer
        } else if running.is_backward {
            Phase::Backward
        } else if op.name.is_empty() {
            Phase::Unknown
        } else {
            Phase::Forward
        };
        if op == Op::default() {
            return;
        }
        if let (Phase::Backward, Some(sequence)) = (op.phase, running.sequence) {
            op.forward = self.forward.before(sequence, time_ns);
        }
        (op.inferred_tensor, op.inferred_rule) = self.infer(running.chain, &event);
        self.op[index] = self.ops.intern(op);
    }

    fn infer(&mut self, chain: u32, event: &MemoryEvent) -> (StrId, StrId) {
        if chain == 0 {
            return Default::default();
        }
        let key = (chain, event.device, event.bytes);
        if let Some(&known) = self.inferred.get(&key) {
            return known;
        }
        let strings = &*self.strings;
        let ops = self.chains.walk(chain).map(|link| OpInputs {
            name: strings.get(link.name),
            dims: strings.get(link.dims),
            types: strings.get(link.types),
            concrete: strings.get(link.concrete),
        });
        let found = infer::tensor(ops, event.bytes.unsigned_abs(), event.device.is_host());
        let ids = found.map_or_else(Default::default, |found| {
            (self.strings.intern(&found.tensor), self.strings.intern(&found.rule))
        });
        self.inferred.insert(key, ids);
        ids
    }

    /// `Call stack` of old traces: `;`-joined, innermost first.
    fn call_stack(&mut self, text: StrId) -> StackId {
        let frames: Vec<String> =
            self.strings.get(text).split(';').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        frames.iter().rev().fold(StackId::EMPTY, |stack, text| {
            let name = self.strings.intern(text.trim());
            let frame = self.frame(name);
            self.stacks.push(stack, frame)
        })
    }
}

/// `ConvolutionBackward0`, `autograd::engine::evaluate_function: …`: backward ops of traces without sequence numbers.
fn is_backward_name(name: &str) -> bool {
    name.starts_with("autograd::engine::evaluate_function")
        || name.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("Backward")
}
