//! Gathers what is kept of the events, in compact rows on the file's own clock.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::event::{Args, Event, integer};
use super::infer;
use super::repair::Repaired;
use crate::model::time::parse_decimal_ns;
use crate::model::{Device, DeviceKind, SliceKind, StrId, Strings};

/// A change of memory: a `[memory]` instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryEvent {
    pub time_ns: i64,
    /// `None` in traces of PyTorch 1.8 and 1.9.
    pub address: Option<u64>,
    /// Positive for an alloc, negative for a free.
    pub bytes: i64,
    pub total_allocated: Option<i64>,
    pub total_reserved: Option<i64>,
    pub device: Device,
    pub thread: u32,
    /// `Call stack` of old traces.
    pub call_stack: StrId,
}

/// A slice with what attribution needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSlice {
    pub start_ns: i64,
    pub end_ns: i64,
    pub name: StrId,
    pub thread: u32,
    pub kind: SliceKind,
    /// An index into [`Collected::op_args`] for ops, into [`Collected::python_ids`] for Python functions, or
    /// [`NO_ARGS`].
    pub args: u32,
}

/// A slice without arguments that are kept.
pub(super) const NO_ARGS: u32 = u32::MAX;

/// The number of a Python call and that of its caller, which is `None` for the outermost.
#[derive(Clone, Copy, Debug)]
pub(super) struct PythonIds {
    pub id: i64,
    pub caller: Option<i64>,
}

/// Arguments of a `cpu_op`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpArgs {
    pub dims: StrId,
    pub types: StrId,
    /// Sizes, strides, padding… of ops that make tensors of a new shape; empty for others.
    pub concrete: StrId,
    pub sequence: Option<i64>,
    /// Other than 0 for ops of the backward pass.
    pub forward_thread: Option<i64>,
}

/// An instant that becomes a marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutOfMemory {
    pub time_ns: i64,
    pub device: Device,
    pub thread: u32,
    pub requested_bytes: Option<i64>,
    pub total_allocated: Option<i64>,
    pub total_reserved: Option<i64>,
}

/// What is kept of a trace's events.
#[derive(Default)]
pub(super) struct Collected {
    pub strings: Strings,
    pub memory: Vec<MemoryEvent>,
    pub slices: Vec<RawSlice>,
    pub op_args: Vec<OpArgs>,
    pub python_ids: Vec<PythonIds>,
    pub out_of_memory: Vec<OutOfMemory>,
    /// (pid, tid) of each thread, as written.
    pub threads: Vec<(String, String)>,
    thread_ids: FxHashMap<(String, String), u32>,
    /// Names of threads from metadata events.
    pub thread_names: FxHashMap<u32, String>,
    /// `Record Window End`.
    pub window_end_ns: Option<i64>,
    pub first_ns: Option<i64>,
    pub last_ns: Option<i64>,
    pub events: u64,
    /// Events without a time, or with time 0 while others are far from it.
    pub without_time: u64,
    pub repaired: u64,
    pub dropped: u64,
    /// The first byte that was repaired or dropped.
    pub first_fault: Option<u64>,
    /// The last thread that was seen, as its event writes it.
    last_thread: Option<(String, String, u32)>,
    /// Slices that have begun (`B`) and not ended, by thread.
    open: FxHashMap<u32, Vec<RawSlice>>,
    /// Ends (`E`) without a beginning, which may stand in an earlier part of the file.
    loose_ends: Vec<(u32, i64)>,
    /// Metadata names an Ascend device.
    pub is_ascend: bool,
}

impl Collected {
    pub(super) fn fault(&mut self, at: u64) {
        self.first_fault = Some(self.first_fault.map_or(at, |first| first.min(at)));
    }

