//! From collected events to a recording: clock, process, slices, curves, warnings.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::attribute::{Attributed, attribute};
use super::collect::{Collected, MemoryEvent};
use super::header::Header;
use super::pair::pair;
use crate::model::{
    Annotation, Clock, Lane, LaneId, Marker, MarkerKind, NEVER_NS, ProcessHint, Quantity, Recording, Series,
    Slice, SliceKind, SourceKind, TimeRange, format_bytes, format_count,
};
use crate::text::t;

/// 2000-01-01: absolute times before it are times since boot.
const EARLIEST_UNIX_NS: i64 = 946_684_800_000_000_000;

/// Makes the recording.
pub(super) fn recording(
    mut collected: Collected,
    header: &Header,
    cut: Option<String>,
    path: &Path,
) -> Recording {
    collected.finish();
    drop_events_at_zero(&mut collected);
    collected.shift(header.base_ns.unwrap_or(0));
    let first_ns = collected.first_ns.unwrap_or(0);
    let clock = if first_ns >= EARLIEST_UNIX_NS { Clock::Unix } else { Clock::Relative };
    let mut recording = Recording::new(SourceKind::Trace, "torch.profiler trace", clock);
    recording.events = collected.events;
    recording.process = process_hint(&collected, header, path);
    recording.devices.clone_from(&header.devices);
    recording.facts.clone_from(&header.facts);

    // In the file events stand grouped by thread: pairing them in that order would invent survivors.
    collected.memory.sort_by_key(|event| event.time_ns);
    let attributed = attribute(&mut collected);
    pair(&mut recording, &collected.memory, &attributed, &processes_of(&collected));
    if let (Some(first_ns), Some(last_ns)) = (collected.first_ns, collected.last_ns) {
        let end_ns = collected.window_end_ns.map_or(last_ns, |end_ns| end_ns.max(last_ns));
        recording.span = Some(TimeRange::new(first_ns, end_ns.saturating_add(1)));
    }
    recording.series = curves(&collected.memory);
    markers(&mut recording, &collected, &attributed);
    slices(&mut recording, &collected, &attributed);
    warnings(&mut recording, &collected, header, cut);
    recording.strings = collected.strings;
    recording.stacks = attributed.stacks;
    recording.ops = attributed.ops;
    recording
}

/// A writer's bug (PyTorch 2.12) gives half of the events the time 0: they would stretch the axis by decades.
fn drop_events_at_zero(collected: &mut Collected) {
    let is_far = |time_ns: i64| time_ns > 3_600_000_000_000;
    let times = collected
        .slices
        .iter()
        .map(|slice| slice.start_ns)
        .chain(collected.memory.iter().map(|event| event.time_ns));
    if collected.first_ns != Some(0) || !times.clone().any(is_far) {
        return;
    }
    let before = collected.slices.len() + collected.memory.len();
    collected.slices.retain(|slice| slice.start_ns != 0);
    collected.memory.retain(|event| event.time_ns != 0);
    collected.without_time += (before - collected.slices.len() - collected.memory.len()) as u64;
    let slices = collected.slices.iter().map(|slice| (slice.start_ns, slice.end_ns));
    let spans = slices.chain(collected.memory.iter().map(|event| (event.time_ns, event.time_ns)));
    let bounds = spans.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
    collected.first_ns = bounds.map(|bounds| bounds.0);
    collected.last_ns = bounds.map(|bounds| bounds.1);
}

/// The process of each thread, by number.
fn processes_of(collected: &Collected) -> Vec<u32> {
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    let mut number = |pid| {
        let next = known.len() as u32;
        *known.entry(pid).or_insert(next)
    };
    collected.threads.iter().map(|(pid, _)| number(pid.as_str())).collect()
}

/// The process that did most: of memory events, else of slices.
fn process_hint(collected: &Collected, header: &Header, path: &Path) -> ProcessHint {
    let mut counts: FxHashMap<&str, usize> = FxHashMap::default();
    let of_memory = collected.memory.iter().map(|event| event.thread);
    let of_slices =
        collected.slices.iter().filter(|slice| slice.kind == SliceKind::CpuOp).map(|slice| slice.thread);
    let mut count = |thread: u32| {
        if let Some((pid, _)) = collected.threads.get(thread as usize) {
            *counts.entry(pid.as_str()).or_default() += 1;
        }
    };
    if collected.memory.is_empty() {
        of_slices.for_each(&mut count);
    } else {
        of_memory.for_each(&mut count);
    }
    let most =
        counts.into_iter().max_by_key(|&(pid, count)| (count, std::cmp::Reverse(pid))).map(|(pid, _)| pid);
    let pid: Option<u64> = most.and_then(|pid| pid.parse().ok());
    // tensorboard_trace_handler names files HOST_PID.TIME.pt.trace.json.
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let worker = name.split_once('.').map_or("", |(worker, _)| worker);
    let host = match (worker.rsplit_once('_'), pid) {
        (Some((host, of_name)), Some(pid)) if of_name == pid.to_string() => host.to_owned(),
        _ => String::new(),
    };
    ProcessHint { pid, rank: header.rank, world_size: header.world_size, host }
}

