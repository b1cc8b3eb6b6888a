//! Files of `export_memory_timeline`: bytes by category over time, as levels (`.json`) or as changes (`.raw.json`).

use serde_json::Value;

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::{Clock, Device, Quantity, Recording, Series, SourceKind, TimeRange, format_count};
use crate::text::t;

/// `torch.profiler._memory_profiler.Category` by number.
const CATEGORIES: [&str; 8] = [
    "parameters",
    "optimizer state",
    "inputs",
    "temporary",
    "activations",
    "gradients",
    "autograd detail",
    "unknown",
];

/// The most that is inflated: real files have a few megabytes.
const MAX_BYTES: u64 = 1 << 30;

/// Times from here on are nanoseconds, below they are microseconds: the exporter changed once.
const EARLIEST_NS: i64 = 100_000_000_000_000_000;

/// Times from here on are since 1970, in nanoseconds; below they count from some start.
const EARLIEST_UNIX_NS: i64 = 946_684_800_000_000_000;

/// Reads files of `export_memory_timeline`.
pub struct MemoryTimelineImporter;

impl Importer for MemoryTimelineImporter {
    fn name(&self) -> &'static str {
        "memory timeline"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        // Both forms are lists of lists of numbers; nothing else that can be opened is.
        let text = head.text.trim_start_matches('\u{feff}').trim_start();
        let inner = text.strip_prefix('[').map(str::trim_start).and_then(|text| text.strip_prefix('['));
        inner.is_some_and(|text| {
            let text = text.trim_start();
            let number = text.split([',', ']']).next().unwrap_or_default().trim();
            number.parse::<f64>().is_ok() && text.contains([',', ']'])
        })
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let content = input.read_all(progress, MAX_BYTES)?;
        let bytes = content.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&content.bytes);
        let mut timeline = Timeline::default();
        let cut = match serde_json::from_slice(bytes) {
            Ok(Levels(times, sizes)) => {
                timeline.levels(&times, &sizes);
                content.cut
            }
            Err(_) => timeline.changes(bytes, progress).or(content.cut),
        };
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        if timeline.times.is_empty() {
            return Err(ImportError::content(
                t!("the memory timeline holds no rows that can be read"),
                input.name(),
            ));
        }
        Ok(timeline.recording(cut))
    }
}

/// `[times, sizes]`; each row of sizes is a zero and the level of each category.
#[derive(serde::Deserialize)]
struct Levels(Vec<Value>, Vec<Vec<Value>>);

/// Levels by time, in the order of the file.
#[derive(Default)]
struct Timeline {
    times: Vec<i64>,
    levels: Vec<[i64; CATEGORIES.len()]>,
    events: u64,
    /// Rows that could not be read.
    lost: u64,
    is_of_changes: bool,
}

impl Timeline {
    fn levels(&mut self, times: &[Value], sizes: &[Vec<Value>]) {
        self.events = times.len().max(sizes.len()) as u64;
        self.lost = times.len().abs_diff(sizes.len()) as u64;
        for (time, row) in times.iter().zip(sizes) {
            let Some(time) = whole(time) else {
                self.lost += 1;
                continue;
            };
            let mut levels = [0; CATEGORIES.len()];
            for (level, value) in levels.iter_mut().zip(row.iter().skip(1)) {
                *level = whole(value).unwrap_or(0);
            }
            let time_ns = if time >= EARLIEST_NS { time } else { time.saturating_mul(1000) };
            self.times.push(time_ns);
            self.levels.push(levels);
        }
    }