    pub(super) fn add_repaired(&mut self, repaired: &Repaired) {
        let get = |key: &str| {
            repaired.fields.iter().rev().find(|(name, _)| name == key).map_or("", |(_, value)| value)
        };
        // An event's own name comes before that in its arguments.
        let name = repaired.fields.iter().find(|(key, _)| key == "name").map_or("", |(_, value)| value);
        let number = |key: &str| integer(get(key));
        let event = Event {
            ph: Cow::Borrowed(get("ph")),
            cat: Cow::Borrowed(get("cat")),
            name: Cow::Borrowed(name),
            pid: get("pid"),
            tid: get("tid"),
            ts: get("ts"),
            dur: get("dur"),
            args: Args {
                address: number("Addr"),
                bytes: number("Bytes"),
                total_allocated: number("Total Allocated"),
                total_reserved: number("Total Reserved"),
                device_type: number("Device Type"),
                device_id: number("Device Id"),
                sequence: number("Sequence number"),
                forward_thread: number("Fwd thread id"),
                python_id: number("Python id"),
                python_parent: number("Python parent id"),
                dims: get("Input Dims"),
                types: get("Input type"),
                concrete: get("Concrete Inputs"),
                call_stack: Cow::Borrowed(get("Call stack")),
                name: "",
            },
        };
        self.add(&event);
    }

    pub(super) fn add(&mut self, event: &Event<'_>) {
        self.events += 1;
        if event.ph == "M" {
            self.metadata(event);
            return;
        }
        let Some(start_ns) = micros(event.ts) else {
            self.without_time += 1;
            return;
        };
        match &*event.ph {
            "X" => {
                let duration_ns = micros(event.dur).unwrap_or(0).max(0);
                let end_ns = start_ns.saturating_add(duration_ns);
                if let Some(kind) = slice_kind(event) {
                    let slice = self.slice(event, kind, start_ns, end_ns);
                    self.seen(start_ns, end_ns);
                    self.slices.push(slice);
                }
            }
            "B" => {
                // Every beginning counts, or the ends would not match.
                let kind = slice_kind(event).unwrap_or(SliceKind::Runtime);
                let slice = self.slice(event, kind, start_ns, start_ns);
                self.seen(start_ns, start_ns);
                self.open.entry(slice.thread).or_default().push(slice);
            }
            "E" => {
                let thread = self.thread(event.pid, event.tid);
                self.end(thread, start_ns);
            }
            "i" | "I" => self.instant(event, start_ns),
            _ => {}
        }
    }

    fn slice(&mut self, event: &Event<'_>, kind: SliceKind, start_ns: i64, end_ns: i64) -> RawSlice {
        let args = match kind {
            SliceKind::CpuOp => self.op_args(&event.name, &event.args),
            SliceKind::PythonFunction | SliceKind::Module => event.args.python_id.map_or(NO_ARGS, |id| {
                self.python_ids.push(PythonIds { id, caller: event.args.python_parent });
                self.python_ids.len() as u32 - 1
            }),
            _ => NO_ARGS,
        };
        let name = self.strings.intern(&event.name);
        let thread = self.thread(event.pid, event.tid);
        RawSlice { start_ns, end_ns, name, thread, kind, args }
    }

    /// Ends the innermost open slice of a thread.
    fn end(&mut self, thread: u32, end_ns: i64) {
        match self.open.get_mut(&thread).and_then(Vec::pop) {
            Some(slice) => {
                let end_ns = end_ns.max(slice.start_ns);
                self.seen(end_ns, end_ns);
                self.slices.push(RawSlice { end_ns, ..slice });
            }
            None => self.loose_ends.push((thread, end_ns)),
        }
    }