/// The totals that memory events carry, a curve a device, the host's last. Some allocators report zeros.
fn curves(memory: &[MemoryEvent]) -> Vec<Series> {
    let mut curves: Vec<Series> = Vec::new();
    for event in memory {
        for (quantity, total) in
            [(Quantity::Allocated, event.total_allocated), (Quantity::Reserved, event.total_reserved)]
        {
            let Some(total) = total else { continue };
            let position =
                curves.iter().position(|series| series.quantity == quantity && series.device == event.device);
            let position = position.unwrap_or_else(|| {
                curves.push(Series::new(quantity, event.device, true));
                curves.len() - 1
            });
            curves[position].push(event.time_ns, total);
        }
    }
    curves.retain(|series| series.bytes.iter().any(|&bytes| bytes != 0));
    curves.sort_by_key(|series| (series.device.is_host(), series.device, series.quantity.clone()));
    curves
}

fn markers(recording: &mut Recording, collected: &Collected, attributed: &Attributed) {
    let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let stacks = attributed.stack.iter().skip(collected.memory.len());
    for (event, &stack) in collected.out_of_memory.iter().zip(stacks) {
        let requested_bytes = unsigned(event.requested_bytes);
        recording.markers.push(Marker {
            time_ns: event.time_ns,
            device: event.device,
            kind: MarkerKind::OutOfMemory {
                requested_bytes,
                free_bytes: None,
                capacity_bytes: None,
                allocated_bytes: unsigned(event.total_allocated),
                reserved_bytes: unsigned(event.total_reserved),
                private_pool_bytes: None,
            },
            text: requested_bytes.map_or_else(
                || "out of memory".to_owned(),
                |bytes| format!("out of memory: {} asked for", format_bytes(bytes)),
            ),
            stack,
        });
    }
}

fn slices(recording: &mut Recording, collected: &Collected, attributed: &Attributed) {
    let count = collected.threads.len().min(usize::from(u16::MAX));
    recording.slices.lanes = (0..count)
        .map(|thread| {
            let (pid, tid) = &collected.threads[thread];
            let of_thread = collected.slices.partition_point(|slice| (slice.thread as usize) < thread);
            let is_gpu = collected.slices.get(of_thread).is_some_and(|slice| {
                slice.thread as usize == thread
                    && matches!(slice.kind, SliceKind::Kernel | SliceKind::GpuAnnotation)
            });
            let name = match (collected.thread_names.get(&(thread as u32)), is_gpu) {
                (Some(name), _) if !name.is_empty() => name.clone(),
                (_, true) => format!("GPU {pid} stream {tid}"),
                (_, false) => format!("thread {tid}"),
            };
            Lane { name, is_gpu }
        })
        .collect();
    for (slice, &depth) in collected.slices.iter().zip(&attributed.depth) {
        let range = TimeRange::new(slice.start_ns, slice.end_ns);
        if slice.kind == SliceKind::Annotation {
            recording.annotations.push(Annotation { name: slice.name, range });
        }
        if (slice.thread as usize) < count {
            let lane = LaneId(slice.thread as u16);
            recording.slices.push(Slice { range, name: slice.name, kind: slice.kind, lane, depth });
        }
    }
    recording.annotations.sort_by_key(|annotation| annotation.range.start_ns);
}

fn warnings(recording: &mut Recording, collected: &Collected, header: &Header, cut: Option<String>) {
    recording.lost.events = collected.dropped + collected.without_time;
    recording.lost.repaired = collected.repaired;
    recording.lost.first_at = collected.first_fault;
    if let Some(why) = cut {
        recording.warn("cut", t!("{why}: everything before was read", why));
    }
    if let Some(at) = collected.first_fault {
        recording.warn(
            "broken-json",
            t!(
                "the trace's JSON is broken: {repaired} event(s) repaired and {dropped} dropped, the first at byte {byte}",
                repaired = format_count(collected.repaired),
                dropped = format_count(collected.dropped),
                byte = at
            ),
        );
    }
    if collected.without_time > 0 {
        let count = format_count(collected.without_time);
        recording.warn("no-time", t!("{count} events have no time and are left out", count));
    }
    if collected.is_ascend && collected.memory.is_empty() {
        recording.warn(
            "no-memory-events",
            t!("the trace holds no memory events: Ascend's profiler writes them to operator_memory.csv and memory_record.csv beside it, which can't be read here"),
        );
    } else if collected.memory.is_empty() {
        recording.warn(
            "no-memory-events",
            t!("the trace holds no memory events: record with torch.profiler.profile(profile_memory=True)"),
        );
    } else if header.flag("with_stack") != Some(true)
        && recording.allocations.stack.iter().all(|stack| stack.is_empty())
    {
        recording.warn(
            "no-stacks",
            t!("the trace holds no Python stacks: record with with_stack=True to see lines of code"),
        );
    }
    let alive = recording.allocations.free_completed_ns.iter().filter(|&&time| time == NEVER_NS).count();
    if alive > 0 {
        recording.warn(
            "trace-window",
            t!(
                "{count} allocations are alive when the trace ends; they may have been freed later: a memory snapshot tells",
                count = format_count(alive as u64)
            ),
        );
    }
}
