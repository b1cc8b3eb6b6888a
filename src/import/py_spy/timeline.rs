//! `record -f speedscope` and `-f chrometrace`: stacks over time, from the moment when py-spy began.

use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::frames::{add_slices, frame, frame_words};
use crate::model::{Clock, Lane, LaneId, Recording, SourceKind, StackId, StrId, TimeRange};
use crate::text::t;

#[derive(Deserialize)]
struct Speedscope {
    #[serde(default)]
    profiles: Vec<Profile>,
    #[serde(default)]
    shared: Shared,
}

#[derive(Default, Deserialize)]
struct Shared {
    #[serde(default)]
    frames: Vec<SharedFrame>,
}

#[derive(Deserialize)]
struct SharedFrame {
    #[serde(default)]
    name: String,
    file: Option<String>,
    line: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    start_value: f64,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<f64>,
}

/// Reads sampled profiles, one lane a thread.
pub(super) fn read_speedscope(text: &str) -> Result<Recording, String> {
    let file: Speedscope = serde_json::from_str(text)
        .map_err(|error| t!("the JSON is damaged at line {line} ({error})", line = error.line(), error))?;
    let mut recording = Recording::new(SourceKind::PySpy, "py-spy speedscope", Clock::Relative);
    let mut slices = Vec::new();
    let known: Vec<_> = file
        .shared
        .frames
        .iter()
        .map(|one| {
            let place = one.file.as_deref().unwrap_or_default();
            let line = one.line.unwrap_or(0);
            (
                frame(&mut recording, &one.name, place, line),
                frame_words(&mut recording, &one.name, place, line),
            )
        })
        .collect();
    let mut counts: FxHashMap<StackId, u64> = FxHashMap::default();
    for profile in &file.profiles {
        let lane = add_lane(&mut recording, profile.name.clone());
        let ns = match profile.unit.as_str() {
            "nanoseconds" => 1.0,
            "microseconds" => 1e3,
            "milliseconds" => 1e6,
            _ => 1e9,
        };
        let mut open: Vec<(usize, i64)> = Vec::new();
        let mut now = profile.start_value;
        let mut close = |open: &mut Vec<(usize, i64)>, from: usize, end_ns: i64| {
            for (depth, (index, start_ns)) in open.drain(from..).enumerate() {
                if let Some(&(_, words)) = known.get(index) {
                    let depth = (from + depth).min(usize::from(u16::MAX)) as u16;
                    slices.push((lane, TimeRange::new(start_ns, end_ns), depth, words));
                }
            }
        };
        for (sample, weight) in profile.samples.iter().zip(&profile.weights) {
            let now_ns = (now * ns).round() as i64;
            let common = sample.iter().zip(&open).take_while(|(index, open)| **index == open.0).count();
            close(&mut open, common, now_ns);
            open.extend(sample[common..].iter().map(|&index| (index, now_ns)));
            let mut stack = StackId::EMPTY;
            for &(frame, _) in sample.iter().filter_map(|&index| known.get(index)) {
                stack = recording.stacks.push(stack, frame);
            }
            if !stack.is_empty() {
                *counts.entry(stack).or_default() += 1;
            }
            recording.events += 1;
            now += weight.max(0.0);
        }
        close(&mut open, 0, (now * ns).round() as i64);
    }
    if recording.events == 0 {
        return Err(t!("the profile holds no samples (only sampled profiles are read)").to_owned());
    }
    recording.stack_counts = counts.into_iter().collect();
    recording.stack_counts.sort_unstable_by_key(|&(stack, count)| (std::cmp::Reverse(count), stack));
    add_slices(&mut recording, slices);
    Ok(recording)
}

/// Whether JSON is py-spy's own list of begin and end events, rather than a profiler trace.
pub(super) fn detect_chrome(text: &str) -> bool {
    let start: String = text.chars().take(2_000).filter(|c| !c.is_whitespace()).collect();
    start.contains("\"cat\":\"py-spy\"")
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    name: String,
    #[serde(default)]
    ph: String,
    #[serde(default)]
    pid: u64,
    #[serde(default)]
    tid: u64,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    args: Args,
}

#[derive(Default, Deserialize)]
struct Args {
    filename: Option<String>,
    line: Option<u32>,
}

/// Reads begin and end events, one lane a thread.
pub(super) fn read_chrome(text: &str) -> Result<Recording, String> {
    let mut recording = Recording::new(SourceKind::PySpy, "py-spy chrometrace", Clock::Relative);
    let events: Vec<Event> = match serde_json::from_str(text) {
        Ok(events) => events,
        Err(error) => {
            // A list that was cut still holds the events up to its last whole one.
            let whole = text.rfind("},").map(|at| format!("{}]", &text[..=at]));
            let events = whole.and_then(|whole| serde_json::from_str(&whole).ok());
            let events = events.ok_or_else(|| {
                t!("the JSON is damaged at line {line} ({error})", line = error.line(), error)
            })?;
            recording.warn("cut", t!("the list of events is cut; what came before was read"));
            events
        }
    };
    let mut lanes: FxHashMap<u64, LaneId> = FxHashMap::default();
    let mut open: FxHashMap<u64, Vec<(StrId, i64)>> = FxHashMap::default();
    let mut slices = Vec::new();
    let mut end_ns = 0;
    for event in &events {
        let time_ns = (event.ts * 1e3).round() as i64;
        end_ns = end_ns.max(time_ns);
        recording.events += 1;
        recording.process.pid = recording.process.pid.or(Some(event.pid));
        let lane = match lanes.get(&event.tid) {
            Some(&lane) => lane,
            None => {
                let lane = add_lane(&mut recording, format!("thread {}", event.tid));
                lanes.insert(event.tid, lane);
                lane
            }
        };
        let file = event.args.filename.as_deref().unwrap_or_default();
        let words = frame_words(&mut recording, &event.name, file, event.args.line.unwrap_or(0));
        let stack = open.entry(event.tid).or_default();
        match event.ph.as_str() {
            "B" => stack.push((words, time_ns)),
            // An end closes what it began, and whatever was left open inside.
            "E" => {
                if let Some(at) = stack.iter().rposition(|frame| frame.0 == words) {
                    close(&mut slices, lane, stack, at, time_ns);
                }
            }
            _ => {}
        }
    }
    for (thread, mut stack) in open {
        if let Some(&lane) = lanes.get(&thread) {
            close(&mut slices, lane, &mut stack, 0, end_ns);
        }
    }
    if slices.is_empty() {
        return Err(t!("the list holds no begin and end events").to_owned());
    }
    add_slices(&mut recording, slices);
    Ok(recording)
}

fn close(
    slices: &mut Vec<(LaneId, TimeRange, u16, StrId)>,
    lane: LaneId,
    stack: &mut Vec<(StrId, i64)>,
    from: usize,
    end_ns: i64,
) {
    for (depth, (words, start_ns)) in stack.drain(from..).enumerate() {
        let depth = (from + depth).min(usize::from(u16::MAX)) as u16;
        slices.push((lane, TimeRange::new(start_ns, end_ns), depth, words));
    }
}

/// A new lane; beyond what lane numbers can count, the last one serves.
fn add_lane(recording: &mut Recording, name: String) -> LaneId {
    let index = recording.slices.lanes.len();
    if index <= usize::from(u16::MAX) {
        recording.slices.lanes.push(Lane { name, is_gpu: false });
    }
    LaneId(index.min(usize::from(u16::MAX)) as u16)
}
