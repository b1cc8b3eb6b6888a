//! Events, frames and blocks of a snapshot become rows as soon as their dicts are complete.

use crate::model::{Block, BlockState, Frame, FrameId, MAX_BYTES, StackId, Stacks, StrId, Strings};

use super::pickle::{Builder, Object, Value};

/// The keys and words that are looked for, interned first so that their ids are known.
macro_rules! words {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Known strings, in the order of their ids.
        #[derive(Clone, Copy)]
        #[repr(u32)]
        #[expect(non_camel_case_types, reason = "named as they are written in the pickle")]
        enum Word { $($name),* }

        const WORDS: &[&str] = &[$($text),*];

        /// Ids of known strings; the empty one comes before them.
        #[expect(non_upper_case_globals, reason = "named as they are written in the pickle")]
        pub(super) mod word {
            use super::{StrId, Word};
            $(pub(in super::super) const $name: StrId = StrId(Word::$name as u32 + 1);)*
        }
    };
}

words! {
    action = "action", addr = "addr", size = "size", stream = "stream", time_us = "time_us", frames = "frames",
    device_free = "device_free", name = "name", filename = "filename", line = "line", state = "state",
    requested_size = "requested_size", address = "address", history = "history", real_size = "real_size",
    alloc = "alloc", free_requested = "free_requested", free_completed = "free_completed", free = "free",
    segment_alloc = "segment_alloc", segment_free = "segment_free", segment_map = "segment_map",
    segment_unmap = "segment_unmap", snapshot = "snapshot", oom = "oom", user_defined = "user_defined",
    active_allocated = "active_allocated", active_pending_free = "active_pending_free",
    active_awaiting_free = "active_awaiting_free", segments = "segments",
    device_traces = "device_traces", external_annotations = "external_annotations",
    allocator_settings = "allocator_settings", device = "device", total_size = "total_size",
    segment_type = "segment_type", segment_pool_id = "segment_pool_id", is_expandable = "is_expandable",
    blocks = "blocks", host_segments = "host_segments", host_traces = "host_traces", stage = "stage", stage_start = "START", stage_end = "END", small = "small",
}

/// What a [`Value::Made`] is, in its first half.
pub(super) const EVENT: u8 = super::pickle::RUN_KIND;
pub(super) const FRAME: u8 = 1;
pub(super) const BLOCK: u8 = 2;
/// The stack of a list of frames.
pub(super) const STACK: u8 = 3;

/// What happened. `Unknown` counts in the machine's strings are kept beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    Snapshot,
    OutOfMemory,
    UserDefined,
    Unknown,
}

/// The time of events before PyTorch 2.1, which have none.
pub(super) const NO_TIME: i64 = i64::MIN;

/// More streams than a process uses: those beyond share the last.
const MOST_STREAMS: usize = 1024;
/// More unknown actions than there will be: those beyond are counted as the last.
const MOST_UNKNOWN_ACTIONS: usize = 16;
/// More keys than an entry of a block's history has.
const MOST_HISTORY_ITEMS: usize = 64;
/// Kept beside a list that was found to hold no frames.
const NO_FRAMES: u32 = u32::MAX;

/// One entry of a device's trace, 32 bytes: there are millions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub address: u64,
    pub size_bytes: u64,
    /// [`NO_TIME`] before PyTorch 2.1.
    pub time_us: i64,
    pub stack: StackId,
    /// An index into [`Rows::streams`].
    pub stream: u16,
    pub action: Action,
}

/// A block, which may lack its address (it follows the one before) and keep its requested size in a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawBlock {
    pub block: Block,
    pub has_address: bool,
}

/// Takes the dicts of a snapshot.
#[derive(Default)]
pub(super) struct Rows {
    pub stacks: Stacks,
    pub events: Vec<Event>,
    pub blocks: Vec<RawBlock>,
    /// Stream handles.
    pub streams: Vec<u64>,
    /// What the driver had free at an out-of-memory event, by the event's index.
    pub device_free: Vec<(u32, u64)>,
    /// Actions that are not known here, with how often each occurs.
    pub unknown_actions: Vec<(StrId, u64)>,
    frame_ids: Vec<FrameId>,
}

