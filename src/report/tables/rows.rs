//! What stands in each table.

use polars::prelude::{DataFrame, PolarsResult};
use rustc_hash::FxHashMap;

use super::columns::{Flags, Numbers, Texts, frame};
use crate::analysis::{
    FreeBy, Index, Query, RowClass, Selection, StackLines, StackTexts, Totals, classify, kept,
};
use crate::model::{
    AllocationFlags, BEFORE_NS, BlockState, NEVER_NS, OpId, PoolId, Process, ProcessId, SegmentEventKind,
    SliceKind, StackId, StrId,
};

/// Times that are no times become nulls.
fn time(time_ns: i64) -> Option<i64> {
    (time_ns != NEVER_NS && time_ns != BEFORE_NS).then_some(time_ns)
}

/// A number that tells an id of one process from those of others.
fn key(process: ProcessId, id: u32) -> u64 {
    u64::from(process.0) << 32 | u64::from(id)
}

/// The name of a process, and its rank as a column of numbers.
struct ProcessColumns {
    name: Texts,
    rank: Numbers,
}

impl ProcessColumns {
    fn new() -> Self {
        Self { name: Texts::new("process"), rank: Numbers::new("rank") }
    }

    fn push(&mut self, id: ProcessId, process: &Process) -> PolarsResult<()> {
        self.rank.push_option(process.rank.map(i64::from));
        self.name.push_keyed(key(id, 0), || process.label.clone())
    }
}

pub(super) fn allocations(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let mut process_columns = ProcessColumns::new();
    let (mut device, mut state) = (Texts::new("device"), Texts::new("state"));
    let (mut op, mut phase) = (Texts::new("op"), Texts::new("phase"));
    let (mut shapes, mut tensor, mut module) =
        (Texts::new("shapes"), Texts::new("tensor"), Texts::new("module"));
    let (mut call_site, mut stack) = (Texts::new("call_site"), Texts::new("stack"));
    let mut is_linked = Flags::new("is_linked");
    let names = [
        "address",
        "size_bytes",
        "rounded_bytes",
        "alloc_ns",
        "free_requested_ns",
        "free_completed_ns",
        "stream",
        "step",
        "stack_id",
    ];
    let mut numbers = names.map(Numbers::new);
    let mut stacks = StackTexts::new(index);
    for &id in ids {
        let process = index.session.process(id);
        for (row, allocation) in process.allocations.iter().enumerate() {
            process_columns.push(id, process)?;
            let [address, size, rounded, alloc, requested, completed, stream, step, stack_id] = &mut numbers;
            address.push_unsigned(allocation.address);
            size.push_unsigned(allocation.size_bytes);
            rounded.push_option(i64::try_from(allocation.rounded_bytes).ok().filter(|&bytes| bytes > 0));
            alloc.push_option(time(allocation.alloc_ns));
            requested.push_option(time(allocation.free_requested_ns));
            completed.push_option(time(allocation.free_completed_ns));
            stream.push_unsigned(allocation.stream);
            step.push_option(process.steps.get(allocation.step as usize).map(|step| step.number));
            stack_id.push(i64::from(allocation.stack.0));
            device.push_keyed(device_key(allocation.device), || allocation.device.to_string())?;
            state.push(if allocation.is_before_recording() {
                "before_recording"
            } else {
                state_name(classify(&process.allocations, row, NEVER_NS))
            })?;
            let op_key =
                key(id, if allocation.op == OpId::NONE { allocation.stack.0 } else { allocation.op.0 });
            let op_label = || index.label(index.op(id, allocation.op, allocation.stack)).to_owned();
            // Ops of traces and ops read from stacks have their own ids.
            let from_stack = u64::from(allocation.op == OpId::NONE) << 63;
            op.push_keyed(op_key | from_stack, op_label)?;
            let details = process.ops.get(allocation.op);
            let text =
                |id: Option<StrId>| id.map(|id| process.strings.get(id).to_owned()).unwrap_or_default();
            shapes.push_keyed(key(id, allocation.op.0), || text(details.map(|op| op.shapes)))?;
            tensor.push_keyed(key(id, allocation.op.0), || text(details.map(|op| op.inferred_tensor)))?;
            module.push_keyed(key(id, allocation.op.0), || text(details.map(|op| op.module)))?;
            phase.push(details.map_or("", |op| phase_name(op.phase)))?;
            call_site.push_keyed(key(id, allocation.stack.0), || {
                index.label(index.call_site(id, allocation.stack)).to_owned()
            })?;
            stack
                .push_keyed(key(id, allocation.stack.0), || one_line(&stacks.lines(id, allocation.stack)))?;
            is_linked.push(allocation.flags.contains(AllocationFlags::LINKED));
        }
    }
    let mut columns = vec![process_columns.name.finish(), process_columns.rank.finish(), state.finish()];
    columns.extend(numbers.map(Numbers::finish));
    columns.extend([device, op, phase, shapes, tensor, module, call_site, stack].map(Texts::finish));
    columns.push(is_linked.finish());
    frame(columns)
}

