//! From a snapshot's rows to a recording: allocs meet their frees, segments tell what the events can't.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::pickle::{Kind, Object, Unpickled, Value};
use super::rows::{Action, BLOCK, EVENT, Event, NO_TIME, Rows, get, integer, size, unsigned, word};
use crate::import::ImportError;
use crate::model::{
    Allocation, AllocationFlags, Annotation, BEFORE_NS, Block, BlockState, Clock, Device, Marker, MarkerKind,
    NEVER_NS, PoolId, Recording, Segment, SegmentEvent, SegmentEventKind, SourceKind, StackId, StrId,
    TimeRange, format_bytes, format_count, time,
};
use crate::text::t;

/// More pools than a process has: those beyond share the last.
const MOST_POOLS: usize = 4096;

/// Makes the recording. `inflate_cut` says why inflation ended early, if it did.
pub(super) fn recording(
    unpickled: Unpickled,
    rows: Rows,
    inflate_cut: Option<String>,
    file: &str,
) -> Result<Recording, ImportError> {
    let Unpickled { root, objects, strings, cut } = unpickled;
    let root = Root::new(root, &objects).filter(|root| root.is_snapshot(&rows)).ok_or_else(|| {
        let what = match &cut {
            Some(cut) => t!("the pickle ends at byte {byte} before any segment or event", byte = cut.byte),
            None => t!("the pickle holds no segments and no device traces, so it is not a memory snapshot")
                .to_owned(),
        };
        ImportError::content(what, file)
    })?;
    let mut recording = Recording::new(SourceKind::Snapshot, "PyTorch memory snapshot", Clock::Unix);
    recording.strings = strings;
    let traces = root.traces(rows.events.len());
    let has_times = rows.events.first().is_none_or(|event| event.time_us != NO_TIME);
    if !has_times {
        recording.clock = Clock::Order;
        recording.warn(
            "no-times",
            t!("events have no times before PyTorch 2.1: they are shown in their order, one second each"),
        );
    }
    let mut builder = Builder { rows: &rows, recording, private: Vec::new(), has_times };
    builder.segments(&root);
    let alive: Vec<(Device, Alive)> =
        traces.iter().map(|(device, trace)| (*device, builder.events(*device, trace))).collect();
    builder.check_against_segments(&alive, cut.is_some());
    builder.annotations(&root);
    builder.settings(&root);
    let mut recording = builder.recording;
    for &(action, count) in &rows.unknown_actions {
        let name = recording.strings.get(action).to_owned();
        recording.warn(
            "unknown-action",
            t!(
                "{count} events of the unknown kind `{name}` are kept aside",
                count = format_count(count),
                name
            ),
        );
    }
    if let Some(cut) = cut {
        recording.lost.first_at = Some(cut.byte as u64);
        let missing = root.missing();
        let why = inflate_cut.clone().unwrap_or(cut.what);
        recording.warn(
            "cut",
            t!("the pickle ends early at byte {byte} ({why}): {missing}", byte = cut.byte, why, missing),
        );
    } else if let Some(why) = inflate_cut {
        recording.warn("cut", t!("{why}, after a whole pickle", why));
    }
    recording.stacks = rows.stacks;
    recording.allocations.shrink_to_fit();
    Ok(recording)
}

/// The outermost object: a dict, or a list of segments in the oldest layout.
struct Root<'a> {
    objects: &'a [Object],
    root: &'a Object,
}

impl<'a> Root<'a> {
    fn new(root: Option<Value>, objects: &'a [Object]) -> Option<Self> {
        let Some(Value::Object(index)) = root else { return None };
        Some(Self { objects, root: objects.get(index as usize)? })
    }

    fn is_snapshot(&self, rows: &Rows) -> bool {
        match self.root.kind {
            Kind::Dict => {
                get(&self.root.items, word::segments).is_some()
                    || get(&self.root.items, word::device_traces).is_some()
            }
            Kind::List => !rows.blocks.is_empty() && !self.segments().is_empty(),
        }
    }