    /// Ends the slices that are still open with the last event.
    pub(super) fn finish(&mut self) {
        let last_ns = self.last_ns.unwrap_or(0);
        let open = std::mem::take(&mut self.open);
        let mut threads: Vec<u32> = open.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            let slices = open.get(&thread).into_iter().flatten();
            self.slices
                .extend(slices.map(|slice| RawSlice { end_ns: last_ns.max(slice.start_ns), ..*slice }));
        }
    }

    fn instant(&mut self, event: &Event<'_>, time_ns: i64) {
        let args = &event.args;
        let device = Device::new(
            DeviceKind(args.device_type.unwrap_or(1).clamp(0, 255) as u8),
            args.device_id.unwrap_or(-1),
        );
        match &*event.name {
            "[memory]" => {
                let Some(bytes) = args.bytes else { return };
                self.seen(time_ns, time_ns);
                let thread = self.thread(event.pid, event.tid);
                let call_stack = self.strings.intern(&args.call_stack);
                self.memory.push(MemoryEvent {
                    time_ns,
                    address: args.address.map(|address| address as u64),
                    bytes,
                    total_allocated: args.total_allocated,
                    total_reserved: args.total_reserved,
                    device,
                    thread,
                    call_stack,
                });
            }
            "[OutOfMemory]" => {
                self.seen(time_ns, time_ns);
                let thread = self.thread(event.pid, event.tid);
                self.out_of_memory.push(OutOfMemory {
                    time_ns,
                    device,
                    thread,
                    requested_bytes: args.bytes,
                    total_allocated: args.total_allocated,
                    total_reserved: args.total_reserved,
                });
            }
            "Record Window End" => self.window_end_ns = Some(time_ns),
            _ => {}
        }
    }

    fn metadata(&mut self, event: &Event<'_>) {
        let name = event.args.name.trim_matches('"');
        match &*event.name {
            "thread_name" => {
                let thread = self.thread(event.pid, event.tid);
                self.thread_names.insert(thread, name.trim().to_owned());
            }
            "process_name" => self.is_ascend |= name.contains("Ascend") || name == "CANN",
            _ => {}
        }
    }

    fn op_args(&mut self, name: &str, args: &Args<'_>) -> u32 {
        if args.dims.is_empty() && args.sequence.is_none() {
            return NO_ARGS;
        }
        let concrete = if infer::needs_concrete_inputs(name) { args.concrete } else { "" };
        let args = OpArgs {
            dims: self.strings.intern(args.dims),
            types: self.strings.intern(args.types),
            concrete: self.strings.intern(concrete),
            sequence: args.sequence,
            forward_thread: args.forward_thread,
        };
        self.op_args.push(args);
        self.op_args.len() as u32 - 1
    }

    fn thread(&mut self, pid: &str, tid: &str) -> u32 {
        if let Some((last_pid, last_tid, thread)) = &self.last_thread
            && last_pid == pid
            && last_tid == tid
        {
            return *thread;
        }
        let bare = |text: &str| text.trim_matches('"').trim().to_owned();
        let thread = self.thread_of(bare(pid), bare(tid));
        self.last_thread = Some((pid.to_owned(), tid.to_owned(), thread));
        thread
    }

    fn thread_of(&mut self, pid: String, tid: String) -> u32 {
        let next = self.threads.len() as u32;
        *self.thread_ids.entry((pid, tid)).or_insert_with_key(|(pid, tid)| {
            self.threads.push((pid.clone(), tid.clone()));
            next
        })
    }

    fn seen(&mut self, start_ns: i64, end_ns: i64) {
        self.first_ns = Some(self.first_ns.map_or(start_ns, |first| first.min(start_ns)));
        self.last_ns = Some(self.last_ns.map_or(end_ns, |last| last.max(end_ns)));
    }

    /// Adds what another part of the same file gave, whose bytes come after these.
    pub(super) fn append(&mut self, other: Self) {
        let strings = self.strings.absorb(&other.strings);
        let string = |id: StrId| strings.get(id.0 as usize).copied().unwrap_or_default();
        let threads: Vec<u32> =
            other.threads.into_iter().map(|(pid, tid)| self.thread_of(pid, tid)).collect();
        let thread = |id: u32| threads.get(id as usize).copied().unwrap_or(0);
        let first_op = self.op_args.len() as u32;
        let first_python = self.python_ids.len() as u32;
        let slice = |slice: RawSlice| RawSlice {
            thread: thread(slice.thread),
            name: string(slice.name),
            args: match slice.kind {
                _ if slice.args == NO_ARGS => NO_ARGS,
                SliceKind::CpuOp => slice.args + first_op,
                _ => slice.args + first_python,
            },
            ..slice
        };
        self.memory.extend(other.memory.into_iter().map(|event| MemoryEvent {
            thread: thread(event.thread),
            call_stack: string(event.call_stack),
            ..event
        }));
        for (of_thread, end_ns) in other.loose_ends {
            self.end(thread(of_thread), end_ns);
        }
        for (of_thread, slices) in other.open {
            self.open.entry(thread(of_thread)).or_default().extend(slices.into_iter().map(slice));
        }
        self.slices.extend(other.slices.into_iter().map(slice));
        self.python_ids.extend(other.python_ids);
        self.op_args.extend(other.op_args.into_iter().map(|args| OpArgs {
            dims: string(args.dims),
            types: string(args.types),
            concrete: string(args.concrete),
            ..args
        }));
        self.out_of_memory.extend(
            other
                .out_of_memory
                .into_iter()
                .map(|event| OutOfMemory { thread: thread(event.thread), ..event }),
        );
        self.thread_names.extend(other.thread_names.into_iter().map(|(id, name)| (thread(id), name)));
        self.window_end_ns = other.window_end_ns.or(self.window_end_ns);
        if let (Some(first_ns), Some(last_ns)) = (other.first_ns, other.last_ns) {
            self.seen(first_ns, last_ns);
        }
        self.is_ascend |= other.is_ascend;
        self.events += other.events;
        self.without_time += other.without_time;
        self.repaired += other.repaired;
        self.dropped += other.dropped;
        if let Some(at) = other.first_fault {
            self.fault(at);
        }
    }
}

