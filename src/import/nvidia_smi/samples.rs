//! What all forms of nvidia-smi output have in common: samples by GPU and by process, which become curves.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::import::wall_time::{Stamp, Unwrapper};
use crate::import::{ImportError, Input};
use crate::model::{
    Clock, Device, DeviceInfo, Marker, MarkerKind, Quantity, Recording, Series, SourceKind, StackId,
    TimeRange, time,
};
use crate::text::t;

/// The time between rows of a log that has none, as `dmon` samples by default.
const ASSUMED_INTERVAL_NS: i64 = 1_000_000_000;

/// Bytes of a MiB, which nvidia-smi also calls MB.
pub(super) const MIB: i64 = 1 << 20;

/// Gathers the samples of a log in the order of the file.
pub(super) struct Samples {
    recording: Recording,
    series: BTreeMap<(Quantity, Device, Option<u64>), Series>,
    unwrapper: Unwrapper,
    clock: Option<Clock>,
    now_ns: i64,
    untimed_rows: i64,
    first_ns: Option<i64>,
    last_ns: i64,
    seen_lost: FxHashSet<String>,
}

impl Samples {
    pub(super) fn new(format: &'static str) -> Self {
        Self {
            recording: Recording::new(SourceKind::NvidiaSmi, format, Clock::Order),
            series: BTreeMap::new(),
            unwrapper: Unwrapper::default(),
            clock: None,
            now_ns: 0,
            untimed_rows: 0,
            first_ns: None,
            last_ns: 0,
            seen_lost: FxHashSet::default(),
        }
    }

    /// Sets the time of what follows.
    pub(super) fn set_time(&mut self, stamp: Stamp) {
        // A log keeps to one clock; a stamp of another kind is some other column or line.
        if *self.clock.get_or_insert(stamp.clock) == stamp.clock {
            self.now_ns = self.unwrapper.unwrap(stamp);
            self.saw_time();
        }
    }

    /// Begins the next sample of a log without times.
    pub(super) fn next_untimed(&mut self) {
        if self.clock.is_none() {
            self.now_ns = self.untimed_rows.saturating_mul(ASSUMED_INTERVAL_NS);
            self.untimed_rows += 1;
            self.saw_time();
        }
    }

    fn saw_time(&mut self) {
        self.first_ns = Some(self.first_ns.map_or(self.now_ns, |first| first.min(self.now_ns)));
        self.last_ns = self.last_ns.max(self.now_ns);
    }

