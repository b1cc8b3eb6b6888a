//! `record -f raw`: one line a distinct stack, outermost frame first, with how often it was seen.

use super::frames::parse_frame;
use crate::model::{Clock, Recording, SourceKind, StackId};
use crate::text::t;

/// Whether most lines are stacks of frames with files and lines, and counts.
pub(super) fn detect(text: &str) -> bool {
    let mut count = 0;
    let mut stacks = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()).take(50) {
        count += 1;
        stacks += usize::from(split(line).is_some_and(|(frames, _)| frames.split(';').all(is_frame)));
    }
    stacks > 0 && stacks * 10 >= count * 8
}

/// `name (file.py:12)`, or what py-spy puts at the root: `process 1004:"python train.py"`, `thread (0x7F…)`.
fn is_frame(frame: &str) -> bool {
    let has_line = || {
        let place = frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" ("));
        place.is_some_and(|(_, place)| {
            place
                .rsplit_once(':')
                .is_some_and(|(_, line)| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    has_line() || frame.starts_with("process ") || frame.starts_with("thread ")
}

fn split(line: &str) -> Option<(&str, u64)> {
    let (frames, count) = line.rsplit_once(' ')?;
    Some((frames, count.parse().ok()?))
}

/// Reads the stacks.
pub(super) fn read(text: &str) -> Recording {
    let mut recording = Recording::new(SourceKind::PySpy, "py-spy folded", Clock::Order);
    for (line, number) in text.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty()) {
        // A count alone is of a thread without Python frames.
        if line.bytes().all(|byte| byte.is_ascii_digit()) {
            recording.events += 1;
            continue;
        }
        let Some((frames, count)) = split(line) else {
            recording.lost.events += 1;
            recording.lost.first_at.get_or_insert(number);
            continue;
        };
        recording.events += 1;
        let mut stack = StackId::EMPTY;
        for frame in frames.split(';') {
            if let Some(pid) = frame.strip_prefix("process ") {
                let pid = pid.split(':').next().unwrap_or_default();
                recording.process.pid = recording.process.pid.or_else(|| pid.parse().ok());
            }
            let frame = parse_frame(&mut recording, frame);
            stack = recording.stacks.push(stack, frame);
        }
        recording.stack_counts.push((stack, count));
    }
    if recording.lost.events > 0 {
        let (lines, first) = (recording.lost.events, recording.lost.first_at.unwrap_or_default());
        recording
            .warn("unread-rows", t!("{lines} lines are no stacks, the first is line {first}", lines, first));
    }
    recording
}