    fn items(&self, value: Option<Value>) -> &'a [Value] {
        match value {
            Some(Value::Object(index)) => {
                self.objects.get(index as usize).map_or(&[], |object| &object.items)
            }
            _ => &[],
        }
    }

    fn list(&self, key: StrId) -> &'a [Value] {
        self.items(get(&self.root.items, key))
    }

    /// The dicts of the segments, those of pinned host memory with its device.
    fn segments(&self) -> Vec<(Option<Device>, &'a [Value])> {
        let of_gpus = match self.root.kind {
            Kind::Dict => self.list(word::segments),
            Kind::List => &self.root.items,
        };
        let of_host = self.list(word::host_segments);
        let all = of_gpus.iter().map(|segment| (None, segment));
        all.chain(of_host.iter().map(|segment| (Some(Device::CPU), segment)))
            .map(|(device, &segment)| (device, self.items(Some(segment))))
            .filter(|(_, items)| get(items, word::total_size).is_some() || get(items, word::blocks).is_some())
            .collect()
    }

    /// The events of each device, as ranges of rows: of the GPUs in turn, then of pinned host memory
    /// (`record_host=True`), whose events stand in one list or in several.
    fn traces(&self, event_count: usize) -> Vec<(Device, Vec<Range<u32>>)> {
        let runs = |items: &'a [Value]| {
            items
                .iter()
                .filter_map(|item| match item {
                    Value::Run(start, count) => Some(*start..start.saturating_add(*count)),
                    // Tuples hold their items one by one.
                    Value::Made(EVENT, index) => Some(*index..index.saturating_add(1)),
                    _ => None,
                })
                .collect::<Vec<_>>()
        };
        let of_gpus = self.list(word::device_traces).iter().enumerate();
        let mut traces: Vec<_> = of_gpus
            .map(|(device, &trace)| (Device::cuda(device as i64), runs(self.items(Some(trace)))))
            .collect();
        let of_host = self.list(word::host_traces);
        let mut host = runs(of_host);
        host.extend(of_host.iter().flat_map(|&trace| runs(self.items(Some(trace)))));
        if !host.is_empty() {
            traces.push((Device::CPU, host));
        }
        // Each event stands in one list: one that a thousand devices share is made to fill the memory.
        let mut left = event_count as u32;
        for range in traces.iter_mut().flat_map(|(_, ranges)| ranges) {
            let count = (range.end - range.start).min(left);
            range.end = range.start + count;
            left -= count;
        }
        traces
    }

    /// What a cut pickle lacks, in words.
    fn missing(&self) -> String {
        let has = |key| get(&self.root.items, key).is_some();
        match (has(word::segments), has(word::device_traces)) {
            (_, false) => t!("the events are missing").to_owned(),
            (false, true) => t!("the segments are missing").to_owned(),
            (true, true) => t!("the events after that are missing").to_owned(),
        }
    }
}

/// Which row is alive at an address of one device.
type Alive = FxHashMap<u64, u32>;

struct Builder<'a> {
    rows: &'a Rows,
    recording: Recording,
    /// Address ranges of private pools: start, end, device, pool.
    private: Vec<(u64, u64, Device, PoolId)>,
    has_times: bool,
}