fn device_key(device: crate::model::Device) -> u64 {
    u64::from(device.kind.0) << 8 | u64::from(device.index.cast_unsigned())
}

fn state_name(class: RowClass) -> &'static str {
    match class {
        RowClass::Freed => "freed",
        RowClass::Kept => "kept",
        RowClass::PendingFree => "pending_free",
        RowClass::PrivatePool => "private_pool",
    }
}

fn phase_name(phase: crate::model::Phase) -> &'static str {
    match phase {
        crate::model::Phase::Unknown => "",
        crate::model::Phase::Forward => "forward",
        crate::model::Phase::Backward => "backward",
        crate::model::Phase::Optimizer => "optimizer",
    }
}

/// The frames, innermost first, on one line.
fn one_line(lines: &StackLines) -> String {
    lines.join(" < ")
}

pub(super) fn events(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let mut process_columns = ProcessColumns::new();
    let (mut kind, mut device) = (Texts::new("kind"), Texts::new("device"));
    let mut numbers = ["time_ns", "address", "size_bytes", "stream", "stack_id"].map(Numbers::new);
    for &id in ids {
        let process = index.session.process(id);
        for event in events_of(process) {
            process_columns.push(id, process)?;
            kind.push(event.kind)?;
            device.push_keyed(device_key(event.device), || event.device.to_string())?;
            let [time, address, size, stream, stack_id] = &mut numbers;
            time.push(event.time_ns);
            address.push_unsigned(event.address);
            size.push_unsigned(event.size_bytes);
            stream.push_unsigned(event.stream);
            stack_id.push(i64::from(event.stack.0));
        }
    }
    let mut columns = vec![process_columns.name.finish(), process_columns.rank.finish(), kind.finish()];
    columns.extend(numbers.map(Numbers::finish));
    columns.push(device.finish());
    frame(columns)
}

struct Event {
    time_ns: i64,
    kind: &'static str,
    address: u64,
    size_bytes: u64,
    device: crate::model::Device,
    stream: u64,
    stack: StackId,
}

/// Allocations, frees and segment events in the order of time.
fn events_of(process: &Process) -> Vec<Event> {
    let mut events = Vec::with_capacity(process.allocations.len() * 2);
    for allocation in process.allocations.iter() {
        let times = [
            ("alloc", allocation.alloc_ns),
            ("free_requested", allocation.free_requested_ns),
            ("free_completed", allocation.free_completed_ns),
        ];
        events.extend(times.into_iter().filter_map(|(kind, time_ns)| {
            Some(Event {
                time_ns: time(time_ns)?,
                kind,
                address: allocation.address,
                size_bytes: allocation.size_bytes,
                device: allocation.device,
                stream: allocation.stream,
                stack: allocation.stack,
            })
        }));
    }
    events.extend(process.segment_events.iter().map(|event| Event {
        time_ns: event.time_ns,
        kind: match event.kind {
            SegmentEventKind::Alloc => "segment_alloc",
            SegmentEventKind::Free => "segment_free",
            SegmentEventKind::Map => "segment_map",
            SegmentEventKind::Unmap => "segment_unmap",
        },
        address: event.address,
        size_bytes: event.size_bytes,
        device: event.device,
        stream: event.stream,
        stack: event.stack,
    }));
    events.sort_by_key(|event| event.time_ns);
    events
}

