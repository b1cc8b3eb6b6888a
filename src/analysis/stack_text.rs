//! Stacks as text, bounded: a small file can name one long frame a hundred thousand times.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Index;
use crate::model::{Frame, ProcessId, StackId, Stacks, format_count};
use crate::text::t;

/// Of a deeper stack the innermost frames are written. Python itself stops at a thousand calls.
const MAX_FRAMES: usize = 1_000;
/// Nor more text than this, except that the innermost frame is always written.
const MAX_STACK_BYTES: usize = 64 << 10;
/// How much text all stacks of a report or table make together, each counted once; then the innermost frames are left.
const MAX_ALL_BYTES: usize = 256 << 20;

/// The frames of a stack as text, innermost first: `/home/ann/train.py:12 step`.
pub type StackLines = Arc<[String]>;

impl Index {
    /// The frames of a stack as text.
    pub fn stack_lines(&self, process: ProcessId, stack: StackId) -> Vec<String> {
        self.stack_lines_within(process, stack, MAX_STACK_BYTES)
    }

    /// The frames of a stack that are written, and how many more there are.
    pub fn frames_shown(&self, process: ProcessId, stack: StackId, shows_all: bool) -> (Vec<Frame>, usize) {
        let mut frames = self.frames(process, stack, shows_all);
        let more = frames.len().saturating_sub(MAX_FRAMES);
        frames.truncate(MAX_FRAMES);
        (frames, more)
    }

    fn stack_lines_within(&self, process: ProcessId, stack: StackId, max_bytes: usize) -> Vec<String> {
        let strings = &self.session.process(process).strings;
        let (frames, mut more) = self.frames_shown(process, stack, self.user_code.shows_all_frames);
        let mut lines: Vec<String> = Vec::new();
        let mut bytes = 0;
        for (written, &frame) in frames.iter().enumerate() {
            let line = Stacks::format_whole_frame(strings, frame);
            bytes += line.len();
            if written > 0 && bytes > max_bytes {
                more += frames.len() - written;
                break;
            }
            lines.push(line);
        }
        if more > 0 {
            lines.push(more_frames(more));
        }
        lines
    }
}

/// What stands for frames that are not written.
pub fn more_frames(count: usize) -> String {
    t!("… {count} more frames", count = format_count(count as u64))
}

/// The stacks of a report or table, each made once and shared by its rows.
#[derive(Debug)]
pub struct StackTexts<'a> {
    index: &'a Index,
    known: FxHashMap<(ProcessId, StackId), StackLines>,
    room_bytes: usize,
}

impl<'a> StackTexts<'a> {
    /// None yet.
    pub fn new(index: &'a Index) -> Self {
        Self { index, known: FxHashMap::default(), room_bytes: MAX_ALL_BYTES }
    }

    /// The frames of a stack as text.
    pub fn lines(&mut self, process: ProcessId, stack: StackId) -> StackLines {
        let room_bytes = &mut self.room_bytes;
        let make = || {
            let lines = self.index.stack_lines_within(process, stack, MAX_STACK_BYTES.min(*room_bytes));
            *room_bytes = room_bytes.saturating_sub(lines.iter().map(String::len).sum());
            lines.into()
        };
        self.known.entry((process, stack)).or_insert_with(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align;
    use crate::analysis::UserCode;
    use crate::model::{Allocation, Clock, Recording, SourceKind, TimeRange};

    /// Two allocations: one of a long frame called again and again, and one of a shallow stack.
    fn index() -> (Index, [StackId; 2]) {
        let mut recording = Recording::new(SourceKind::Snapshot, "test", Clock::Unix);
        let file = recording.strings.intern(&format!("/home/ann/{}.py", "x".repeat(2000)));
        let function = recording.strings.intern("f");
        let lines = (0..5000).map(|line| Frame { file, function, line: line % 7 + 1 });
        let frames: Vec<_> = lines.map(|frame| recording.stacks.intern_frame(frame)).collect();
        for frames in [&frames[..], &frames[..2]] {
            let stack = recording.stacks.intern_innermost_first(frames);
            recording.allocations.push(Allocation {
                size_bytes: 512,
                alloc_ns: 1,
                stack,
                ..Default::default()
            });
        }
        recording.span = Some(TimeRange::new(0, 10));
        let session = align::build(&[align::Opened::new("s.pickle", Arc::new(recording))]);
        let stacks = [0, 1].map(|row| session.processes[0].allocations.stack[row]);
        (Index::new(Arc::new(session), UserCode::default()), stacks)
    }

    #[test]
    fn of_a_deep_stack_the_innermost_frames_are_written() {
        let (index, [deep, short]) = index();
        let lines = index.stack_lines(ProcessId(0), deep);
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_STACK_BYTES + 100);
        let last = lines.last().unwrap();
        assert_eq!(*last, format!("… {} more frames", format_count(5000 - (lines.len() as u64 - 1))));
        assert_eq!(index.stack_lines(ProcessId(0), short).len(), 2);
        assert_eq!(index.frames_shown(ProcessId(0), deep, true).0.len(), MAX_FRAMES);
    }

    #[test]
    fn when_stacks_become_much_the_innermost_frame_is_left() {
        let (index, [deep, short]) = index();
        let mut texts = StackTexts { room_bytes: 3000, ..StackTexts::new(&index) };
        assert_eq!(texts.lines(ProcessId(0), deep).len(), 2, "one frame has room, and how many more");
        let lines = texts.lines(ProcessId(0), short);
        assert_eq!(lines[1..], ["… 1 more frames".to_owned()]);
        assert!(Arc::ptr_eq(&lines, &texts.lines(ProcessId(0), short)));
    }
}