/// A table with the known words at their ids.
pub(super) fn known_strings() -> Strings {
    let mut strings = Strings::default();
    for word in WORDS {
        strings.intern(word);
    }
    strings
}

/// The value of a key in a dict's items.
pub(super) fn get(items: &[Value], key: StrId) -> Option<Value> {
    items.chunks_exact(2).find(|pair| pair[0] == Value::Str(key)).map(|pair| pair[1])
}

/// An integer, its bits kept.
pub(super) fn integer(value: Option<Value>) -> Option<i64> {
    number(&value?)
}

/// The same of a value where it stands.
fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(flag) => Some(i64::from(*flag)),
        Value::Float(number) => Some(*number as i64),
        _ => None,
    }
}

pub(super) fn unsigned(value: Option<Value>) -> u64 {
    integer(value).unwrap_or(0) as u64
}

/// A figure of bytes as it stands in a file, cut to what devices have.
pub(super) fn size(value: Option<Value>) -> u64 {
    unsigned(value).min(MAX_BYTES)
}

impl Builder for Rows {
    fn dict(&mut self, items: &[Value], objects: &mut [Object]) -> Option<Value> {
        if let [Value::Str(word::action), Value::Str(action), ..] = *items {
            return self.event(items, action, objects);
        }
        if let Some(Value::Str(action)) = get(items, word::action) {
            return self.event(items, action, objects);
        }
        if let Some(Value::Str(file)) = get(items, word::filename) {
            let line = integer(get(items, word::line)).unwrap_or(0).clamp(0, i64::from(u32::MAX)) as u32;
            let Some(Value::Str(function)) = get(items, word::name) else { return None };
            return Some(Value::Made(FRAME, self.stacks.intern_frame(Frame { file, function, line }).0));
        }
        if let Some(Value::Str(state)) = get(items, word::state)
            && get(items, word::size).is_some()
        {
            return self.block(items, state, objects);
        }
        None
    }

    fn list(&mut self, items: &[Value]) -> Option<Value> {
        let is_stack = items.iter().all(|item| matches!(item, Value::Made(FRAME, _)));
        is_stack.then(|| Value::Made(STACK, self.intern(items).0))
    }
}

/// How many bytes of a pickle an event takes at least, its memoized keys and values included.
const EVENT_BYTES: usize = 80;

impl Rows {
    /// With room for the events that a pickle of so many bytes may hold.
    pub(super) fn for_bytes(bytes: usize) -> Self {
        Self { events: Vec::with_capacity(bytes / EVENT_BYTES), ..Self::default() }
    }

    /// The stack of frames, innermost first.
    fn intern(&mut self, frames: &[Value]) -> StackId {
        self.frame_ids.clear();
        self.frame_ids.extend(frames.iter().filter_map(|item| match item {
            Value::Made(FRAME, frame) => Some(FrameId(*frame)),
            _ => None,
        }));
        self.stacks.intern_innermost_first(&self.frame_ids)
    }

