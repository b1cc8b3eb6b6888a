//! Recordings become a session: processes are told apart, clocks aligned, traces and snapshots linked.

use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::merge::{IdMap, Merged};
use super::processes::{Member, group_by_process};
use super::{clock, names, replay, steps};
use crate::model::{
    Alignment, AlignmentMethod, Annotation, Clock, Device, Link, Marker, MarkerKind, NEVER_NS, Process,
    ProcessId, Quantity, Recording, Segment, SegmentEvent, Series, Session, Source, SourceId, SourceKind,
    StackId, TimeRange,
};

/// Within this time two annotations of one name are the same one, seen by a trace and a snapshot.
const SAME_ANNOTATION_NS: i64 = 1_000_000;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Where it was.
    pub path: PathBuf,
    /// What tells it from files that are not in this session; otherwise it is told from those that are.
    pub name: Option<String>,
    /// What it holds.
    pub recording: Arc<Recording>,
    /// An offset that the user set by hand, which is then taken as it is.
    pub offset_by_hand_ns: Option<i64>,
    /// For a driver's log: its GPUs in the order in which the processes number theirs, as `CUDA_VISIBLE_DEVICES` would
    /// list them. Empty when they are numbered alike, or not known to be otherwise.
    pub visible_devices: Vec<i8>,
}

impl Opened {
    /// A file whose offset is to be found, and whose GPUs are numbered as the processes number them.
    pub fn new(path: impl Into<PathBuf>, recording: Arc<Recording>) -> Self {
        Self {
            path: path.into(),
            name: None,
            recording,
            offset_by_hand_ns: None,
            visible_devices: Vec::new(),
        }
    }

    /// The recording with its GPUs numbered as the processes number them.
    fn renumbered(&self) -> Arc<Recording> {
        if self.visible_devices.is_empty() || self.recording.kind != SourceKind::NvidiaSmi {
            return self.recording.clone();
        }
        let mut recording = Recording::clone(&self.recording);
        let devices = recording.series.iter_mut().map(|series| &mut series.device);
        let devices = devices.chain(recording.markers.iter_mut().map(|marker| &mut marker.device));
        for device in devices.chain(recording.devices.iter_mut().map(|info| &mut info.device)) {
            device.index = self.visible_index(device.index);
        }
        recording.devices.sort_by_key(|info| info.device);
        Arc::new(recording)
    }

    /// GPUs that the processes don't see come after those that they see, in their order.
    fn visible_index(&self, index: i8) -> i8 {
        let visible = &self.visible_devices;
        let place = visible.iter().position(|&known| known == index).unwrap_or_else(|| {
            let before = (0..index).filter(|other| !visible.contains(other)).count();
            visible.len() + before
        });
        i8::try_from(place).unwrap_or(i8::MAX)
    }
}

/// Joins files into a session. Run it again when a file is added or an offset set, but not on the UI thread.
pub fn build(opened: &[Opened]) -> Session {
    let paths: Vec<PathBuf> = opened.iter().map(|file| file.path.clone()).collect();
    let mut sources: Vec<Source> = opened
        .iter()
        .zip(names::short_names(&paths))
        .map(|(file, name)| Source {
            name: file.name.clone().unwrap_or(name),
            path: file.path.clone(),
            recording: file.renumbered(),
            alignment: alignment_of(file),
            process: None,
        })
        .collect();

    let members: Vec<Member<'_>> = sources
        .iter()
        .enumerate()
        .filter(|(_, source)| has_process(&source.recording))
        .map(|(index, source)| Member {
            source: index as u32,
            recording: &source.recording,
            offset_ns: source.alignment.offset_ns,
            rank_from_path: names::rank_from_path(&source.path),
        })
        .collect();
    let mut built: Vec<(Process, Vec<Link>)> =
        group_by_process(&members).iter().map(|group| build_process(group, &sources)).collect();
    built.sort_by_key(|(process, _)| (process.rank, process.pid, process.sources.first().copied()));
    let (processes, links): (Vec<Process>, Vec<Vec<Link>>) = built.into_iter().unzip();
    for (index, process) in processes.iter().enumerate() {
        for &source in &process.sources {
            sources[source.0 as usize].process = Some(ProcessId(index as u32));
        }
    }
    place_logs(&mut sources, &processes, opened);
    let span = span_of(&sources);
    Session { sources, processes, links: links.into_iter().flatten().collect(), span }
}

/// What a source would be like at another offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRun {
    /// Its span then.
    pub span: TimeRange,
    /// How many of its points would fall outside the other sources.
    pub outside: u64,
    /// Of how many.
    pub points: u64,
}

