//! Goes through a log line by line: times, steps, figures, summaries and errors become a recording.

use std::ops::Range;

use regex::Regex;
use rustc_hash::FxHashMap;

use super::figures::{Figure, find_epoch, find_figures, find_rank, find_step, without_unit};
use crate::import::memory_summary_table::{TableReader, stats};
use crate::import::oom_message;
use crate::import::text::{LogText, lines, without_prefix};
use crate::import::wall_time::{Stamp, Unwrapper, find_elapsed, find_stamp};
use crate::import::{ImportError, Input, Progress};
use crate::model::{
    Annotation, Clock, Device, Marker, MarkerKind, MemorySummary, Quantity, Recording, Series, SourceKind,
    StackId, StrId, TimeRange, format_bytes, format_count, parse_bytes,
};
use crate::text::{say, t};

const SECOND_NS: i64 = 1_000_000_000;
/// How many recognised lines are shown as a preview.
const PREVIEW_LINES: usize = 3;
/// How often the user's wish to stop is looked at, in lines.
const CANCEL_LINES: u64 = 4096;

/// What a line or a table adds. Logs have millions of them, so they hold nothing of their own.
struct Row {
    time_ns: i64,
    line: u64,
    /// The step or epoch that ends here.
    step: StrId,
    rank: Option<u32>,
    device: Device,
    /// Where its figures lie among all.
    figures: Range<u32>,
}

/// Reads a log into a recording.
pub(in crate::import) fn read(
    input: &Input,
    progress: &Progress,
    log: &LogText,
    pattern: Option<&Regex>,
) -> Result<Recording, ImportError> {
    let mut reading = Reading::new(pattern);
    for (number, line) in lines(&log.text) {
        if number % CANCEL_LINES == 0 && progress.is_cancelled() {
            return Err(ImportError::Cancelled { file: input.name() });
        }
        reading.line(number, line);
    }
    reading.finish(log.cut.clone()).map_err(|cause| ImportError::content(cause, input.name()))
}

/// What a row of metrics says beside its figures.
#[derive(Default)]
pub(super) struct RowFacts {
    pub stamp: Option<Stamp>,
    pub step: Option<i64>,
    pub epoch: Option<i64>,
    pub rank: Option<u32>,
    /// How many figures have a guessed unit.
    pub guesses: u64,
}

/// The state while a log is read.
pub(super) struct Reading<'p> {
    pattern: Option<&'p Regex>,
    recording: Recording,
    rows: Vec<Row>,
    /// The figures of all rows: which of `quantities`, and the bytes.
    figures: Vec<(u16, i64)>,
    /// Words that can stand before a figure are few.
    quantities: Vec<Quantity>,
    tables: TableReader,
    /// The rows of the recording's summaries and markers.
    summary_rows: Vec<usize>,
    marker_rows: Vec<usize>,
    clock: Option<Clock>,
    unwrapper: Unwrapper,
    /// Added to times that start anew, as a progress bar's do in each epoch.
    restart_ns: i64,
    now_ns: i64,
    has_fractions: bool,
    guesses: u64,
    figure_lines: u64,
    words: Vec<String>,
    /// The columns of a table whose header names `GPU_mem`: where that one stands.
    gpu_mem_column: Option<usize>,
}

impl<'p> Reading<'p> {
    pub(super) fn new(pattern: Option<&'p Regex>) -> Self {
        Self {
            pattern,
            recording: Recording::new(SourceKind::TrainingLog, "training log", Clock::Order),
            rows: Vec::new(),
            figures: Vec::new(),
            quantities: Vec::new(),
            tables: TableReader::default(),
            summary_rows: Vec::new(),
            marker_rows: Vec::new(),
            clock: None,
            unwrapper: Unwrapper::default(),
            restart_ns: 0,
            now_ns: 0,
            has_fractions: false,
            guesses: 0,
            figure_lines: 0,
            words: Vec::new(),
            gpu_mem_column: None,
        }
    }

    fn line(&mut self, number: u64, line: &str) {
        self.recording.events += 1;
        let (is_table, summary) = self.tables.line(number, line);
        if let Some(summary) = summary {
            self.summary(summary);
        }
        if is_table {
            return;
        }
        self.take_time(line);
        if let Some(summary) = stats(number, line) {
            self.summary(summary);
        } else if let Some(message) = oom_message::parse(line) {
            self.out_of_memory(number, message);
        } else {
            self.figures(number, without_prefix(line), line);
        }
    }