/// Whether rows of a process are wanted; those of no process (the driver's) are where all processes are.
fn belongs(index: &Index, ids: &[ProcessId], process: Option<ProcessId>) -> bool {
    process.map_or_else(|| ids.len() == index.session.processes.len(), |id| ids.contains(&id))
}

pub(super) fn ops(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let mut texts = ["source", "process", "lane", "kind", "name"].map(Texts::new);
    let mut numbers = ["start_ns", "end_ns", "duration_ns", "depth"].map(Numbers::new);
    for (number, source) in index.session.sources.iter().enumerate() {
        if !belongs(index, ids, source.process) {
            continue;
        }
        let recording = &source.recording;
        let source_id = ProcessId(number as u32);
        for row in 0..recording.slices.len() {
            let slice = recording.slices.get(row);
            let range = slice.range.shifted(source.alignment.offset_ns);
            let [source_name, process, lane, kind, name] = &mut texts;
            source_name.push_keyed(key(source_id, 0), || source.name.clone())?;
            process.push_keyed(key(source_id, 0), || {
                source.process.map(|id| index.session.process(id).label.clone()).unwrap_or_default()
            })?;
            let lane_name =
                || recording.slices.lanes.get(usize::from(slice.lane.0)).map(|lane| lane.name.clone());
            lane.push_keyed(key(source_id, u32::from(slice.lane.0)), || lane_name().unwrap_or_default())?;
            kind.push(slice_kind_name(slice.kind))?;
            name.push_keyed(key(source_id, slice.name.0), || recording.strings.get(slice.name).to_owned())?;
            let [start, end, duration, depth] = &mut numbers;
            start.push(range.start_ns);
            end.push(range.end_ns);
            duration.push(range.duration_ns());
            depth.push(i64::from(slice.depth));
        }
    }
    let mut columns: Vec<_> = texts.map(Texts::finish).into();
    columns.extend(numbers.map(Numbers::finish));
    frame(columns)
}

fn slice_kind_name(kind: SliceKind) -> &'static str {
    match kind {
        SliceKind::CpuOp => "cpu_op",
        SliceKind::PythonFunction => "python_function",
        SliceKind::Module => "module",
        SliceKind::Annotation => "annotation",
        SliceKind::GpuAnnotation => "gpu_annotation",
        SliceKind::Kernel => "kernel",
        SliceKind::Runtime => "runtime",
        SliceKind::Sample => "sample",
    }
}

pub(super) fn samples(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let session = &index.session;
    let mut texts = ["source", "process", "quantity", "device", "process_name"].map(Texts::new);
    let mut numbers = ["pid", "time_ns", "bytes"].map(Numbers::new);
    for (source, process, series, offset_ns) in session.curves() {
        if !belongs(index, ids, process) {
            continue;
        }
        let source_name = source.map_or("", |id| session.source(id).name.as_str());
        let process_label = process.map_or("", |id| session.process(id).label.as_str());
        let device = series.device.to_string();
        let labels = [source_name, process_label, series.quantity.label(), &device, &series.process_name];
        for (&time_ns, &bytes) in series.times_ns.iter().zip(&series.bytes) {
            for (column, label) in texts.iter_mut().zip(labels) {
                column.push(label)?;
            }
            let [pid, time, value] = &mut numbers;
            pid.push_option(series.pid.and_then(|pid| i64::try_from(pid).ok()));
            time.push(time_ns.saturating_add(offset_ns));
            value.push(bytes);
        }
    }
    let mut columns: Vec<_> = texts.map(Texts::finish).into();
    columns.extend(numbers.map(Numbers::finish));
    frame(columns)
}