    /// Rows of `[time_ns, action, bytes, category]`, added up. Returns why the file ended early.
    fn changes(&mut self, bytes: &[u8], progress: &Progress) -> Option<String> {
        self.is_of_changes = true;
        let mut now = [0_i64; CATEGORIES.len()];
        let mut at = memchr::memchr(b'[', bytes).map_or(bytes.len(), |start| start + 1);
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(start) = rest.iter().position(|byte| matches!(byte, b'[' | b']')) else {
                return Some(t!("the file ends at byte {byte} within its rows", byte = bytes.len()));
            };
            if rest[start] == b']' {
                return None;
            }
            let Some(length) = memchr::memchr(b']', &rest[start..]) else {
                return Some(t!("the file ends at byte {byte} within its rows", byte = bytes.len()));
            };
            at += start + length + 1;
            self.events += 1;
            if self.events.is_multiple_of(4096) {
                progress.set_done(at as u64);
                if progress.is_cancelled() {
                    return None;
                }
            }
            match serde_json::from_slice::<(i64, u8, i64, usize)>(&rest[start..=start + length]) {
                Ok((time_ns, action, bytes, category)) => {
                    self.change(&mut now, time_ns, action, bytes, category);
                }
                Err(_) => self.lost += 1,
            }
        }
    }

    fn change(
        &mut self,
        now: &mut [i64; CATEGORIES.len()],
        time_ns: i64,
        action: u8,
        bytes: i64,
        category: usize,
    ) {
        const PREEXISTING: u8 = 1;
        const CREATE: u8 = 2;
        const INCREMENT_VERSION: u8 = 3;
        const DESTROY: u8 = 4;
        let Some(level) = now.get_mut(category) else {
            self.lost += 1;
            return;
        };
        match action {
            PREEXISTING | CREATE => *level = level.saturating_add(bytes.saturating_abs()),
            DESTROY => *level = level.saturating_sub(bytes.saturating_abs()),
            // A write keeps the size, but the tensor may change its category: the rows before and after say so.
            INCREMENT_VERSION => *level = level.saturating_add(bytes),
            _ => {
                self.lost += 1;
                return;
            }
        }
        // What existed before the recording stands before its first event.
        if time_ns >= 0 {
            if self.times.last() == Some(&time_ns) {
                self.levels.pop();
            } else {
                self.times.push(time_ns);
            }
            self.levels.push(*now);
        }
    }

    fn recording(mut self, cut: Option<String>) -> Recording {
        if !self.times.is_sorted() {
            let mut order: Vec<usize> = (0..self.times.len()).collect();
            order.sort_by_key(|&row| self.times[row]);
            self.times = order.iter().map(|&row| self.times[row]).collect();
            self.levels = order.iter().map(|&row| self.levels[row]).collect();
        }
        let first_ns = self.times.first().copied().unwrap_or(0);
        let last_ns = self.times.last().copied().unwrap_or(0);
        let clock = if first_ns >= EARLIEST_UNIX_NS { Clock::Unix } else { Clock::Relative };
        let format = if self.is_of_changes { "memory timeline, raw" } else { "memory timeline" };
        let mut recording = Recording::new(SourceKind::MemoryTimeline, format, clock);
        recording.events = self.events;
        recording.span = Some(TimeRange::new(first_ns, last_ns.saturating_add(1)));
        for (category, name) in CATEGORIES.iter().enumerate() {
            if self.levels.iter().all(|levels| levels[category] == 0) {
                continue;
            }
            let mut series = Series::new(Quantity::Category((*name).to_owned()), Device::default(), true);
            series.times_ns.clone_from(&self.times);
            series.bytes = self.levels.iter().map(|levels| levels[category]).collect();
            recording.series.push(series);
        }
        recording.warn(
            "device-assumed",
            t!("a memory timeline doesn't say of which device it is: it is shown as the first GPU's"),
        );
        if let Some(why) = cut {
            recording.warn("cut", t!("{why}: everything before was read", why));
        }
        if self.lost > 0 {
            recording.lost.events = self.lost;
            recording
                .warn("lost-rows", t!("{count} rows could not be read", count = format_count(self.lost)));
        }
        recording
    }
}

/// A whole number, however it is written.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_f64().filter(|value| value.abs() < 9e18).map(|value| value as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Recording {
        let bytes = text.as_bytes().to_vec();
        let head = Head::new(&bytes);
        assert!(MemoryTimelineImporter.detect(&head), "{text}");
        MemoryTimelineImporter.import(&Input::from_bytes("x", bytes.clone()), &Progress::default()).unwrap()
    }

    #[test]
    fn levels_are_read_in_micro_and_nanoseconds() {
        for time in ["1796104597904584", "1796104597904584000"] {
            let recording = read(&format!(
                "[[{time}, {time}], [[0, 5, 0, 7, 0, 0, 0, 0, 0], [0, 9, 0, 0, 0, 0, 0, 0, 0]]]"
            ));
            assert_eq!(recording.clock, Clock::Unix);
            assert_eq!(recording.span.unwrap().start_ns, 1_796_104_597_904_584_000);
            let names: Vec<&str> = recording.series.iter().map(|series| series.quantity.label()).collect();
            assert_eq!(names, ["parameters", "inputs"]);
            assert_eq!(recording.series[0].bytes, [5, 9]);
        }
    }

    #[test]
    fn changes_add_up() {
        let recording = read(
            "[[-1, 1, 256, 0], [-1, 1, 44, 0], [100, 2, 512, 4], [110, 3, 10, 0], [120, 4, -512, 4], [130, 2, 8, 4]]",
        );
        assert_eq!(recording.clock, Clock::Relative);
        assert_eq!(recording.series[0].bytes, [300, 310, 310, 310]);
        assert_eq!(recording.series[1].bytes, [512, 512, 0, 8]);
        assert_eq!(recording.events, 6);
    }

    #[test]
    fn a_cut_file_keeps_its_rows() {
        let recording = read("[[-1, 1, 256, 0], [100, 2, 512, 4], [110, 4, -5");
        assert_eq!(recording.series[0].bytes, [256]);
        assert!(recording.warnings.iter().any(|warning| warning.code == "cut"));
    }

    #[test]
    fn other_json_is_left_alone() {
        for text in ["[{\"ph\": \"X\"}]", "[[\"a\", 1]]", "[]", "{\"traceEvents\": [[1,2]]}", "[[", "[[1"] {
            assert!(!MemoryTimelineImporter.detect(&Head::new(text.as_bytes())), "{text}");
        }
    }
}
