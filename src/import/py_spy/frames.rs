//! Frames as py-spy writes them, and slices from stacks that change over time.

use crate::model::{Frame, FrameId, LaneId, Recording, Slice, SliceKind, Stacks, StrId, TimeRange};

/// `function (file.py:12)`, `function (file)`; anything else is a function without a file.
pub(super) fn parse_frame(recording: &mut Recording, text: &str) -> FrameId {
    let text = text.trim();
    let (function, place) = match text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) {
        Some((function, place)) => (function, place),
        None => (text, ""),
    };
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => {
            (file, line.parse().unwrap_or(0))
        }
        _ => (place, 0),
    };
    frame(recording, function, file, line)
}

/// A frame by its parts.
pub(super) fn frame(recording: &mut Recording, function: &str, file: &str, line: u32) -> FrameId {
    let frame =
        Frame { file: recording.strings.intern(file), function: recording.strings.intern(function), line };
    recording.stacks.intern_frame(frame)
}

/// The words for a frame on a track: `file.py:12 function`.
pub(super) fn frame_words(recording: &mut Recording, function: &str, file: &str, line: u32) -> StrId {
    let frame =
        Frame { file: recording.strings.intern(file), function: recording.strings.intern(function), line };
    let words = Stacks::format_frame(&recording.strings, frame);
    recording.strings.intern(&words)
}

/// Adds slices, in the order of lanes and times that tracks expect.
pub(super) fn add_slices(recording: &mut Recording, mut slices: Vec<(LaneId, TimeRange, u16, StrId)>) {
    slices.sort_by_key(|&(lane, range, depth, _)| (lane, range.start_ns, depth));
    for &(lane, range, depth, name) in &slices {
        recording.slices.push(Slice { range, name, kind: SliceKind::Sample, lane, depth });
    }
    let spans = slices.iter().map(|slice| slice.1);
    recording.span = spans.reduce(TimeRange::union).or(recording.span);
}
