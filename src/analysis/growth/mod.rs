//! Where memory grows: floor and peak of each step by curve, and the intervals that the window suggests and reports
//! default to.

mod curves;
mod trend;

pub use curves::{Beat, DRIVER_MINUS_RESERVED};
pub(crate) use curves::{Curve, beats, curves_of, driver_minus_reserved};
pub(crate) use trend::median;
pub use trend::{Shape, Trend, trend};

use super::traits::traits_of_stacks;
use super::{BeatUnit, Index, Rhythm, Selection};
use crate::model::{
    MarkerKind, ProcessId, Quantity, Session, SourceId, TimeRange, format_bytes, format_delta_bytes, time,
};
use crate::text::{say, t};

/// Windows into which a curve is cut when nothing tells its steps.
const MAX_WINDOWS: usize = 60;
/// Beats from which on the last one, which may be cut or in flight, is left out of a suggestion.
const LEAVE_LAST_FROM: usize = 5;

/// An interval in which memory grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Suggestion {
    /// When.
    pub range: TimeRange,
    /// By how much the floor grew.
    pub bytes: i64,
    /// In words: `steps 4 to 19, +17.3 MiB per step`.
    pub label: String,
}

/// How one curve grows.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// What the curve shows.
    pub quantity: Quantity,
    /// The process it belongs to.
    pub process: Option<ProcessId>,
    /// The file it comes from, when it belongs to no process.
    pub source: Option<SourceId>,
    /// The beats it was read by.
    pub rhythm: Rhythm,
    /// Floor and peak of each beat.
    pub beats: Vec<Beat>,
    /// What stays after each beat.
    pub floor: Trend,
    /// What each beat needs at most.
    pub peak: Trend,
    /// The card's memory, when a file tells it.
    pub capacity_bytes: Option<u64>,
}

impl Growth {
    /// The growth of the floor, or where that is level, of the peak.
    pub fn leading(&self) -> &Trend {
        if !self.floor.shape.is_growth() && self.peak.shape.is_growth() { &self.peak } else { &self.floor }
    }

    /// Where it grows, along the borders of beats.
    pub fn range(&self) -> TimeRange {
        let trend = self.leading();
        let beat_at = |index: usize| self.beats.get(index).map_or(0, |beat| beat.beat);
        let (from, to) = (beat_at(trend.from), beat_at(trend.to));
        let start_ns = self.rhythm.range_of(from).start_ns;
        // A floor tells what earlier beats left behind: the beat of the last floor adds nothing to it.
        let is_floor = std::ptr::eq(trend, &self.floor);
        let end = self.rhythm.range_of(to);
        let leave_out = is_floor && self.beats.len() >= LEAVE_LAST_FROM && to > from;
        TimeRange { start_ns, end_ns: if leave_out { end.start_ns } else { end.end_ns } }
    }

    /// From its first beat to its last.
    pub fn span(&self) -> Option<TimeRange> {
        let (first, last) = (self.beats.first()?, self.beats.last()?);
        Some(self.rhythm.range_of(first.beat).union(self.rhythm.range_of(last.beat)))
    }

    /// Growth in bytes for each beat.
    pub fn per_beat_bytes(&self) -> i64 {
        self.leading().per_beat_bytes.round() as i64
    }

    /// `+17.3 MiB per step`, `+3.1 MiB per minute`; of a run that is shorter than the unit, `+1.2 GiB in 24.0 ms`.
    pub fn rate(&self) -> String {
        let trend = self.leading();
        let per_beat = trend.per_beat_bytes;
        if self.rhythm.unit == BeatUnit::Window {
            let beat_ns = self.rhythm.range_of(0).duration_ns().max(1) as f64;
            let per = |unit_ns: f64| format_delta_bytes((per_beat * unit_ns / beat_ns) as i64);
            let run_ns = beat_ns * self.rhythm.len() as f64;
            return match run_ns {
                60e9.. => t!("{bytes} per minute", bytes = per(60e9)),
                1e9.. => t!("{bytes} per second", bytes = per(1e9)),
                _ => t!(
                    "{bytes} in {duration}",
                    bytes = per(run_ns),
                    duration = time::format_duration(run_ns as i64)
                ),
            };
        }
        t!(
            "{bytes} per {unit}",
            bytes = format_delta_bytes(per_beat.round() as i64),
            unit = self.rhythm.unit.label()
        )
    }

    /// The beat's number at which the curve reaches the card's memory.
    pub fn full_at(&self) -> Option<i64> {
        let capacity = i64::try_from(self.capacity_bytes?).ok()?;
        let per_beat = self.leading().per_beat_bytes;
        let last = self.beats.last()?;
        if !self.leading().shape.is_growth() || per_beat < 1.0 || last.peak_bytes >= capacity {
            return None;
        }
        let beats = ((capacity - last.peak_bytes) as f64 / per_beat).ceil();
        (beats < 1e12).then(|| self.rhythm.number(last.beat).saturating_add(beats as i64))
    }