    fn take_time(&mut self, line: &str) {
        let elapsed = || find_elapsed(line).map(|ns| Stamp { ns, clock: Clock::Relative });
        let stamp = match self.clock {
            Some(Clock::Relative) => elapsed(),
            Some(_) => find_stamp(line),
            // A progress bar's elapsed time looks like a time of day.
            None => elapsed().or_else(|| find_stamp(line)),
        };
        if let Some(stamp) = stamp {
            self.set_time(stamp);
        }
    }

    fn set_time(&mut self, stamp: Stamp) {
        if *self.clock.get_or_insert(stamp.clock) != stamp.clock {
            return;
        }
        self.has_fractions |= stamp.ns % SECOND_NS != 0;
        let mut time_ns = self.unwrapper.unwrap(stamp).saturating_add(self.restart_ns);
        if stamp.clock == Clock::Relative && time_ns < self.now_ns {
            self.restart_ns = self.restart_ns.saturating_add(self.now_ns.saturating_sub(time_ns));
            time_ns = self.now_ns;
        }
        self.now_ns = time_ns;
    }

    fn row(&mut self, line: u64, device: Device) -> &mut Row {
        let time_ns =
            if self.clock.is_some() { self.now_ns } else { (self.rows.len() as i64 + 1) * SECOND_NS };
        let end = self.figures.len() as u32;
        self.rows.push(Row { time_ns, line, step: StrId::EMPTY, rank: None, device, figures: end..end });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Adds a figure to the last row.
    fn figure(&mut self, quantity: &Quantity, bytes: i64) {
        let index = self.index_of(quantity);
        self.figures.push((index, bytes));
        if let Some(row) = self.rows.last_mut() {
            row.figures.end += 1;
        }
    }

    fn index_of(&mut self, quantity: &Quantity) -> u16 {
        let known = self.quantities.iter().position(|known| known == quantity);
        known.unwrap_or_else(|| {
            self.quantities.push(quantity.clone());
            self.quantities.len() - 1
        }) as u16
    }

    /// Adds those figures to the last row that are there.
    fn known_figures(&mut self, figures: &[(Quantity, Option<u64>)]) {
        for (quantity, bytes) in figures {
            if let Some(bytes) = bytes.and_then(|bytes| i64::try_from(bytes).ok()) {
                self.figure(quantity, bytes);
            }
        }
    }

    fn step_name(&mut self, step: Option<i64>, epoch: Option<i64>) -> StrId {
        match (step, epoch) {
            (Some(step), _) => self.recording.strings.intern(&format!("step#{step}")),
            (None, Some(epoch)) => self.recording.strings.intern(&format!("epoch#{epoch}")),
            (None, None) => StrId::EMPTY,
        }
    }

    fn figures(&mut self, number: u64, line: &str, whole: &str) {
        let figures = match self.pattern {
            Some(pattern) => by_pattern(pattern, line),
            None => self.table_figure(line).unwrap_or_else(|| find_figures(line)),
        };
        if figures.is_empty() {
            return;
        }
        self.figure_lines += 1;
        self.guesses += figures.iter().filter(|figure| figure.is_guess).count() as u64;
        for figure in &figures {
            if !self.words.contains(&figure.word) && self.words.len() < 16 {
                self.words.push(figure.word.clone());
            }
        }
        let step =
            self.pattern.and_then(|pattern| step_by_pattern(pattern, line)).or_else(|| find_step(line));
        if self.figure_lines as usize <= PREVIEW_LINES {
            let mut parts: Vec<String> =
                step.map(|step| t!("step {number}", number = step)).into_iter().collect();
            parts.extend(figures.iter().map(|figure| {
                format!("{} {}", say(figure.quantity.label()), format_bytes(figure.bytes.unsigned_abs()))
            }));
            self.recording.facts.push((
                "recognised".to_owned(),
                t!("line {number}: {figures}", number, figures = parts.join(t!(", "))),
            ));
        }
        // A collector's prefix may be what names the rank.
        let rank = find_rank(whole);
        let step = self.step_name(step, find_epoch(line));
        let row = self.row(number, Device::default());
        (row.step, row.rank) = (step, rank);
        let first = self.figures.len();
        for figure in &figures {
            let index = self.index_of(&figure.quantity);
            if !self.figures[first..].iter().any(|&(known, _)| known == index) {
                self.figure(&figure.quantity, figure.bytes);
            }
        }
    }

    /// A row of a table whose header has a column `GPU_mem`, which counts reserved memory.
    fn table_figure(&mut self, line: &str) -> Option<Vec<Figure>> {
        if let Some(column) = line.split_whitespace().position(|word| word == "GPU_mem") {
            self.gpu_mem_column = Some(column);
            return Some(Vec::new());
        }
        let cell = line.split_whitespace().nth(self.gpu_mem_column?)?;
        let bytes = cell.ends_with(['G', 'M']).then(|| parse_bytes(cell)).flatten()?;
        Some(vec![Figure {
            quantity: Quantity::Reserved,
            word: "GPU_mem".to_owned(),
            bytes: i64::try_from(bytes).ok()?,
            is_strong: true,
            is_guess: false,
        }])
    }

    /// A row of metrics; one without figures only tells the time.
    pub(super) fn metrics(&mut self, line: u64, facts: &RowFacts, figures: Vec<(Device, Quantity, i64)>) {
        self.recording.events += 1;
        if let Some(stamp) = facts.stamp {
            self.set_time(stamp);
        }
        self.guesses += facts.guesses;
        self.figure_lines += u64::from(!figures.is_empty());
        for (device, quantity, bytes) in figures {
            let last = self.rows.last().filter(|row| row.line == line).map(|row| row.device);
            if last != Some(device) {
                // One row of a line names its step, whatever the number of devices.
                let step =
                    if last.is_none() { self.step_name(facts.step, facts.epoch) } else { StrId::EMPTY };
                let row = self.row(line, device);
                (row.step, row.rank) = (step, facts.rank);
            }
            self.figure(&quantity, bytes);
        }
    }

    fn summary(&mut self, summary: MemorySummary) {
        let figures = [
            (Quantity::Allocated, summary.allocated_bytes),
            (Quantity::Active, summary.active_bytes),
            (Quantity::Requested, summary.requested_bytes),
            (Quantity::Reserved, summary.reserved_bytes),
            (Quantity::InactiveSplit, summary.inactive_split_bytes),
            (Quantity::PeakAllocated, summary.peak_allocated_bytes),
            (Quantity::PeakReserved, summary.peak_reserved_bytes),
        ];
        self.row(summary.line, summary.device);
        self.known_figures(&figures);
        self.summary_rows.push(self.rows.len() - 1);
        self.recording.summaries.push(summary);
    }

    fn out_of_memory(&mut self, number: u64, message: oom_message::OomMessage) {
        // A traceback and a logger often print the same message twice.
        if self.recording.markers.last().is_some_and(|marker| marker.text == message.text) {
            return;
        }
        let time_ns = self.row(number, message.device).time_ns;
        if let MarkerKind::OutOfMemory { allocated_bytes, reserved_bytes, .. } = &message.kind {
            self.known_figures(&[
                (Quantity::Allocated, *allocated_bytes),
                (Quantity::Reserved, *reserved_bytes),
            ]);
        }
        self.marker_rows.push(self.rows.len() - 1);
        self.recording.markers.push(Marker {
            time_ns,
            device: message.device,
            kind: message.kind,
            text: message.text,
            stack: StackId::EMPTY,
        });
    }

    /// The recording; the cause in words when there are no figures.
    pub(super) fn finish(mut self, cut: Option<String>) -> Result<Recording, String> {
        if let Some(summary) = self.tables.finish() {
            self.summary(summary);
        }
        if self.rows.is_empty() {
            return Err(match self.pattern {
                Some(_) => t!("no line has what the pattern looks for").to_owned(),
                None => t!("the log has no memory figures").to_owned(),
            });
        }
        let spread = matches!(self.clock, Some(Clock::LocalWall | Clock::LocalTimeOfDay | Clock::Unix))
            && !self.has_fractions;
        if spread {
            spread_within_seconds(&mut self.rows);
            let text = "lines of one second are spread evenly over it".to_owned();
            self.recording.facts.push(("whole seconds".to_owned(), text));
        }
        let is_timed = self.clock.is_some();
        for (summary, &row) in self.recording.summaries.iter_mut().zip(&self.summary_rows) {
            summary.time_ns = is_timed.then_some(self.rows[row].time_ns);
        }
        for (marker, &row) in self.recording.markers.iter_mut().zip(&self.marker_rows) {
            marker.time_ns = self.rows[row].time_ns;
        }
        self.rows.sort_by_key(|row| (row.time_ns, row.line));
        let mut recording = self.recording;
        if self.figure_lines == 0 && !recording.summaries.is_empty() {
            recording.kind = SourceKind::MemorySummary;
            recording.format = "memory summary";
        }
        recording.clock = self.clock.unwrap_or(Clock::Order);
        let first_ns = self.rows.first().map_or(0, |row| row.time_ns);
        let last_ns = self.rows.last().map_or(0, |row| row.time_ns);
        recording.span = Some(TimeRange::new(first_ns, last_ns.saturating_add(1)));
        add_steps(&mut recording, &self.rows);
        recording.series =
            series_of(&self.rows, &self.figures, &self.quantities, recording.process.rank.is_none());

        if let Some(pattern) = self.pattern {
            recording.facts.insert(0, ("pattern".to_owned(), pattern.as_str().to_owned()));
        } else if !self.words.is_empty() {
            recording.facts.insert(0, ("pattern".to_owned(), self.words.join(", ")));
        }
        for note in self.unwrapper.notes {
            recording.warn("clock-set", note);
        }
        if self.guesses > 0 {
            let text = t!(
                "{count} figures have no unit: those from 1,000,000 were taken as bytes, smaller ones as MiB, or GiB below 100 with decimals",
                count = format_count(self.guesses)
            );
            recording.warn("guessed-unit", text);
        }
        if recording.series.iter().any(|series| matches!(series.quantity, Quantity::Other(_))) {
            recording.warn(
                "unnamed-figure",
                t!("some figures don't say whether they are allocated or reserved memory; they keep the log's own word"),
            );
        }
        if let Some(cut) = cut {
            recording.warn("cut", cut);
        }
        Ok(recording)
    }
}

/// Lines that share a whole second are spread over it, in their order, so that each keeps a time of its own.
fn spread_within_seconds(rows: &mut [Row]) {
    let mut start = 0;
    while start < rows.len() {
        let time_ns = rows[start].time_ns;
        let count = rows[start..].iter().take_while(|row| row.time_ns == time_ns).count();
        for (nth, row) in rows[start..start + count].iter_mut().enumerate() {
            row.time_ns = time_ns.saturating_add(SECOND_NS * nth as i64 / count as i64);
        }
        start += count;
    }
}

/// Steps run from the line before to their own line.
fn add_steps(recording: &mut Recording, rows: &[Row]) {
    let mut before_ns = None;
    let mut ranks: Vec<u32> = rows.iter().filter_map(|row| row.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if let [rank] = ranks[..] {
        recording.process.rank = Some(rank);
    }
    for row in rows.iter().filter(|row| !row.step.is_empty()) {
        let start_ns = before_ns.unwrap_or(row.time_ns);
        let range = TimeRange::new(start_ns, row.time_ns);
        recording.annotations.push(Annotation { name: row.step, range });
        before_ns = Some(row.time_ns);
    }
}

/// The curves of all rows; one a rank where they may differ.
fn series_of(rows: &[Row], figures: &[(u16, i64)], quantities: &[Quantity], by_rank: bool) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let mut places: FxHashMap<(u16, Device, Option<u32>), usize> = FxHashMap::default();
    for row in rows {
        let rank = row.rank.filter(|_| by_rank);
        for &(quantity, bytes) in &figures[row.figures.start as usize..row.figures.end as usize] {
            let place = *places.entry((quantity, row.device, rank)).or_insert_with(|| {
                let mut series = Series::new(quantities[usize::from(quantity)].clone(), row.device, false);
                series.process_name = rank.map(|rank| format!("rank {rank}")).unwrap_or_default();
                all.push(series);
                all.len() - 1
            });
            all[place].push(row.time_ns, bytes);
        }
    }
    all
}

/// The step that the user's own pattern finds, in a group named `step`.
fn step_by_pattern(pattern: &Regex, line: &str) -> Option<i64> {
    pattern.captures(line)?.name("step")?.as_str().trim().parse().ok()
}

/// What the user's own pattern finds: groups named `allocated`, `reserved`, `max_allocated`, `max_reserved` or `mem`;
/// without names its first group is allocated memory.
fn by_pattern(pattern: &Regex, line: &str) -> Vec<Figure> {
    let Some(found) = pattern.captures(line) else { return Vec::new() };
    let named = [
        ("allocated", Quantity::Allocated),
        ("reserved", Quantity::Reserved),
        ("max_allocated", Quantity::PeakAllocated),
        ("max_reserved", Quantity::PeakReserved),
        ("mem", Quantity::Other("mem".to_owned())),
    ];
    let figure = |word: &str, quantity: Quantity, text: &str| {
        let text = text.trim();
        let (bytes, is_guess) = if text.ends_with(|c: char| c.is_ascii_alphabetic()) {
            (i64::try_from(parse_bytes(text)?).ok()?, false)
        } else {
            without_unit(text, None, true)?
        };
        Some(Figure { quantity, word: word.to_owned(), bytes, is_strong: true, is_guess })
    };
    let mut figures: Vec<Figure> = named
        .into_iter()
        .filter_map(|(name, quantity)| figure(name, quantity, found.name(name)?.as_str()))
        .collect();
    let has_names = pattern.capture_names().flatten().any(|name| name != "step");
    let unnamed = pattern.capture_names().skip(1).position(|name| name.is_none());
    if !has_names && let Some(group) = found.get(unnamed.map_or(0, |at| at + 1)) {
        figures.extend(figure("allocated", Quantity::Allocated, group.as_str()));
    }
    figures
}