    fn event(&mut self, items: &[Value], action: StrId, objects: &mut [Object]) -> Option<Value> {
        let action = match action {
            word::alloc => Action::Alloc,
            word::free_requested => Action::FreeRequested,
            word::free_completed | word::free => Action::FreeCompleted,
            word::segment_alloc => Action::SegmentAlloc,
            word::segment_free => Action::SegmentFree,
            word::segment_map => Action::SegmentMap,
            word::segment_unmap => Action::SegmentUnmap,
            word::snapshot => Action::Snapshot,
            word::oom => Action::OutOfMemory,
            word::user_defined => Action::UserDefined,
            unknown => {
                let known = &mut self.unknown_actions;
                let at = known.iter().position(|&(known, _)| known == unknown).unwrap_or(known.len());
                if at == known.len() && at < MOST_UNKNOWN_ACTIONS {
                    known.push((unknown, 0));
                }
                known[at.min(MOST_UNKNOWN_ACTIONS - 1)].1 += 1;
                Action::Unknown
            }
        };
        let index = u32::try_from(self.events.len()).ok()?;
        let mut event =
            Event { address: 0, size_bytes: 0, time_us: NO_TIME, stack: StackId::EMPTY, stream: 0, action };
        // One pass over the items: events are the bulk of a snapshot.
        for pair in items.chunks_exact(2) {
            let (Value::Str(key), value) = (&pair[0], &pair[1]) else { continue };
            let bits = || number(value).unwrap_or(0) as u64;
            match *key {
                word::addr => event.address = bits(),
                word::size => event.size_bytes = bits().min(MAX_BYTES),
                word::stream => event.stream = self.stream(bits()),
                word::time_us => event.time_us = number(value).unwrap_or(NO_TIME),
                word::frames => event.stack = self.stack(Some(value), objects),
                word::device_free => self.device_free.push((index, bits().min(MAX_BYTES))),
                _ => {}
            }
        }
        self.events.push(event);
        Some(Value::Made(EVENT, index))
    }

    /// The position of a stream's handle; streams beyond [`MOST_STREAMS`] share the last one.
    fn stream(&mut self, handle: u64) -> u16 {
        if let Some(position) = self.streams.iter().rposition(|&known| known == handle) {
            return position as u16;
        }
        if self.streams.len() < MOST_STREAMS {
            self.streams.push(handle);
        }
        (self.streams.len() - 1) as u16
    }

    fn block(&mut self, items: &[Value], state: StrId, objects: &mut [Object]) -> Option<Value> {
        let state = match state {
            word::active_allocated => BlockState::Allocated,
            word::active_pending_free | word::active_awaiting_free => BlockState::PendingFree,
            _ => BlockState::Inactive,
        };
        let mut requested_bytes = size(get(items, word::requested_size));
        let mut stack = self.stack(get(items, word::frames).as_ref(), objects);
        // PyTorch 2.0 keeps what the block held in a history, the latest first.
        if let Some(Value::Object(history)) = get(items, word::history)
            && let Some(&Value::Object(latest)) =
                objects.get(history as usize).and_then(|list| list.items.first())
        {
            // A dict that many blocks share, were it large, would be gone through for each.
            let latest = objects.get(latest as usize).filter(|dict| dict.items.len() <= MOST_HISTORY_ITEMS);
            let latest_items = latest.map(|dict| dict.items.clone()).unwrap_or_default();
            if requested_bytes == 0 && state != BlockState::Inactive {
                requested_bytes = size(get(&latest_items, word::real_size));
            }
            if stack.is_empty() {
                stack = self.stack(get(&latest_items, word::frames).as_ref(), objects);
            }
        }
        let address = get(items, word::address);
        self.blocks.push(RawBlock {
            block: Block {
                address: unsigned(address),
                size_bytes: size(get(items, word::size)),
                requested_bytes,
                state,
                stack,
            },
            has_address: address.is_some(),
        });
        Some(Value::Made(BLOCK, u32::try_from(self.blocks.len() - 1).ok()?))
    }

    /// The stack of a list of frames, innermost first; kept beside the list, since thousands of events share it.
    pub(super) fn stack(&mut self, frames: Option<&Value>, objects: &mut [Object]) -> StackId {
        let list = match frames {
            Some(Value::Made(STACK, stack)) => return StackId(*stack),
            Some(Value::Object(list)) => objects.get_mut(*list as usize),
            _ => None,
        };
        let Some(list) = list else { return StackId::EMPTY };
        if list.cached == 0 && !list.items.is_empty() {
            list.cached = match self.intern(&list.items) {
                StackId::EMPTY => NO_FRAMES,
                stack => stack.0,
            };
        }
        if list.cached == NO_FRAMES { StackId::EMPTY } else { StackId(list.cached) }
    }
}