    /// What is said of it: `allocated: ramp, +17.3 MiB per step, reaches the card's 80.0 GiB at about step 4,710`.
    pub fn describe(&self) -> String {
        let trend = self.leading();
        let mut text =
            t!("{quantity}: {shape}", quantity = say(self.quantity.label()), shape = trend.shape.label());
        if let Shape::Staircase(Some(period)) = trend.shape {
            text += &t!(" ({every})", every = self.rhythm.every(period));
        }
        if trend.shape.is_growth() {
            text += &t!(", {rate}", rate = self.rate());
            if let (Some(capacity), Some(number)) = (self.capacity_bytes, self.full_at()) {
                let when = self.rhythm.unit.numbered(number);
                let capacity = format_bytes(capacity);
                if self.rhythm.unit != BeatUnit::Window {
                    text += &t!(", reaches the card's {capacity} at about {when}", capacity, when);
                }
            }
        }
        text
    }

    /// `steps 4 to 19`.
    fn span_label(&self) -> String {
        let range = self.range();
        let first = self.rhythm.beat_at(range.start_ns).max(0) as usize;
        let last = self.rhythm.beat_at(range.end_ns.saturating_sub(1)).max(0) as usize;
        self.rhythm.unit.from_to(self.rhythm.number(first), self.rhythm.number(last))
    }
}

/// The rhythm of a process of a session.
pub fn rhythm_of(index: &Index, process: ProcessId) -> Option<Rhythm> {
    let process = index.session.process(process);
    Rhythm::of_process(process, &traits_of_stacks(&process.strings, &process.stacks, &index.user_code))
}

/// How each of the selected curves grows: allocated, reserved, driver, driver − reserved.
pub fn growths(index: &Index, selection: Selection) -> Vec<Growth> {
    let session = &index.session;
    let rhythms: Vec<(ProcessId, Option<Rhythm>)> =
        selection.processes(session).map(|id| (id, rhythm_of(index, id))).collect();
    let mut curves = Vec::new();
    for quantity in [Quantity::Allocated, Quantity::Reserved, Quantity::DriverUsed, Quantity::ProcessUsed] {
        curves.extend(curves_of(session, selection, &quantity));
    }
    curves.extend(driver_minus_reserved(session, selection));
    let capacity_bytes = capacity(session);
    curves.iter().filter_map(|curve| growth_of(curve, &rhythms, capacity_bytes)).collect()
}

fn growth_of(
    curve: &Curve,
    rhythms: &[(ProcessId, Option<Rhythm>)],
    capacity_bytes: Option<u64>,
) -> Option<Growth> {
    let span = curve.series.span()?;
    let of_process = rhythms
        .iter()
        .filter(|(id, _)| curve.process.is_none_or(|process| process == *id))
        .find_map(|(_, rhythm)| rhythm.clone())
        .filter(|rhythm| span.overlaps(TimeRange::new(rhythm.starts_ns[0], rhythm.end_ns)));
    let by_windows = || {
        let range = after_warm_up(rhythms, span).unwrap_or(span);
        Rhythm::of_windows(range, curve.series.rows_in(range).len().min(MAX_WINDOWS))
    };
    let read = |rhythm: Rhythm| {
        let beats = beats(&curve.series, &rhythm);
        (rhythm, beats)
    };
    // Samples that are rarer than steps can't tell steps apart.
    let (rhythm, beats) = of_process
        .map(read)
        .filter(|(rhythm, beats)| {
            let samples = curve.series.rows_in(TimeRange::new(rhythm.starts_ns[0], rhythm.end_ns)).len();
            beats.len() >= 2 && (curve.series.is_step || samples >= rhythm.len())
        })
        .or_else(|| by_windows().map(read))?;
    let numbers: Vec<i64> = beats.iter().map(|beat| rhythm.number(beat.beat)).collect();
    let floors: Vec<i64> = beats.iter().map(|beat| beat.floor_bytes).collect();
    let peaks: Vec<i64> = beats.iter().map(|beat| beat.peak_bytes).collect();
    (!beats.is_empty()).then(|| Growth {
        quantity: curve.series.quantity.clone(),
        process: curve.process,
        source: curve.source,
        floor: trend(&floors, &numbers),
        peak: trend(&peaks, &numbers),
        rhythm,
        beats,
        capacity_bytes,
    })
}

/// From the third beat of the processes until their end: before and after, contexts are made and torn down.
fn after_warm_up(rhythms: &[(ProcessId, Option<Rhythm>)], span: TimeRange) -> Option<TimeRange> {
    let rhythms: Vec<&Rhythm> = rhythms.iter().filter_map(|(_, rhythm)| rhythm.as_ref()).collect();
    let start_ns = rhythms.iter().map(|rhythm| rhythm.range_of(2.min(rhythm.len() - 1)).start_ns).max()?;
    let end_ns = rhythms.iter().map(|rhythm| rhythm.end_ns).max()?;
    let (start_ns, end_ns) = (start_ns.max(span.start_ns), end_ns.min(span.end_ns));
    (start_ns < end_ns).then_some(TimeRange { start_ns, end_ns })
}

