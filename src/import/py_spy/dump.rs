//! `py-spy dump`: the stacks of one moment, as text or JSON. It gives no time.

use serde::Deserialize;

use super::frames::{frame, parse_frame};
use crate::model::{Clock, FrameId, Recording, SourceKind};
use crate::text::t;

/// Frames stand this far in; their arguments and locals further.
const FRAME_INDENT: usize = 4;

/// Whether a text begins as a dump does.
pub(super) fn detect_text(text: &str) -> bool {
    let mut lines = text.lines();
    let is_process = lines.next().is_some_and(|line| {
        line.strip_prefix("Process ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    is_process && lines.take(6).any(|line| line.starts_with("Python v") || line.starts_with("Thread "))
}

/// Whether JSON is a list of threads with frames.
pub(super) fn detect_json(text: &str) -> bool {
    text.contains("\"thread_id\"") && text.contains("\"frames\"") && text.contains("\"owns_gil\"")
}

/// Reads a dump as text.
pub(super) fn read_text(text: &str) -> Result<Recording, String> {
    let mut recording = Recording::new(SourceKind::PySpy, "py-spy dump", Clock::Order);
    let mut frames: Option<Vec<FrameId>> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Process ") {
            close(&mut recording, frames.take());
            let (pid, command) = rest.split_once(':').unwrap_or((rest, ""));
            recording.process.pid = recording.process.pid.or_else(|| pid.trim().parse().ok());
            recording.facts.push(("command".to_owned(), command.trim().to_owned()));
        } else if line.starts_with("Python v") {
            recording.facts.push(("python".to_owned(), line.trim().to_owned()));
        } else if let Some(thread) = line.strip_prefix("Thread ") {
            close(&mut recording, frames.replace(Vec::new()));
            recording.facts.push(("thread".to_owned(), thread.trim().to_owned()));
        } else if let Some(frames) = &mut frames {
            let indent = line.len() - line.trim_start().len();
            if indent == FRAME_INDENT {
                frames.push(parse_frame(&mut recording, line));
            }
        }
    }
    close(&mut recording, frames);
    if recording.stack_counts.is_empty() {
        return Err(t!("the dump holds no stack").to_owned());
    }
    Ok(recording)
}

fn close(recording: &mut Recording, frames: Option<Vec<FrameId>>) {
    if let Some(frames) = frames.filter(|frames| !frames.is_empty()) {
        let stack = recording.stacks.intern_innermost_first(&frames);
        recording.stack_counts.push((stack, 1));
        recording.events += 1;
    }
}

#[derive(Deserialize)]
struct JsonThread {
    pid: Option<u64>,
    thread_name: Option<String>,
    os_thread_id: Option<u64>,
    #[serde(default)]
    active: bool,
    #[serde(default)]
    owns_gil: bool,
    #[serde(default)]
    frames: Vec<JsonFrame>,
}

#[derive(Deserialize)]
struct JsonFrame {
    #[serde(default)]
    name: String,
    filename: Option<String>,
    line: Option<u32>,
}

/// Reads a dump as JSON.
pub(super) fn read_json(text: &str) -> Result<Recording, String> {
    let threads: Vec<JsonThread> = serde_json::from_str(text)
        .map_err(|error| t!("the JSON is damaged at line {line} ({error})", line = error.line(), error))?;
    let mut recording = Recording::new(SourceKind::PySpy, "py-spy dump JSON", Clock::Order);
    for thread in threads {
        recording.process.pid = recording.process.pid.or(thread.pid);
        let state = match (thread.active, thread.owns_gil) {
            (true, true) => "active+gil",
            (true, false) => "active",
            (false, _) => "idle",
        };
        let id = thread.os_thread_id.unwrap_or_default();
        let name = thread.thread_name.unwrap_or_default();
        recording.facts.push(("thread".to_owned(), format!("{id} ({state}): \"{name}\"")));
        let frames = thread
            .frames
            .iter()
            .map(|one| {
                let file = one.filename.as_deref().unwrap_or_default();
                frame(&mut recording, &one.name, file, one.line.unwrap_or(0))
            })
            .collect();
        close(&mut recording, Some(frames));
    }
    if recording.stack_counts.is_empty() {
        return Err(t!("the dump holds no stack").to_owned());
    }
    Ok(recording)
}