/// Says what an offset would do, without doing it: cheap enough for every frame of a drag. `None` for a source without
/// times.
pub fn dry_run(session: &Session, id: SourceId, offset_ns: i64) -> Option<DryRun> {
    let source = session.source(id);
    let span = source.recording.span?.shifted(offset_ns);
    let is_other = |(at, other): &(usize, &Source)| {
        *at != id.0 as usize && other.alignment.confidence > 0.0 && other.recording.clock == Clock::Unix
    };
    let others = session.sources.iter().enumerate().filter(is_other).filter_map(|(_, other)| other.span());
    // Curves of one log share their moments: the longest stands for all.
    let longest = source.recording.series.iter().max_by_key(|series| series.len());
    let points = longest.map_or(0, |series| series.len() as u64);
    let inside = match (others.reduce(TimeRange::union), longest) {
        (Some(all), Some(series)) => series.rows_in(all.shifted(offset_ns.saturating_neg())).len() as u64,
        _ => points,
    };
    Some(DryRun { span, outside: points - inside, points })
}

/// Whether a recording tells of a process's memory, ops or stacks rather than of a device or a log.
fn has_process(recording: &Recording) -> bool {
    matches!(recording.kind, SourceKind::Trace | SourceKind::Snapshot)
}

/// Places the sources that keep another clock, by the curves and steps of those on Unix time.
fn place_logs(sources: &mut [Source], processes: &[Process], opened: &[Opened]) {
    let logs: Vec<usize> = (0..sources.len())
        .filter(|&index| opened[index].offset_by_hand_ns.is_none())
        .filter(|&index| sources[index].recording.clock != Clock::Unix)
        .collect();
    if logs.is_empty() {
        return;
    }
    let on_unix = |source: &&Source| source.recording.clock == Clock::Unix;
    let spans = sources.iter().filter(on_unix).filter_map(Source::span);
    let reference = clock::Reference::from_processes(processes, spans);
    let recordings: Vec<Arc<Recording>> =
        logs.iter().map(|&index| sources[index].recording.clone()).collect();
    let recordings: Vec<&Recording> = recordings.iter().map(Arc::as_ref).collect();
    for (index, placed) in logs.into_iter().zip(clock::align_logs(&reference, &recordings)) {
        sources[index].alignment = placed.alignment;
        if let Some(recording) = placed.retimed {
            sources[index].recording = Arc::new(recording);
        }
    }
}

/// What a source says by itself; logs are placed among the others afterwards.
fn alignment_of(file: &Opened) -> Alignment {
    let (offset_ns, method, confidence) = match (file.offset_by_hand_ns, file.recording.clock) {
        (Some(offset_ns), _) => (offset_ns, AlignmentMethod::ByHand, 1.0),
        (None, Clock::Unix) => (0, AlignmentMethod::SameClock, 1.0),
        (None, _) => (0, AlignmentMethod::Assumed, 0.0),
    };
    Alignment { offset_ns, method, confidence, outside: 0, evidence: String::new(), lag_ns: None }
}

/// Everything that is placed for certain; all sources when none is.
fn span_of(sources: &[Source]) -> TimeRange {
    let spans = |is_sure: bool| {
        sources
            .iter()
            .filter(move |source| !is_sure || source.alignment.confidence > 0.0)
            .filter_map(Source::span)
            .reduce(TimeRange::union)
    };
    spans(true).or_else(|| spans(false)).unwrap_or(TimeRange { start_ns: 0, end_ns: 0 })
}

