//! Gathers what is kept of the events, in compact rows on the file's own clock.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::event::{Args, Event, integer};
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
    /// An index into [`Collected::op_args`], or `u32::MAX`.
    pub args: u32,
}

/// Arguments of a `cpu_op`.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpArgs {
    pub dims: StrId,
    pub types: StrId,
    pub sequence: Option<i64>,
    /// Other than 0 for ops of the backward pass.
    pub forward_thread: Option<i64>,
}

/// An instant that becomes a marker.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutOfMemory {
    pub time_ns: i64,
    pub device: Device,
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
    pub out_of_memory: Vec<OutOfMemory>,
    /// (pid, tid) of each thread, as written.
    pub threads: Vec<(String, String)>,
    thread_ids: FxHashMap<(StrId, StrId), u32>,
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
    last_thread: Option<(StrId, StrId, u32)>,
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
                dims: get("Input Dims"),
                types: get("Input type"),
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
                let Some(kind) = slice_kind(&event.cat, &event.name) else { return };
                let duration_ns = micros(event.dur).unwrap_or(0).max(0);
                let args = self.op_args(kind, &event.args);
                let name = self.strings.intern(&event.name);
                let thread = self.thread(event.pid, event.tid);
                let end_ns = start_ns.saturating_add(duration_ns);
                self.seen(start_ns, end_ns);
                self.slices.push(RawSlice { start_ns, end_ns, name, thread, kind, args });
            }
            "i" | "I" => self.instant(event, start_ns),
            _ => {}
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
                self.out_of_memory.push(OutOfMemory {
                    time_ns,
                    device,
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
        if event.name == "thread_name" {
            let name = event.args.name.trim_matches('"').to_owned();
            let thread = self.thread(event.pid, event.tid);
            self.thread_names.insert(thread, name);
        }
    }

    fn op_args(&mut self, kind: SliceKind, args: &Args<'_>) -> u32 {
        if kind != SliceKind::CpuOp || (args.dims.is_empty() && args.sequence.is_none()) {
            return u32::MAX;
        }
        let args = OpArgs {
            dims: self.strings.intern(args.dims),
            types: self.strings.intern(args.types),
            sequence: args.sequence,
            forward_thread: args.forward_thread,
        };
        self.op_args.push(args);
        self.op_args.len() as u32 - 1
    }

    fn thread(&mut self, pid: &str, tid: &str) -> u32 {
        let key = (self.strings.intern(pid), self.strings.intern(tid));
        if let Some((pid, tid, thread)) = self.last_thread
            && (pid, tid) == key
        {
            return thread;
        }
        let thread = *self.thread_ids.entry(key).or_insert_with(|| {
            self.threads.push((pid.trim_matches('"').to_owned(), tid.trim_matches('"').to_owned()));
            self.threads.len() as u32 - 1
        });
        self.last_thread = Some((key.0, key.1, thread));
        thread
    }

    fn seen(&mut self, start_ns: i64, end_ns: i64) {
        self.first_ns = Some(self.first_ns.map_or(start_ns, |first| first.min(start_ns)));
        self.last_ns = Some(self.last_ns.map_or(end_ns, |last| last.max(end_ns)));
    }

    /// Adds what another part of the same file gave, whose bytes come after these.
    pub(super) fn append(&mut self, other: Self) {
        let strings = self.strings.absorb(&other.strings);
        let string = |id: StrId| strings.get(id.0 as usize).copied().unwrap_or_default();
        let threads: Vec<u32> = other
            .threads
            .iter()
            .map(|(pid, tid)| {
                let known = self.threads.iter().position(|thread| (&thread.0, &thread.1) == (pid, tid));
                known.unwrap_or_else(|| {
                    self.threads.push((pid.clone(), tid.clone()));
                    self.threads.len() - 1
                }) as u32
            })
            .collect();
        let thread = |id: u32| threads.get(id as usize).copied().unwrap_or(0);
        let first_args = self.op_args.len() as u32;
        self.memory.extend(other.memory.into_iter().map(|event| MemoryEvent {
            thread: thread(event.thread),
            call_stack: string(event.call_stack),
            ..event
        }));
        self.slices.extend(other.slices.into_iter().map(|slice| RawSlice {
            thread: thread(slice.thread),
            name: string(slice.name),
            args: if slice.args == u32::MAX { u32::MAX } else { slice.args + first_args },
            ..slice
        }));
        self.op_args.extend(other.op_args.into_iter().map(|args| OpArgs {
            dims: string(args.dims),
            types: string(args.types),
            ..args
        }));
        self.out_of_memory.extend(other.out_of_memory);
        self.thread_names.extend(other.thread_names.into_iter().map(|(id, name)| (thread(id), name)));
        self.window_end_ns = other.window_end_ns.or(self.window_end_ns);
        if let (Some(first_ns), Some(last_ns)) = (other.first_ns, other.last_ns) {
            self.seen(first_ns, last_ns);
        }
        self.events += other.events;
        self.without_time += other.without_time;
        self.repaired += other.repaired;
        self.dropped += other.dropped;
        if let Some(at) = other.first_fault {
            self.fault(at);
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

fn slice_kind(category: &str, name: &str) -> Option<SliceKind> {
    Some(match category {
        "cpu_op" | "Operator" => SliceKind::CpuOp,
        "python_function" if name.starts_with("nn.Module: ") => SliceKind::Module,
        "python_function" => SliceKind::PythonFunction,
        "user_annotation" => SliceKind::Annotation,
        "gpu_user_annotation" => SliceKind::GpuAnnotation,
        "kernel" | "Kernel" | "gpu_memcpy" | "Memcpy" | "gpu_memset" | "Memset" => SliceKind::Kernel,
        "cuda_runtime" | "cuda_driver" | "Runtime" | "xpu_runtime" | "mtia_runtime" => SliceKind::Runtime,
        _ => return None,
    })
}