impl Builder<'_> {
    fn time_ns(&self, event: &Event, index: u32) -> i64 {
        if self.has_times {
            time::bounded(event.time_us.saturating_mul(1000))
        } else {
            i64::from(index).saturating_mul(1_000_000_000)
        }
    }

    fn segments(&mut self, root: &Root<'_>) {
        let mut left = self.rows.blocks.len();
        for (device, items) in root.segments() {
            let index = integer(get(items, word::device)).unwrap_or(0);
            let device = device.unwrap_or_else(|| Device::cuda(index));
            let pool = self.pool(root.items(get(items, word::segment_pool_id)));
            let address = unsigned(get(items, word::address));
            let total_bytes = size(get(items, word::total_size));
            if pool != PoolId::DEFAULT {
                self.private.push((address, address.saturating_add(total_bytes), device, pool));
            }
            let mut next_address = address;
            let mut blocks = Vec::new();
            let listed = root.items(get(items, word::blocks));
            // Each block stands in one segment: a list of blocks that a thousand segments share is made to fill the
            // memory.
            let listed = &listed[..listed.len().min(left)];
            left -= listed.len();
            for block in listed {
                let Value::Made(BLOCK, index) = block else { continue };
                let Some(raw) = self.rows.blocks.get(*index as usize) else { continue };
                let address = if raw.has_address { raw.block.address } else { next_address };
                next_address = address.saturating_add(raw.block.size_bytes);
                blocks.push(Block { address, ..raw.block });
            }
            self.recording.segments.push(Segment {
                address,
                total_bytes,
                device,
                stream: unsigned(get(items, word::stream)),
                pool,
                is_small: get(items, word::segment_type) == Some(Value::Str(word::small)),
                is_expandable: integer(get(items, word::is_expandable)).is_some_and(|flag| flag != 0),
                blocks,
            });
        }
        self.private.sort_unstable_by_key(|range| range.0);
    }

    fn pool(&mut self, id: &[Value]) -> PoolId {
        let part = |index: usize| integer(id.get(index).copied()).unwrap_or(0);
        let id = (part(0), part(1));
        let pools = &mut self.recording.pools;
        let position = pools.iter().position(|&known| known == id).unwrap_or_else(|| {
            if pools.len() < MOST_POOLS {
                pools.push(id);
            }
            pools.len() - 1
        });
        PoolId(position as u16)
    }

    /// The private pool that holds an address at the end of the recording.
    fn pool_at(&self, device: Device, address: u64) -> PoolId {
        let after = self.private.partition_point(|range| range.0 <= address);
        match after.checked_sub(1).map(|index| self.private[index]) {
            Some((_, end, of_device, pool)) if address < end && of_device == device => pool,
            _ => PoolId::DEFAULT,
        }
    }

    /// Turns one device's events into rows and returns which are alive after the last.
    fn events(&mut self, device: Device, trace: &[Range<u32>]) -> Alive {
        let rows = self.rows;
        let at = |index: u32| rows.events.get(index as usize);
        let mut order: Vec<u32> = trace.iter().cloned().flatten().collect();
        let time_us = |index: &u32| at(*index).map(|event| event.time_us);
        if self.has_times && !order.is_sorted_by_key(time_us) {
            order.sort_by_key(time_us);
            self.recording.warn(
                "time-steps-back",
                t!("events of {device} stood out of order and were sorted by time", device),
            );
        }
        let count = order.len();
        let mut bounds: Option<(i64, i64)> = None;
        let mut alive = Alive::default();
        let mut without_alloc = 0_u64;
        let mut lost_frees = 0_u64;
        self.recording.allocations.reserve(count / 3);
        for index in order {
            let Some(event) = at(index) else { continue };
            let time_ns = self.time_ns(event, index);
            bounds = Some(bounds.map_or((time_ns, time_ns), |(first_ns, _)| (first_ns, time_ns)));
            match event.action {
                Action::Alloc => {
                    let row = self.recording.allocations.push(self.row(event, device, time_ns));
                    if let Some(older) = alive.insert(event.address, row) {
                        let table = &mut self.recording.allocations;
                        let older = older as usize;
                        table.free_completed_ns[older] = time_ns;
                        table.free_requested_ns[older] = table.free_requested_ns[older].min(time_ns);
                        table.flags[older] = table.flags[older].with(AllocationFlags::FREE_LOST);
                        lost_frees += 1;
                    }
                }
                Action::FreeRequested => {
                    let row = *alive.entry(event.address).or_insert_with(|| {
                        without_alloc += 1;
                        self.recording.allocations.push(row_before(rows, event, device))
                    });
                    self.recording.allocations.free_requested_ns[row as usize] = time_ns;
                }
                Action::FreeCompleted => {
                    let row = alive.remove(&event.address).unwrap_or_else(|| {
                        without_alloc += 1;
                        self.recording.allocations.push(row_before(rows, event, device))
                    }) as usize;
                    let table = &mut self.recording.allocations;
                    table.free_completed_ns[row] = time_ns;
                    table.free_requested_ns[row] = table.free_requested_ns[row].min(time_ns);
                }
                Action::SegmentAlloc => self.segment_event(SegmentEventKind::Alloc, event, device, time_ns),
                Action::SegmentFree => self.segment_event(SegmentEventKind::Free, event, device, time_ns),
                Action::SegmentMap => self.segment_event(SegmentEventKind::Map, event, device, time_ns),
                Action::SegmentUnmap => self.segment_event(SegmentEventKind::Unmap, event, device, time_ns),
                Action::OutOfMemory => self.out_of_memory(event, index, device, time_ns),
                Action::Snapshot => self.recording.markers.push(Marker {
                    time_ns,
                    device,
                    kind: MarkerKind::Snapshot,
                    text: "snapshot taken".to_owned(),
                    stack: event.stack,
                }),
                Action::UserDefined | Action::Unknown => {}
            }
        }
        self.recording.events += count as u64;
        if let Some((first_ns, last_ns)) = bounds {
            let span = TimeRange::new(first_ns, last_ns.saturating_add(1));
            self.recording.span = Some(self.recording.span.map_or(span, |known| known.union(span)));
        }
        if without_alloc > 0 {
            let count = format_count(without_alloc);
            self.recording.warn(
                "history-truncated",
                t!("the history of {device} does not reach back to the start: {count} frees have no alloc (raise max_entries, or record from the start)", device, count),
            );
        }
        if lost_frees > 0 {
            let count = format_count(lost_frees);
            self.recording.warn(
                "free-lost",
                t!(
                    "{count} addresses of {device} were allocated again without a free in between",
                    count,
                    device
                ),
            );
        }
        alive
    }

    fn row(&self, event: &Event, device: Device, time_ns: i64) -> Allocation {
        Allocation {
            alloc_ns: time_ns,
            pool: self.pool_at(device, event.address),
            ..row_of(self.rows, event, device)
        }
    }

    fn segment_event(&mut self, kind: SegmentEventKind, event: &Event, device: Device, time_ns: i64) {
        self.recording.segment_events.push(SegmentEvent {
            time_ns,
            kind,
            address: event.address,
            size_bytes: event.size_bytes,
            device,
            stream: self.stream_of(event),
            stack: event.stack,
        });
    }

    fn stream_of(&self, event: &Event) -> u64 {
        self.rows.streams.get(usize::from(event.stream)).copied().unwrap_or(0)
    }

    fn out_of_memory(&mut self, event: &Event, index: u32, device: Device, time_ns: i64) {
        let found = self.rows.device_free.binary_search_by_key(&index, |&(of, _)| of);
        let free = found.ok().map(|at| self.rows.device_free[at].1);
        let of_driver =
            free.map_or_else(String::new, |bytes| format!("; the driver had {} free", format_bytes(bytes)));
        self.recording.markers.push(Marker {
            time_ns,
            device,
            kind: MarkerKind::OutOfMemory {
                requested_bytes: Some(event.size_bytes),
                free_bytes: free,
                capacity_bytes: None,
                allocated_bytes: None,
                reserved_bytes: None,
                private_pool_bytes: None,
            },
            text: format!("out of memory: {} asked for{of_driver}", format_bytes(event.size_bytes)),
            stack: event.stack,
        });
    }

    /// Blocks that only segments know become rows; rows and blocks that contradict each other become a warning.
    fn check_against_segments(&mut self, alive: &[(Device, Alive)], is_cut: bool) {
        let segments = std::mem::take(&mut self.recording.segments);
        let of_device = |device| alive.iter().find(|(of, _)| *of == device).map(|(_, alive)| alive);
        let mut is_confirmed = vec![false; self.recording.allocations.len()];
        let mut before = (0_u64, 0_u64);
        for segment in &segments {
            for block in segment.blocks.iter().filter(|block| block.state != BlockState::Inactive) {
                let row = of_device(segment.device).and_then(|alive| alive.get(&block.address));
                if let Some(&row) = row {
                    is_confirmed[row as usize] = true;
                    self.recording.allocations.rounded_bytes[row as usize] = block.size_bytes;
                    continue;
                }
                let size_bytes =
                    if block.requested_bytes > 0 { block.requested_bytes } else { block.size_bytes };
                before = (before.0 + 1, before.1 + size_bytes);
                let end_ns = self.recording.span.map_or(0, |span| span.end_ns - 1);
                self.recording.allocations.push(Allocation {
                    address: block.address,
                    size_bytes,
                    rounded_bytes: block.size_bytes,
                    free_requested_ns: if block.state == BlockState::PendingFree { end_ns } else { NEVER_NS },
                    device: segment.device,
                    stream: segment.stream,
                    pool: segment.pool,
                    stack: block.stack,
                    ..Default::default()
                });
            }
        }
        // A cut file's events end before its segments' moment: of course they differ.
        if !segments.is_empty() && !is_cut {
            let table = &self.recording.allocations;
            // Pinned memory's segments came later than its events, and are not always there.
            let shown = alive.iter().filter(|(device, _)| segments.iter().any(|it| it.device == *device));
            let of_devices = shown.flat_map(|(_, alive)| alive.values());
            let (mut count, mut bytes) = (0_u64, 0_u64);
            for &row in of_devices.filter(|&&row| !is_confirmed[row as usize]) {
                count += 1;
                bytes += table.size_bytes[row as usize];
            }
            if count > 0 {
                let text = t!(
                    "the events leave {count} allocations ({bytes}) alive that the segments don't show: frees were not recorded",
                    count = format_count(count),
                    bytes = format_bytes(bytes)
                );
                self.recording.warn("segments-differ", text);
            }
        }
        if before.0 > 0 && is_cut {
            let text = t!(
                "{count} live blocks ({bytes}) are known from segments alone",
                count = format_count(before.0),
                bytes = format_bytes(before.1)
            );
            self.recording.warn("before-recording", text);
        } else if before.0 > 0 && self.recording.events > 0 {
            let text = t!(
                "{count} live blocks ({bytes}) are known from segments alone: they were allocated before the history begins",
                count = format_count(before.0),
                bytes = format_bytes(before.1)
            );
            self.recording.warn("before-recording", text);
        } else if before.0 > 0 {
            self.recording.warn(
                "no-events",
                t!("the history was not on: only what is live at the snapshot is known (call torch.cuda.memory._record_memory_history() at the start)"),
            );
        }
        self.recording.segments = segments;
        self.recording.allocations.sort_by_time();
    }

    /// START and END of the same name on the same device, innermost first.
    fn annotations(&mut self, root: &Root<'_>) {
        let mut open: FxHashMap<(StrId, i64), Vec<usize>> = FxHashMap::default();
        let span = self.recording.span;
        for &entry in root.list(word::external_annotations) {
            let items = root.items(Some(entry));
            let (Some(Value::Str(name)), Some(time_us)) =
                (get(items, word::name), integer(get(items, word::time_us)))
            else {
                continue;
            };
            let time_ns = time::bounded(time_us.saturating_mul(1000));
            let device = integer(get(items, word::device)).unwrap_or(0);
            let annotations = &mut self.recording.annotations;
            match get(items, word::stage) {
                Some(Value::Str(word::stage_start)) => {
                    open.entry((name, device)).or_default().push(annotations.len());
                    let end_ns = span.map_or(time_ns, |span| span.end_ns);
                    annotations
                        .push(Annotation { name, range: TimeRange::new(time_ns, end_ns.max(time_ns)) });
                }
                Some(Value::Str(word::stage_end)) => match open.get_mut(&(name, device)).and_then(Vec::pop) {
                    Some(index) => {
                        annotations[index].range.end_ns = time_ns.max(annotations[index].range.start_ns);
                    }
                    None => {
                        let start_ns = span.map_or(time_ns, |span| span.start_ns);
                        annotations
                            .push(Annotation { name, range: TimeRange::new(start_ns.min(time_ns), time_ns) });
                    }
                },
                _ => {}
            }
        }
        self.recording.annotations.sort_by_key(|annotation| annotation.range.start_ns);
    }

    fn settings(&mut self, root: &Root<'_>) {
        for pair in root.list(word::allocator_settings).chunks_exact(2) {
            let Value::Str(name) = pair[0] else { continue };
            let name = self.recording.strings.get(name).to_owned();
            let value = match pair[1] {
                Value::Str(text) => self.recording.strings.get(text).to_owned(),
                Value::Int(number) => number.to_string(),
                Value::Float(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => continue,
            };
            if !value.is_empty() {
                self.recording.facts.push((name, value));
            }
        }
    }
}

/// What an event says of its block.
fn row_of(rows: &Rows, event: &Event, device: Device) -> Allocation {
    Allocation {
        address: event.address,
        size_bytes: event.size_bytes,
        device,
        stream: rows.streams.get(usize::from(event.stream)).copied().unwrap_or(0),
        stack: event.stack,
        ..Default::default()
    }
}

/// What the free of a block tells that was allocated before the recording: the event's stack is the free's.
fn row_before(rows: &Rows, event: &Event, device: Device) -> Allocation {
    Allocation { alloc_ns: BEFORE_NS, stack: StackId::EMPTY, ..row_of(rows, event, device) }
}