fn build_process(members: &[Member<'_>], sources: &[Source]) -> (Process, Vec<Link>) {
    let first = members[0];
    let (mut merged, map) = Merged::new(first.recording, first.offset_ns);
    let mut parts = Parts::default();
    parts.add(&first, &map);
    let mut links = Vec::new();
    for member in &members[1..] {
        let (map, matched) = merged.add(member.recording, member.offset_ns);
        parts.add(member, &map);
        if first.is_snapshot() && !member.is_snapshot() {
            links.push(Link {
                trace: SourceId(member.source),
                snapshot: SourceId(first.source),
                allocations: matched.allocations,
                matched: matched.matched,
            });
        }
    }
    let annotations = parts.annotations(&merged);
    let (steps, step_name) = steps::find_steps(&annotations, &merged.strings);
    let has_snapshot = first.is_snapshot();
    let recorded = members
        .iter()
        .filter(|member| member.is_snapshot() == has_snapshot)
        .filter_map(Member::span)
        .reduce(TimeRange::union)
        .unwrap_or(TimeRange { start_ns: 0, end_ns: 0 });
    let rank = members.iter().find_map(Member::rank);
    let pid = members.iter().find_map(|member| member.recording.process.pid);
    let label = match (rank, pid) {
        (Some(rank), _) => format!("rank {rank}"),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => sources[first.source as usize].name.clone(),
    };
    let mut process = Process {
        label,
        pid,
        rank,
        sources: members.iter().map(|member| SourceId(member.source)).collect(),
        strings: Arc::new(merged.strings),
        stacks: Arc::new(merged.stacks),
        ops: Arc::new(merged.ops),
        allocations: Arc::new(merged.allocations),
        pools: merged.pools,
        segments: parts.segments,
        segment_events: parts.segment_events,
        annotations,
        steps,
        step_name,
        series: parts.series,
        markers: parts.markers,
        recorded,
        has_snapshot,
    };
    number_steps(&mut process);
    if has_snapshot {
        process.series = replay::curves(&process);
        complete_out_of_memory(&mut process);
    }
    add_curves(&mut process);
    (process, links)
}

/// Says of out-of-memory events what the curves tell: what was allocated and reserved, and, when the event tells what the
/// driver had free, how much the process could have had. That much is its capacity, drawn as a line.
fn complete_out_of_memory(process: &mut Process) {
    let Process { series, markers, recorded, .. } = process;
    let mut capacities: Vec<(Device, i64)> = Vec::new();
    for marker in markers {
        let device = marker.device;
        let MarkerKind::OutOfMemory { free_bytes, capacity_bytes, allocated_bytes, reserved_bytes, .. } =
            &mut marker.kind
        else {
            continue;
        };
        let level = |quantity: Quantity| {
            let curve = series.iter().find(|curve| curve.device == device && curve.quantity == quantity)?;
            curve.at(marker.time_ns).and_then(|bytes| u64::try_from(bytes).ok())
        };
        *allocated_bytes = allocated_bytes.or_else(|| level(Quantity::Allocated));
        *reserved_bytes = reserved_bytes.or_else(|| level(Quantity::Reserved));
        if capacity_bytes.is_none()
            && let (Some(free), Some(reserved)) = (*free_bytes, *reserved_bytes)
        {
            let capacity = free.saturating_add(reserved);
            *capacity_bytes = Some(capacity);
            let capacity = i64::try_from(capacity).unwrap_or(i64::MAX);
            match capacities.iter_mut().find(|(of, _)| *of == device) {
                Some((_, highest)) => *highest = capacity.max(*highest),
                None => capacities.push((device, capacity)),
            }
        }
    }
    for (device, bytes) in capacities {
        let mut line = Series::new(Quantity::Capacity, device, true);
        line.push(recorded.start_ns, bytes);
        line.push(recorded.end_ns, bytes);
        series.push(line);
    }
}

/// Says for each allocation in which step it was made.
fn number_steps(process: &mut Process) {
    let allocations = Arc::make_mut(&mut process.allocations);
    let mut step = 0;
    for (row, &alloc_ns) in allocations.alloc_ns.iter().enumerate() {
        while process.steps.get(step).is_some_and(|step| step.range.end_ns <= alloc_ns) {
            step += 1;
        }
        if process.steps.get(step).is_some_and(|step| step.range.contains(alloc_ns)) {
            allocations.step[row] = step as u32;
        }
    }
}

/// Adds the curves that the sources don't give: host memory, and devices whose trace has no totals, start at zero.
fn add_curves(process: &mut Process) {
    let mut devices: Vec<Device> = process.allocations.device.clone();
    devices.sort_unstable();
    devices.dedup();
    for device in devices {
        let is_there = process.series.iter().any(|series| {
            series.device == device && series.quantity == Quantity::Allocated && !series.is_empty()
        });
        if !is_there {
            let series = allocated_curve(process, device);
            process.series.push(series);
        }
    }
}

/// Allocated bytes of one device from the allocations alone; what was there before the recording counts.
fn allocated_curve(process: &Process, device: Device) -> Series {
    let table = &process.allocations;
    let mut level = 0_i64;
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for row in (0..table.len()).filter(|&row| table.device[row] == device) {
        let bytes = table.rounded_bytes[row].max(table.size_bytes[row]) as i64;
        if table.alloc_ns[row] == crate::model::BEFORE_NS {
            level += bytes;
        } else {
            changes.push((table.alloc_ns[row], bytes));
        }
        if table.free_completed_ns[row] != NEVER_NS {
            changes.push((table.free_completed_ns[row], -bytes));
        }
    }
    changes.sort_by_key(|&(time_ns, _)| time_ns);
    let mut series = Series::new(Quantity::Allocated, device, true);
    series.push(process.recorded.start_ns.min(changes.first().map_or(i64::MAX, |change| change.0)), level);
    for (time_ns, bytes) in changes {
        level += bytes;
        series.push(time_ns, level);
    }
    series
}

/// What is gathered from the members beside the allocations.
#[derive(Default)]
struct Parts {
    segments: Vec<Segment>,
    segment_events: Vec<SegmentEvent>,
    annotations: Vec<Annotation>,
    series: Vec<Series>,
    markers: Vec<Marker>,
}

impl Parts {
    fn add(&mut self, member: &Member<'_>, map: &IdMap) {
        let recording = member.recording;
        let offset_ns = member.offset_ns;
        if self.segments.is_empty() {
            self.segments = recording.segments.clone();
            for segment in &mut self.segments {
                segment.pool = map.pool(segment.pool);
                for block in &mut segment.blocks {
                    block.stack = map.stack(block.stack);
                }
            }
        }
        let shifted = |event: &SegmentEvent| SegmentEvent {
            time_ns: event.time_ns.saturating_add(offset_ns),
            stack: map.stack(event.stack),
            ..*event
        };
        // An earlier snapshot adds what the later one's ring lost.
        let first_ns = self.segment_events.first().map_or(i64::MAX, |event| event.time_ns);
        let mut earlier: Vec<SegmentEvent> =
            recording.segment_events.iter().map(shifted).filter(|event| event.time_ns < first_ns).collect();
        earlier.append(&mut self.segment_events);
        self.segment_events = earlier;
        self.annotations.extend(recording.annotations.iter().map(|annotation| Annotation {
            name: map.string(annotation.name),
            range: annotation.range.shifted(offset_ns),
        }));
        for series in &recording.series {
            let mut series = series.clone();
            series.times_ns.iter_mut().for_each(|time| *time = time.saturating_add(offset_ns));
            self.append_series(series);
        }
        self.markers.extend(recording.markers.iter().map(|marker| Marker {
            time_ns: marker.time_ns.saturating_add(offset_ns),
            stack: if marker.stack.is_empty() { StackId::EMPTY } else { map.stack(marker.stack) },
            ..marker.clone()
        }));
    }

    /// Cycles of one profiler continue each other's curves.
    fn append_series(&mut self, series: Series) {
        let known = self.series.iter_mut().find(|known| {
            known.quantity == series.quantity && known.device == series.device && known.pid == series.pid
        });
        match known {
            Some(known) if known.times_ns.last() <= series.times_ns.first() => {
                known.times_ns.extend(series.times_ns);
                known.bytes.extend(series.bytes);
            }
            // What an earlier recording already tells of this time stays.
            Some(_) => {}
            None => self.series.push(series),
        }
    }

    /// The annotations by start, each once.
    fn annotations(&mut self, merged: &Merged) -> Vec<Annotation> {
        let mut annotations = std::mem::take(&mut self.annotations);
        annotations.sort_by_key(|annotation| (annotation.range.start_ns, annotation.range.end_ns));
        let mut last_start: FxHashMap<crate::model::StrId, i64> = FxHashMap::default();
        annotations.retain(|annotation| {
            let start_ns = annotation.range.start_ns;
            let is_twin = last_start.get(&annotation.name).is_some_and(|&last_ns| {
                start_ns - last_ns <= SAME_ANNOTATION_NS && merged.strings.get(annotation.name).contains('#')
            });
            last_start.insert(annotation.name, start_ns);
            !is_twin
        });
        annotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_says_what_would_fall_outside() {
        const S: i64 = 1_000_000_000;
        let mut trace = Recording::new(SourceKind::Trace, "test", Clock::Unix);
        trace.span = Some(TimeRange::new(100 * S, 110 * S));
        let mut log = Recording::new(SourceKind::NvidiaSmi, "test", Clock::LocalWall);
        let mut series = Series::new(Quantity::DriverUsed, Device::cuda(0), false);
        (0..10).for_each(|second| series.push(second * S, second));
        log.span = series.span();
        log.series.push(series);
        let session = build(&[Opened::new("t.json", trace.into()), Opened::new("gpu.csv", log.into())]);
        let outside = |offset_s: i64| {
            let run = dry_run(&session, SourceId(1), offset_s * S).unwrap();
            assert_eq!((run.points, run.span.start_ns), (10, offset_s * S));
            run.outside
        };
        assert_eq!((outside(100), outside(96), outside(107), outside(0)), (0, 4, 7, 10));
    }

    #[test]
    fn gpus_are_numbered_as_visible_devices_list_them() {
        let mut log = Recording::new(SourceKind::NvidiaSmi, "test", Clock::Unix);
        for index in 0..4 {
            let mut series = Series::new(Quantity::DriverUsed, Device::cuda(index), false);
            series.push(0, index);
            log.series.push(series);
        }
        let mut file = Opened::new("gpu.csv", Arc::new(log));
        file.visible_devices = vec![2, 0];
        let session = build(&[file]);
        let numbers = |series: &Series| (series.device.index, series.bytes[0]);
        let numbered: Vec<(i8, i64)> = session.sources[0].recording.series.iter().map(numbers).collect();
        assert_eq!(numbered, [(1, 0), (2, 1), (0, 2), (3, 3)]);
    }
}