pub(super) fn steps(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let mut process_columns = ProcessColumns::new();
    let mut numbers =
        ["step", "start_ns", "end_ns", "duration_ns", "kept_count", "kept_bytes"].map(Numbers::new);
    let all = Selection::of(&index.session);
    for &id in ids {
        let process = index.session.process(id);
        let query = Query {
            selection: Selection { process: Some(id), ..all },
            range: index.session.span,
            free_by: FreeBy::RecordingEnd,
        };
        let mut kept_in: FxHashMap<u32, Totals> = FxHashMap::default();
        for row in kept(&index.session, &query) {
            let allocation = row.get(&index.session);
            kept_in.entry(allocation.step).or_default().add(allocation.size_bytes);
        }
        for (position, step) in process.steps.iter().enumerate() {
            let kept = kept_in.get(&(position as u32)).copied().unwrap_or_default();
            process_columns.push(id, process)?;
            let [number, start, end, duration, count, bytes] = &mut numbers;
            number.push(step.number);
            start.push(step.range.start_ns);
            end.push(step.range.end_ns);
            duration.push(step.range.duration_ns());
            count.push_unsigned(kept.count);
            bytes.push_unsigned(kept.bytes);
        }
    }
    let mut columns = vec![process_columns.name.finish(), process_columns.rank.finish()];
    columns.extend(numbers.map(Numbers::finish));
    frame(columns)
}

pub(super) fn segments(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let mut process_columns = ProcessColumns::new();
    let (mut device, mut state) = (Texts::new("device"), Texts::new("state"));
    let mut flags = ["is_private_pool", "is_small", "is_expandable"].map(Flags::new);
    let names = [
        "segment_address",
        "segment_bytes",
        "stream",
        "block_address",
        "block_bytes",
        "requested_bytes",
        "stack_id",
    ];
    let mut numbers = names.map(Numbers::new);
    for &id in ids {
        let process = index.session.process(id);
        for (segment, block) in process
            .segments
            .iter()
            .flat_map(|segment| segment.blocks.iter().map(move |block| (segment, block)))
        {
            process_columns.push(id, process)?;
            device.push_keyed(device_key(segment.device), || segment.device.to_string())?;
            state.push(match block.state {
                BlockState::Allocated => "allocated",
                BlockState::PendingFree => "pending_free",
                BlockState::Inactive => "inactive",
            })?;
            let values = [segment.pool != PoolId::DEFAULT, segment.is_small, segment.is_expandable];
            flags.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            let values = [
                segment.address,
                segment.total_bytes,
                segment.stream,
                block.address,
                block.size_bytes,
                block.requested_bytes,
                u64::from(block.stack.0),
            ];
            numbers.iter_mut().zip(values).for_each(|(column, value)| column.push_unsigned(value));
        }
    }
    let mut columns =
        vec![process_columns.name.finish(), process_columns.rank.finish(), device.finish(), state.finish()];
    columns.extend(numbers.map(Numbers::finish));
    columns.extend(flags.map(Flags::finish));
    frame(columns)
}

pub(super) fn stacks(index: &Index, ids: &[ProcessId]) -> PolarsResult<DataFrame> {
    let mut process_columns = ProcessColumns::new();
    let mut texts = ["call_site", "op", "stack"].map(Texts::new);
    let mut lines = StackTexts::new(index);
    let mut numbers = ["stack_id", "depth", "allocation_count", "allocated_bytes"].map(Numbers::new);
    for &id in ids {
        let process = index.session.process(id);
        let mut sums: FxHashMap<StackId, Totals> = FxHashMap::default();
        for (&stack, &bytes) in process.allocations.stack.iter().zip(&process.allocations.size_bytes) {
            sums.entry(stack).or_default().add(bytes);
        }
        let mut sums: Vec<(StackId, Totals)> = sums.into_iter().collect();
        sums.sort_unstable_by_key(|&(stack, _)| stack);
        for (stack, totals) in sums {
            process_columns.push(id, process)?;
            let [call_site, op, frames] = &mut texts;
            call_site.push(index.label(index.call_site(id, stack)))?;
            op.push(index.label(index.op(id, OpId::NONE, stack)))?;
            frames.push(&one_line(&lines.lines(id, stack)))?;
            let [stack_id, depth, count, bytes] = &mut numbers;
            stack_id.push(i64::from(stack.0));
            depth.push_unsigned(process.stacks.walk(stack).count() as u64);
            count.push_unsigned(totals.count);
            bytes.push_unsigned(totals.bytes);
        }
    }
    let mut columns = vec![process_columns.name.finish(), process_columns.rank.finish()];
    columns.extend(numbers.map(Numbers::finish));
    columns.extend(texts.map(Texts::finish));
    frame(columns)
}