impl Collected {
    /// Moves all times.
    pub(super) fn shift(&mut self, offset_ns: i64) {
        let shift = |time_ns: &mut i64| *time_ns = time_ns.saturating_add(offset_ns);
        if offset_ns == 0 {
            return;
        }
        for slice in self.slices.iter_mut().chain(self.open.values_mut().flatten()) {
            shift(&mut slice.start_ns);
            shift(&mut slice.end_ns);
        }
        self.memory.iter_mut().for_each(|event| shift(&mut event.time_ns));
        self.out_of_memory.iter_mut().for_each(|event| shift(&mut event.time_ns));
        self.loose_ends.iter_mut().for_each(|(_, time_ns)| shift(time_ns));
        for time in [&mut self.first_ns, &mut self.last_ns, &mut self.window_end_ns] {
            time.iter_mut().for_each(shift);
        }
    }
}

/// Microseconds as decimal text, quoted or not, into nanoseconds.
pub(super) fn micros(raw: &str) -> Option<i64> {
    let text = raw.trim_matches('"');
    parse_decimal_ns(text, 3).or_else(|| {
        // Exponents occur where a tool rewrote the file.
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && value.abs() < 9e15).then_some((value * 1000.0) as i64)
    })
}

fn slice_kind(event: &Event<'_>) -> Option<SliceKind> {
    let name = &*event.name;
    Some(match &*event.cat {
        // Before there was a category for them, annotations stood among the ops.
        "cpu_op" | "Operator" if name.contains('#') && !name.contains("::") => SliceKind::Annotation,
        "cpu_op" | "Operator" => SliceKind::CpuOp,
        "python_function" if name.starts_with("nn.Module: ") => SliceKind::Module,
        "python_function" => SliceKind::PythonFunction,
        "user_annotation" => SliceKind::Annotation,
        "gpu_user_annotation" => SliceKind::GpuAnnotation,
        "kernel" | "Kernel" | "gpu_memcpy" | "Memcpy" | "gpu_memset" | "Memset" => SliceKind::Kernel,
        "cuda_runtime"
        | "cuda_driver"
        | "Runtime"
        | "xpu_runtime"
        | "mtia_runtime"
        | "privateuse1_runtime"
        | "privateuse1_driver" => SliceKind::Runtime,
        // The autograd profiler before kineto, and Ascend's device rows, write no category.
        "" if event.pid.contains("CUDA functions") => SliceKind::Kernel,
        "" if event.pid.contains("CPU functions") || name.contains("::") => SliceKind::CpuOp,
        "" if !name.is_empty() => SliceKind::Runtime,
        _ => return None,
    })
}