    pub(super) fn recording(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Counts a row that was read.
    pub(super) fn count_row(&mut self) {
        self.recording.events += 1;
    }

    /// Counts a row that could not be read.
    pub(super) fn lose_row(&mut self, line: u64) {
        self.recording.lost.events += 1;
        self.recording.lost.first_at.get_or_insert(line);
    }

    /// A figure of a whole GPU.
    pub(super) fn gpu(&mut self, quantity: Quantity, device: Device, bytes: i64) {
        let is_step = quantity == Quantity::Capacity;
        let series = self
            .series
            .entry((quantity.clone(), device, None))
            .or_insert_with(|| Series::new(quantity, device, is_step));
        series.push(self.now_ns, bytes);
    }

    /// What the driver counts for a MIG instance, named by its GPU instance and its compute instance.
    pub(super) fn mig(&mut self, device: Device, gpu_instance: &str, compute_instance: &str, bytes: i64) {
        let label = format!("MIG {}/{} used", gpu_instance.trim(), compute_instance.trim());
        self.gpu(Quantity::InstanceUsed(label), device, bytes);
    }

    /// What the driver counts for a process. A name that is only a token of absence keeps the earlier name.
    pub(super) fn process(&mut self, device: Device, pid: u64, name: &str, bytes: i64) {
        let key = (Quantity::ProcessUsed, device, Some(pid));
        let series =
            self.series.entry(key).or_insert_with(|| Series::new(Quantity::ProcessUsed, device, false));
        series.pid = Some(pid);
        if series.process_name.is_empty() && !is_missing(name) {
            name.clone_into(&mut series.process_name);
        }
        series.push(self.now_ns, bytes);
    }

    /// What the file says of a GPU: the first word on each fact counts.
    pub(super) fn device(&mut self, device: Device, name: &str, uuid: &str, total_bytes: Option<u64>) {
        let devices = &mut self.recording.devices;
        let index = devices.iter().position(|info| info.device == device).unwrap_or_else(|| {
            devices.push(DeviceInfo { device, ..DeviceInfo::default() });
            devices.len() - 1
        });
        let info = &mut devices[index];
        if info.name.is_empty() && !is_missing(name) {
            name.clone_into(&mut info.name);
        }
        if info.uuid.is_empty() && !is_missing(uuid) {
            uuid.clone_into(&mut info.uuid);
        }
        info.total_bytes = info.total_bytes.or(total_bytes);
    }

    /// A line or cell that says that the GPU or the driver failed; each text is marked once.
    pub(super) fn gpu_failed(&mut self, device: Device, text: &str) {
        let text = format!("nvidia-smi: {}", text.trim());
        if self.seen_lost.insert(text.clone()) {
            self.recording.markers.push(Marker {
                time_ns: self.now_ns,
                device,
                kind: MarkerKind::GpuLost,
                text,
                stack: StackId::EMPTY,
            });
        }
    }

    /// The recording; an error when the log held no memory figure at all.
    pub(super) fn finish(mut self, input: &Input, cut: Option<String>) -> Result<Recording, ImportError> {
        if self.series.is_empty() {
            let cause = if self.recording.markers.is_empty() {
                t!("the log has no memory figure: every memory cell is missing")
            } else {
                t!("nvidia-smi could not reach the GPU or its driver, so the log has no memory figure")
            };
            return Err(ImportError::content(cause, input.name()));
        }
        self.mark_processes();
        let mut recording = self.recording;
        recording.clock = self.clock.unwrap_or(Clock::Order);
        recording.series = self.series.into_values().map(in_order_of_time).collect();
        recording.markers.sort_by_key(|marker| marker.time_ns);
        recording.span = self.first_ns.map(|first| TimeRange::new(first, self.last_ns.saturating_add(1)));
        for note in std::mem::take(&mut self.unwrapper.notes) {
            recording.warn("clock-set", note);
        }
        if self.clock.is_none() {
            recording.warn("no-times", t!("the log has no times: one sample a second was assumed"));
        }
        if let Some(interval_ns) = usual_interval(&recording.series) {
            recording.facts.push(("interval".to_owned(), time::format_duration(interval_ns)));
        }
        if let Some(cut) = cut {
            recording.warn("cut", cut);
        }
        if recording.lost.events > 0 {
            let (rows, line) = (recording.lost.events, recording.lost.first_at.unwrap_or_default());
            recording.warn(
                "unread-rows",
                t!("{rows} rows could not be read, the first at line {line}", rows, line),
            );
        }
        Ok(recording)
    }

    /// Marks processes that came after the log began.
    fn mark_processes(&mut self) {
        let Some(first_ns) = self
            .series
            .values()
            .filter(|series| series.quantity == Quantity::ProcessUsed)
            .filter_map(|series| series.times_ns.first().copied())
            .min()
        else {
            return;
        };
        for series in self.series.values() {
            if let (Some(pid), Some(&time_ns)) = (series.pid, series.times_ns.first())
                && time_ns > first_ns
            {
                let name = series.process_name.rsplit(['/', '\\']).next().unwrap_or_default();
                let text = format!("process {pid} {name} opened {}", series.device);
                self.recording.markers.push(Marker {
                    time_ns,
                    device: series.device,
                    kind: MarkerKind::Process,
                    text: text.replace("  ", " "),
                    stack: StackId::EMPTY,
                });
            }
        }
    }
}

/// Points in the order of time; a clock that was set back leaves them otherwise.
fn in_order_of_time(mut series: Series) -> Series {
    if !series.times_ns.is_sorted() {
        let mut points: Vec<(i64, i64)> =
            series.times_ns.iter().copied().zip(series.bytes.iter().copied()).collect();
        points.sort_by_key(|&(time_ns, _)| time_ns);
        (series.times_ns, series.bytes) = points.into_iter().unzip();
    }
    if series.quantity == Quantity::Capacity {
        let level = series.bytes.first().copied();
        if series.bytes.iter().all(|&bytes| Some(bytes) == level) {
            series.times_ns.truncate(1);
            series.bytes.truncate(1);
        }
    }
    series
}

/// The median distance between points of the longest curve.
fn usual_interval(series: &[Series]) -> Option<i64> {
    let longest = series.iter().max_by_key(|series| series.len())?;
    let mut steps: Vec<i64> =
        longest.times_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).copied()
}

/// Words that stand where nvidia-smi and like tools have no figure.
pub(super) fn is_missing(cell: &str) -> bool {
    let word = cell.trim().trim_start_matches('[').trim_end_matches(']');
    ["", "-", "n/a", "not supported", "unknown", "err!", "no data", "not found", "insufficient permissions"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
        || word.starts_with("Not available")
        || is_failure(cell)
}

/// Words in a cell that say that the GPU itself has failed.
pub(super) fn is_failure(cell: &str) -> bool {
    let word = cell.trim().trim_start_matches('[').trim_end_matches(']');
    ["unknown error", "gpu requires reset", "gpu is lost"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}

/// A line, among or instead of figures, that says that nvidia-smi could not reach a GPU or the driver.
pub(super) fn is_failure_line(line: &str) -> bool {
    [
        "Unable to determine the device handle",
        "NVIDIA-SMI has failed",
        "Failed to initialize NVML",
        "No devices were found",
        "GPU is lost",
    ]
    .iter()
    .any(|known| line.contains(known))
}

/// Bytes from a cell such as `3122 MiB`, `3122`; a bare number counts `unit_bytes`.
pub(super) fn parse_cell(cell: &str, unit_bytes: i64) -> Option<i64> {
    let cell = cell.trim();
    if is_missing(cell) {
        return None;
    }
    let bytes = match cell.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => (number * unit_bytes as f64).round() as i64,
        Ok(_) => return None,
        Err(_) => i64::try_from(crate::model::parse_bytes(cell)?).ok()?,
    };
    (bytes < 1 << 60).then_some(bytes)
}