/// The memory of the card as files tell it: the smallest, when they name several.
fn capacity(session: &Session) -> Option<u64> {
    let of_curves = session
        .curves()
        .filter(|(_, _, series, _)| series.quantity == Quantity::Capacity)
        .filter_map(|(_, _, series, _)| series.bytes.iter().copied().max())
        .filter_map(|bytes| u64::try_from(bytes).ok());
    let of_devices = session
        .sources
        .iter()
        .flat_map(|source| source.recording.devices.iter())
        .filter(|info| !info.device.is_host())
        .filter_map(|info| info.total_bytes);
    let markers =
        session.sources.iter().flat_map(|source| source.recording.markers.iter()).filter_map(|marker| {
            match marker.kind {
                MarkerKind::OutOfMemory { capacity_bytes, .. } => capacity_bytes,
                _ => None,
            }
        });
    of_curves.chain(of_devices).chain(markers).filter(|&bytes| bytes > 0).min()
}

/// The interval that is looked at unless the user says otherwise: where memory grows the most, else the whole run.
pub fn suggested(index: &Index, selection: Selection) -> Suggestion {
    suggest(index, selection).into_iter().next().unwrap_or_else(|| Suggestion {
        range: index.session.span,
        bytes: 0,
        label: t!("the whole run").to_owned(),
    })
}

/// The intervals where memory grows, the most telling first. Never empty for a session with allocations or curves:
/// when nothing grows, the whole run is suggested and the label says so.
pub fn suggest(index: &Index, selection: Selection) -> Vec<Suggestion> {
    let growths = growths(index, selection);
    // Beside the allocator's own curves, the driver's say something new only by what they don't share.
    let has_allocator = growths.iter().any(|growth| growth.quantity == Quantity::Allocated);
    // What a log tells of another time, or put there by mistake, can't be looked into.
    let recorded: Vec<TimeRange> = selection
        .processes(&index.session)
        .map(|id| index.session.process(id).recorded)
        .filter(|range| range.duration_ns() > 0)
        .collect();
    let mut ranked: Vec<(usize, Suggestion)> = growths
        .iter()
        .filter(|growth| growth.leading().shape.is_growth())
        .filter_map(|growth| {
            let is_floor = growth.floor.shape.is_growth();
            let rank = match (&growth.quantity, is_floor) {
                (Quantity::Allocated, true) => 0,
                (Quantity::Allocated, false) => 1,
                (Quantity::Reserved, true) => 2,
                (Quantity::Other(_), true) => 3,
                (Quantity::DriverUsed | Quantity::ProcessUsed, true) if !has_allocator => 4,
                _ => return None,
            };
            let what = match (&growth.quantity, is_floor) {
                (Quantity::Allocated, true) => String::new(),
                (quantity, true) => t!("{quantity}: ", quantity = say(quantity.label())),
                (quantity, false) => t!("peak of {quantity}: ", quantity = say(quantity.label())),
            };
            let whose = match growth.process {
                Some(id) if index.session.processes.len() > 1 => {
                    t!("{process}, ", process = index.session.process(id).label)
                }
                _ => String::new(),
            };
            let label = t!(
                "{whose}{what}{when}, {rate}",
                whose,
                what,
                when = growth.span_label(),
                rate = growth.rate()
            );
            let bytes = growth.leading().rise_bytes;
            Some((rank, Suggestion { range: growth.range(), bytes, label }))
        })
        .filter(|(_, suggestion)| suggestion.range.duration_ns() > 0)
        .filter(|(_, Suggestion { range, .. })| {
            recorded.is_empty() || recorded.iter().any(|recorded| recorded.overlaps(*range))
        })
        .collect();
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| b.1.bytes.cmp(&a.1.bytes)));
    let mut suggestions: Vec<Suggestion> = ranked.into_iter().map(|(_, suggestion)| suggestion).collect();
    if suggestions.is_empty() {
        suggestions.push(whole_run(index, selection, &growths));
    }
    suggestions
}

fn whole_run(index: &Index, selection: Selection, growths: &[Growth]) -> Suggestion {
    let session = &index.session;
    let range = selection
        .processes(session)
        .map(|id| session.process(id).recorded)
        .filter(|range| range.duration_ns() > 0)
        .reduce(TimeRange::union)
        .unwrap_or(session.span);
    let allocated = growths.iter().find(|growth| growth.quantity == Quantity::Allocated);
    let label = match allocated.map(|growth| growth.floor.shape) {
        Some(Shape::SawTooth) => t!("whole run: memory grows and falls back"),
        Some(Shape::SingleJump(_)) => t!("whole run: memory jumps once and stays level"),
        Some(Shape::WarmUp) => t!("whole run: nothing grows after warm-up"),
        Some(Shape::TooShort) => t!("whole run: too short to tell what grows"),
        Some(_) => t!("whole run: nothing grows"),
        None => t!("whole run"),
    };
    Suggestion { range, bytes: 0, label: label.to_owned() }
}
