//! Where logs lie on Unix time: their zone, their date, or their place where they have no clock at all.
//!
//! Pure functions of a [`Reference`] (what traces and snapshots know, on Unix time) and of the logs.

use super::fit::{self, Buckets, Fit, Lags, is_comparable, is_drivers};
use super::{level, retime};
use crate::model::{
    Alignment, AlignmentMethod, Clock, Device, Process, Quantity, Recording, Series, Step, TimeRange, time,
};
use crate::text::{say, t};

const SECOND_NS: i64 = 1_000_000_000;
const MINUTE_NS: i64 = 60 * SECOND_NS;
const DAY_NS: i64 = 24 * 60 * MINUTE_NS;
/// Zones go in quarters of an hour,
const QUARTER_NS: i64 = 15 * MINUTE_NS;
/// from UTC−12 (in quarters)
const FIRST_ZONE: i64 = -12 * 4;
/// to UTC+14.
const LAST_ZONE: i64 = 14 * 4;
/// Zones off the full hour that are in use, in quarters; any other such offset needs strong evidence.
const ODD_ZONES: [i64; 13] = [-38, -14, -10, 14, 18, 22, 23, 26, 35, 38, 42, 51, 55];
/// Logs give whole seconds: spans that miss each other by less still meet.
const SPAN_SLACK_NS: i64 = 2 * SECOND_NS;
/// A drift can only be told over this long.
const DRIFT_SPAN_NS: i64 = 10 * MINUTE_NS;
/// The name of the fact by which an importer says that a log gives whole seconds only.
const WHOLE_SECONDS: &str = "whole seconds";
/// A zone found with this confidence is a hint for the other logs.
const HINT_CONFIDENCE: f32 = 0.6;

/// A process on Unix time, as its traces and snapshots tell it.
pub struct RefProcess<'a> {
    /// Its rank.
    pub rank: Option<u32>,
    /// Its curves.
    pub series: &'a [Series],
    /// Its steps.
    pub steps: &'a [Step],
    /// Whether the curves cover the whole run, so that it held nothing outside of them.
    pub covers_run: bool,
}

impl RefProcess<'_> {
    /// Whether a log may be this process's, by the ranks that both name.
    pub(super) fn may_have_written(&self, log: &Recording) -> bool {
        self.rank.is_none() || log.process.rank.is_none() || self.rank == log.process.rank
    }
}

/// What logs are placed against.
pub struct Reference<'a> {
    processes: Vec<RefProcess<'a>>,
    curves: Vec<RefCurve<'a>>,
    /// When something was recorded, in order and apart: several runs may lie hours from each other.
    recorded: Vec<TimeRange>,
    span: Option<TimeRange>,
}

struct RefCurve<'a> {
    series: &'a Series,
    process: usize,
    buckets: Buckets,
}

impl<'a> Reference<'a> {
    /// From processes and the spans of everything whose times are Unix times.
    pub fn new(processes: Vec<RefProcess<'a>>, spans: impl IntoIterator<Item = TimeRange>) -> Self {
        let curves = processes
            .iter()
            .enumerate()
            .flat_map(|(index, process)| process.series.iter().map(move |series| (index, series)))
            .filter(|(_, series)| {
                !series.device.is_host()
                    && matches!(series.quantity, Quantity::Allocated | Quantity::Reserved)
            })
            .filter_map(|(process, series)| {
                Some(RefCurve { series, process, buckets: Buckets::new(series)? })
            })
            .collect();
        let recorded = merged(spans.into_iter().collect());
        let span = recorded.iter().copied().reduce(TimeRange::union);
        Self { processes, curves, recorded, span }
    }

    /// From the processes of a session.
    pub fn from_processes(processes: &'a [Process], spans: impl IntoIterator<Item = TimeRange>) -> Self {
        let of_process = |process: &'a Process| RefProcess {
            rank: process.rank,
            series: &process.series,
            steps: &process.steps,
            covers_run: process.has_snapshot,
        };
        Self::new(processes.iter().map(of_process).collect(), spans)
    }

    pub(super) fn processes(&self) -> &[RefProcess<'a>] {
        &self.processes
    }

    pub(super) fn span(&self) -> Option<TimeRange> {
        self.span
    }

    /// The best fit of a log's curves with curves here at an offset. `process` narrows it to one process.
    pub(super) fn best_fit<'s>(
        &'s self,
        log: &'s Recording,
        offset_ns: i64,
        process: Option<usize>,
    ) -> Option<PairFit<'s>> {
        let mut best: Option<PairFit<'_>> = None;
        for series in &log.series {
            for curve in &self.curves {
                if !is_comparable(&series.quantity, &curve.series.quantity)
                    || process.is_some_and(|process| process != curve.process)
                {
                    continue;
                }
                let covers_run = self.processes[curve.process].covers_run;
                let Some(fit) = fit::fit(series, offset_ns, &curve.buckets, covers_run) else { continue };
                // Equal fits are common among the curves of one log; printed figures say more than sampled ones.
                let weight = |fit: &Fit, quantity: &Quantity| {
                    fit.score + if is_drivers(quantity) { 0.0 } else { 1e-6 }
                };
                let is_better = best
                    .as_ref()
                    .is_none_or(|known| weight(&fit, &series.quantity) > weight(&known.fit, known.quantity));
                if is_better {
                    best = Some(PairFit {
                        fit,
                        quantity: &series.quantity,
                        device: series.device,
                        reference: curve.series.quantity.label(),
                        ref_device: curve.series.device,
                    });
                }
            }
        }
        best
    }

    /// The driver's curve of a log that follows a reserved curve best, for lag and drift.
    fn driver_pair<'s>(&'s self, log: &'s Recording, offset_ns: i64) -> Option<(&'s Series, &'s Buckets)> {
        let pairs = log.series.iter().filter(|series| is_drivers(&series.quantity)).flat_map(|series| {
            self.curves
                .iter()
                .filter(|curve| curve.series.quantity == Quantity::Reserved)
                .map(move |curve| (series, &curve.buckets))
        });
        let fitted = pairs.filter_map(|(series, buckets)| {
            Some((fit::fit(series, offset_ns, buckets, false)?.correlation?, series, buckets))
        });
        fitted.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, series, buckets)| (series, buckets))
    }
}

/// Which curves fit, and how well.
pub(super) struct PairFit<'a> {
    pub fit: Fit,
    pub quantity: &'a Quantity,
    device: Device,
    reference: &'a str,
    ref_device: Device,
}

impl PairFit<'_> {
    fn words(&self) -> String {
        let (quantity, reference) = (say(self.quantity.label()), say(self.reference));
        let (device, other_device) = (self.device, self.ref_device);
        let curves = if device == other_device {
            t!("{quantity} of {device} against {reference}", quantity, device, reference)
        } else {
            t!(
                "{quantity} of {device} against {reference} of {other_device}",
                quantity,
                device,
                reference,
                other_device
            )
        };
        match (self.fit.hits, self.fit.correlation) {
            (Some(hits), _) => {
                t!("{percent}% of the figures agree ({curves})", percent = percent(hits), curves)
            }
            (None, Some(r)) => t!("r = {r} ({curves})", r = format!("{r:.2}"), curves),
            (None, None) => t!("the curves are level ({curves})", curves),
        }
    }
}

/// A log's place, and the log on Unix time where an offset alone can't place it.
pub struct Placed {
    /// The offset and how it was found.
    pub alignment: Alignment,
    /// The recording with Unix times: of a log without times, placed by its steps or its curve.
    pub retimed: Option<Recording>,
}

/// Places logs of one session. Those with a local clock help each other: sources of one machine share its zone.
pub fn align_logs(reference: &Reference<'_>, logs: &[&Recording]) -> Vec<Placed> {
    let mut placed: Vec<Placed> = logs.iter().map(|log| align(reference, log)).collect();
    take_neighbours_zone(reference, logs, &mut placed);
    for (log, placed) in logs.iter().zip(&mut placed) {
        let gives_seconds = log.facts.iter().any(|(name, _)| name == WHOLE_SECONDS);
        if gives_seconds && placed.retimed.is_none() && placed.alignment.confidence > 0.0 {
            placed.retimed = retime::within_seconds(reference, log, placed.alignment.offset_ns);
            if placed.retimed.is_some() {
                placed.alignment.evidence.push_str(t!(
                    "; it gives whole seconds, within which each line is put at the end of its step"
                ));
            }
        }
    }
    placed
}

/// Gives the zone of the log that shows it best to those that show theirs less well.
fn take_neighbours_zone(reference: &Reference<'_>, logs: &[&Recording], placed: &mut [Placed]) {
    let zone_of = |index: usize, alignment: &Alignment| {
        let is_found =
            matches!(alignment.method, AlignmentMethod::ZoneByCurve | AlignmentMethod::ZoneByOverlap);
        let is_zoned = logs[index].clock == Clock::LocalWall && is_found;
        (is_zoned && alignment.confidence >= HINT_CONFIDENCE).then_some(alignment.offset_ns)
    };
    let hint = placed
        .iter()
        .enumerate()
        .filter_map(|(index, placed)| {
            Some((zone_of(index, &placed.alignment)?, placed.alignment.confidence, index))
        })
        .max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((hint_ns, hint_confidence, hinting)) = hint else { return };
    for (index, (log, placed)) in logs.iter().zip(placed).enumerate() {
        let own = &placed.alignment;
        if index == hinting
            || log.clock != Clock::LocalWall
            || own.offset_ns == hint_ns && own.confidence > 0.0
        {
            continue;
        }
        // Its own evidence counts only where it is stronger than the neighbour's.
        if own.confidence < hint_confidence {
            placed.alignment = align_to_hint(reference, log, hint_ns, own);
        }
    }
}

/// A log that takes the zone which another log of the session showed.
fn align_to_hint(reference: &Reference<'_>, log: &Recording, hint_ns: i64, own: &Alignment) -> Alignment {
    let zone = format_zone(-hint_ns);
    let overlaps = overlap(reference, log, hint_ns) > 0.0;
    let evidence = if overlaps {
        t!(
            "{zone}, as another log of the session shows; by itself: {evidence}",
            zone,
            evidence = own.evidence
        )
    } else {
        t!(
            "{zone}, as another log of the session shows; it overlaps none of the other sources, so it was written at another time",
            zone
        )
    };
    Alignment {
        offset_ns: hint_ns,
        method: if overlaps { AlignmentMethod::ZoneByOverlap } else { AlignmentMethod::Assumed },
        confidence: if overlaps { 0.6 } else { 0.0 },
        outside: points_outside(log, hint_ns, reference.span),
        evidence,
        lag_ns: lag(reference, log, hint_ns).0,
    }
}

/// Places one log by itself.
pub fn align(reference: &Reference<'_>, log: &Recording) -> Placed {
    let mut retimed = None;
    let mut alignment = match (log.clock, reference.span, log.span) {
        (Clock::Unix, _, _) => fixed(0, AlignmentMethod::SameClock, 1.0, t!("its times are Unix times")),
        (_, None, _) => fixed(
            0,
            AlignmentMethod::Assumed,
            0.0,
            t!("nothing on Unix time is open to compare it with: local times are shown as if they were UTC"),
        ),
        (_, Some(span), None) => fixed(span.start_ns, AlignmentMethod::Assumed, 0.0, t!("it has no times")),
        (Clock::LocalWall, Some(span), Some(_)) => {
            let offsets = (FIRST_ZONE..=LAST_ZONE).map(|zone| -zone * QUARTER_NS).collect();
            by_zone(reference, span, log, offsets)
        }
        (Clock::LocalTimeOfDay, Some(span), Some(own)) => {
            by_zone(reference, span, log, offsets_with_date(span, own))
        }
        (Clock::Relative | Clock::Order, Some(span), Some(own)) => {
            let steps = (log.clock == Clock::Order).then(|| retime::by_steps(reference, log)).flatten();
            let by_level = || level::by_level(reference, log).map(|alignment| (alignment, None));
            let found = steps.or_else(|| retime::by_curve(reference, log)).or_else(by_level);
            match found {
                Some((alignment, recording)) => {
                    retimed = recording;
                    alignment
                }
                None => fixed(
                    span.start_ns.saturating_sub(own.start_ns),
                    AlignmentMethod::Assumed,
                    0.1,
                    t!(
                        "it has no clock, and neither steps, a curve nor known figures to place it by: put at the session's start"
                    ),
                ),
            }
        }
    };
    let shown = retimed.as_ref().unwrap_or(log);
    alignment.outside = points_outside(shown, alignment.offset_ns, reference.span);
    Placed { alignment, retimed }
}

fn fixed(offset_ns: i64, method: AlignmentMethod, confidence: f32, evidence: &str) -> Alignment {
    Alignment { offset_ns, method, confidence, outside: 0, evidence: evidence.to_owned(), lag_ns: None }
}

/// Offsets of a time of day: every zone, on every date on which the log could meet the reference.
fn offsets_with_date(span: TimeRange, own: TimeRange) -> Vec<i64> {
    let first_day = span.start_ns.saturating_sub(own.end_ns).div_euclid(DAY_NS) - 1;
    let last_day = span.end_ns.saturating_sub(own.start_ns).div_euclid(DAY_NS) + 1;
    let mut offsets: Vec<i64> = (first_day..=last_day.min(first_day + 60))
        .flat_map(|day| (FIRST_ZONE..=LAST_ZONE).map(move |zone| day * DAY_NS - zone * QUARTER_NS))
        .collect();
    offsets.sort_unstable();
    offsets.dedup();
    offsets
}

/// A zone that is considered.
struct Candidate<'a> {
    offset_ns: i64,
    overlap: f64,
    /// Fit of steps and of curves, each where there is one.
    steps: Option<f64>,
    pair: Option<PairFit<'a>>,
    total: f64,
}

impl<'a> Candidate<'a> {
    fn new(reference: &'a Reference<'_>, log: &'a Recording, offset_ns: i64) -> Option<Self> {
        let overlap = overlap(reference, log, offset_ns);
        if overlap <= 0.0 {
            return None;
        }
        let steps = retime::share_of_steps_in_place(reference, log, offset_ns);
        let pair = reference.best_fit(log, offset_ns, None);
        let parts = [(Some(overlap), 1.0), (steps, 2.0), (pair.as_ref().map(|pair| pair.fit.score), 3.0)];
        let weight: f64 = parts.iter().filter(|part| part.0.is_some()).map(|part| part.1).sum();
        let sum: f64 = parts.iter().filter_map(|part| Some(part.0? * part.1)).sum();
        let oddness = if is_zone_in_use(offset_ns) { 0.0 } else { 0.15 };
        Some(Self { offset_ns, overlap, steps, pair, total: sum / weight - oddness })
    }

    fn has_curve(&self) -> bool {
        self.steps.is_some()
            || self
                .pair
                .as_ref()
                .is_some_and(|pair| pair.fit.correlation.is_some() || pair.fit.hits.is_some())
    }

    fn words(&self) -> String {
        let mut words = t!("{percent}% overlap", percent = percent(self.overlap));
        if let Some(steps) = self.steps {
            words.push_str(&t!(", {percent}% of the steps in place", percent = percent(steps)));
        }
        if let Some(pair) = &self.pair {
            words.push_str(&t!(", {words}", words = pair.words()));
        }
        words
    }
}

fn by_zone(reference: &Reference<'_>, span: TimeRange, log: &Recording, offsets: Vec<i64>) -> Alignment {
    let mut candidates: Vec<Candidate<'_>> =
        offsets.into_iter().filter_map(|offset_ns| Candidate::new(reference, log, offset_ns)).collect();
    candidates.sort_by(|a, b| b.total.total_cmp(&a.total).then(b.overlap.total_cmp(&a.overlap)));
    let Some(best) = candidates.first() else {
        return apart(span, log);
    };
    let fit = best.total.clamp(0.0, 1.0);
    let (confidence, rival) = match candidates.get(1) {
        None => (0.7 + 0.3 * fit, t!("no other zone overlaps").to_owned()),
        Some(rival) => {
            let lead = ((best.total - rival.total) / 0.15).clamp(0.0, 1.0);
            let words = t!(
                "next best {zone}: {words}",
                zone = zone_words(rival.offset_ns, log.clock),
                words = rival.words()
            );
            (fit * (0.4 + 0.6 * lead), words)
        }
    };
    let is_odd = !is_zone_in_use(best.offset_ns);
    let mut evidence = t!(
        "{zone}: {words}; {rival}",
        zone = zone_words(best.offset_ns, log.clock),
        words = best.words(),
        rival
    );
    if is_odd {
        evidence
            .push_str(t!("; no country uses this zone, so the clock may be off or the log of another run"));
    }
    let (lag_ns, words) = lag(reference, log, best.offset_ns);
    evidence.push_str(&words);
    Alignment {
        offset_ns: best.offset_ns,
        method: if best.has_curve() { AlignmentMethod::ZoneByCurve } else { AlignmentMethod::ZoneByOverlap },
        confidence: (if is_odd { confidence * 0.5 } else { confidence }) as f32,
        outside: 0,
        evidence,
        lag_ns,
    }
}

/// A log that meets nothing under any zone: shown as if its zone were UTC.
fn apart(span: TimeRange, log: &Recording) -> Alignment {
    let offset_ns = match (log.clock, log.span) {
        (Clock::LocalTimeOfDay, Some(own)) => {
            span.start_ns.saturating_sub(own.start_ns).div_euclid(DAY_NS) * DAY_NS
        }
        _ => 0,
    };
    fixed(
        offset_ns,
        AlignmentMethod::Assumed,
        0.0,
        t!(
            "it overlaps the other sources under no zone, so it was written at another time: shown apart, as if its zone were UTC"
        ),
    )
}

/// Ranges in order, those that meet put together.
fn merged(mut ranges: Vec<TimeRange>) -> Vec<TimeRange> {
    ranges.sort_unstable_by_key(|range| range.start_ns);
    let mut merged: Vec<TimeRange> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start_ns <= last.end_ns => last.end_ns = last.end_ns.max(range.end_ns),
            _ => merged.push(range),
        }
    }
    merged
}

/// How much of the shorter of log and reference lies in the other, 0 to 1. Between two runs nothing does.
fn overlap(reference: &Reference<'_>, log: &Recording, offset_ns: i64) -> f64 {
    let (Some(span), Some(own)) = (reference.span, log.span) else { return 0.0 };
    let own = own.shifted(offset_ns);
    let common_ns =
        |with: TimeRange| with.end_ns.min(own.end_ns).saturating_sub(with.start_ns.max(own.start_ns));
    if common_ns(span) < -SPAN_SLACK_NS {
        return 0.0;
    }
    let recorded_ns: i64 = reference.recorded.iter().map(|range| range.duration_ns()).sum();
    let shorter_ns = recorded_ns.min(own.duration_ns()).max(1);
    let common_ns: i64 = reference.recorded.iter().map(|&range| common_ns(range).max(0)).sum();
    (common_ns as f64 / shorter_ns as f64).clamp(0.01, 1.0)
}

/// How many of a log's moments lie outside the other sources.
fn points_outside(log: &Recording, offset_ns: i64, span: Option<TimeRange>) -> u64 {
    let Some(span) = span else { return 0 };
    let mut times: Vec<i64> = log.series.iter().flat_map(|series| series.times_ns.iter().copied()).collect();
    times.sort_unstable();
    times.dedup();
    times.iter().filter(|&&time_ns| !span.contains(time_ns.saturating_add(offset_ns))).count() as u64
}

/// What can be said of the sampler's lag and of drift between the clocks; neither is applied.
fn lag(reference: &Reference<'_>, log: &Recording, offset_ns: i64) -> (Option<i64>, String) {
    let mut words = String::new();
    let Some((series, buckets)) = reference.driver_pair(log, offset_ns) else { return (None, words) };
    let Some(span) = series.span().map(|span| span.shifted(offset_ns)) else { return (None, words) };
    let lags_in = |range| Lags::new(series, range, offset_ns, buckets);
    let lag = lags_in(span).and_then(|lags| {
        // Less than the time between two samples is no lag.
        let interval_ns = span.duration_ns() / series.len().max(1) as i64;
        let is_lag = |&lag_ns: &i64| lag_ns.abs() > interval_ns && lags.is_better(lag_ns, 0);
        let lag_ns = lags.best_ns().filter(is_lag)?;
        Some((lag_ns, lags.at(lag_ns)?))
    });
    if let Some((lag_ns, r)) = lag {
        let (lag, r) = (time::format_duration(lag_ns.abs()), format!("{r:.2}"));
        words = if lag_ns > 0 {
            t!("; its figures come about {lag} behind the allocator's (r = {r} then; not applied)", lag, r)
        } else {
            t!("; its figures come about {lag} ahead of the allocator's (r = {r} then; not applied)", lag, r)
        };
    }
    if span.duration_ns() >= DRIFT_SPAN_NS {
        let third_ns = span.duration_ns() / 3;
        let first = TimeRange { start_ns: span.start_ns, end_ns: span.start_ns + third_ns };
        let last = TimeRange { start_ns: span.end_ns - third_ns, end_ns: span.end_ns };
        // Each third has to follow better at its own lag than at the other's: where a curve is level or straight, any
        // lag is as good as another.
        if let (Some(early), Some(late)) = (lags_in(first), lags_in(last))
            && let (Some(early_ns), Some(late_ns)) = (early.best_ns(), late.best_ns())
            && (late_ns - early_ns).abs() >= SECOND_NS / 4
            && early.is_better(early_ns, late_ns)
            && late.is_better(late_ns, early_ns)
        {
            words.push_str(&t!(
                "; the clocks drift: the log comes {early} late in its first third and {late} late in its last",
                early = time::format_duration(early_ns),
                late = time::format_duration(late_ns)
            ));
        }
    }
    (lag.map(|(lag_ns, _)| lag_ns), words)
}

/// Whether some country keeps the zone of this offset.
fn is_zone_in_use(offset_ns: i64) -> bool {
    let zone = (-offset_ns).rem_euclid(DAY_NS) / QUARTER_NS;
    // A time of day has its date in the offset, so that a zone may show up as itself or a day earlier.
    [zone, zone - 96]
        .iter()
        .any(|&zone| (FIRST_ZONE..=LAST_ZONE).contains(&zone) && (zone % 4 == 0 || ODD_ZONES.contains(&zone)))
}

fn zone_words(offset_ns: i64, clock: Clock) -> String {
    if clock != Clock::LocalTimeOfDay {
        return format_zone(-offset_ns);
    }
    // Of the two readings (UTC+13 today, UTC−11 yesterday) the one nearer to UTC is the likelier.
    let zone_ns = (-offset_ns).rem_euclid(DAY_NS);
    let zone_ns =
        if zone_ns > LAST_ZONE * QUARTER_NS || zone_ns > DAY_NS / 2 { zone_ns - DAY_NS } else { zone_ns };
    let date = time::format_unix(offset_ns.saturating_add(zone_ns));
    t!("{zone} on {date}", zone = format_zone(zone_ns), date = date.split('T').next().unwrap_or_default())
}

/// A share, 0 to 1, in whole per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// `UTC+05:30`, `UTC−08:00`.
pub fn format_zone(zone_ns: i64) -> String {
    let minutes = zone_ns.abs() / MINUTE_NS;
    let sign = if zone_ns < 0 { '−' } else { '+' };
    format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Annotation, SourceKind};

    const START: i64 = 1_796_104_323 * SECOND_NS;

    fn run() -> Vec<Series> {
        let mut series = Series::new(Quantity::Reserved, Device::default(), true);
        (0..60).for_each(|step| series.push(START + step * SECOND_NS, (step * step) << 20));
        vec![series]
    }

    fn log(clock: Clock, zone_minutes: i64, extra_s: i64) -> Recording {
        let mut recording = Recording::new(SourceKind::NvidiaSmi, "test", clock);
        let mut series = Series::new(Quantity::DriverUsed, Device::default(), false);
        for step in -extra_s..60 + extra_s {
            let level = if (0..60).contains(&step) { (step * step + 500) << 20 } else { 0 };
            series.push(START + step * SECOND_NS + zone_minutes * MINUTE_NS, level);
        }
        recording.span = series.span();
        recording.series.push(series);
        recording
    }

    fn reference<'a>(series: &'a [Series], steps: &'a [Step]) -> Reference<'a> {
        let process = RefProcess { rank: None, series, steps, covers_run: true };
        let span = series.iter().filter_map(Series::span).reduce(TimeRange::union);
        Reference::new(vec![process], span)
    }

    fn found(log: &Recording) -> Alignment {
        align(&reference(&run(), &[]), log).alignment
    }

    #[test]
    fn zones_are_found_in_quarter_hours() {
        for zone in [-720, -210, 0, 330, 345, 480, 840] {
            let alignment = found(&log(Clock::LocalWall, zone, 10));
            assert_eq!(alignment.offset_ns, -zone * MINUTE_NS, "{}", alignment.evidence);
            assert_eq!(alignment.method, AlignmentMethod::ZoneByCurve);
            assert!(alignment.confidence > 0.9, "{}", alignment.confidence);
            assert_eq!(alignment.outside, 20);
        }
        assert_eq!(format_zone(330 * MINUTE_NS), "UTC+05:30");
        assert_eq!(format_zone(-210 * MINUTE_NS), "UTC−03:30");
    }

    /// Between two runs lies what another zone would put there.
    #[test]
    fn a_log_of_one_of_two_runs_is_not_put_between_them() {
        let curves = run();
        let (of_run, log) = (curves[0].span().unwrap(), log(Clock::LocalWall, 0, 10));
        let process = || RefProcess { rank: None, series: &curves, steps: &[], covers_run: true };
        for hours in [-3, 3] {
            let other = of_run.shifted(hours * 60 * MINUTE_NS);
            let alignment = align(&Reference::new(vec![process()], [of_run, other]), &log).alignment;
            assert_eq!(alignment.offset_ns, 0, "{}", alignment.evidence);
            assert!(alignment.confidence > 0.9, "{}", alignment.confidence);
            // Without a curve to follow it goes by the overlap alone.
            let alignment = align(&Reference::new(Vec::new(), [of_run, other]), &log).alignment;
            assert!([0, hours * 60 * MINUTE_NS].contains(&alignment.offset_ns), "{}", alignment.evidence);
        }
    }

    #[test]
    fn a_long_run_is_told_by_its_curve() {
        // Ten hours, with a jump after three: many zones overlap, one follows.
        let level = |minute: i64| if minute < 180 { 100_i64 } else { 400 + minute % 7 } << 20;
        let mut curve = Series::new(Quantity::Reserved, Device::default(), true);
        let mut recording = Recording::new(SourceKind::NvidiaSmi, "test", Clock::LocalWall);
        let mut series = Series::new(Quantity::DriverUsed, Device::default(), false);
        for minute in 0..600 {
            curve.push(START + minute * MINUTE_NS, level(minute));
            series
                .push(START + minute * MINUTE_NS + SECOND_NS + 480 * MINUTE_NS, level(minute) + (500 << 20));
        }
        recording.span = series.span();
        recording.series.push(series);
        let curves = vec![curve];
        let alignment = align(&reference(&curves, &[]), &recording).alignment;
        assert_eq!(alignment.offset_ns, -480 * MINUTE_NS, "{}", alignment.evidence);
        assert!(alignment.evidence.contains("next best"), "{}", alignment.evidence);
    }

    /// A saw-tooth of twenty minutes, and the driver's account of it once a second; a log's moment is `late_ns` of the
    /// true one behind.
    fn saw_tooth(late_ns: impl Fn(i64) -> i64) -> (Vec<Series>, Recording) {
        let level = |s: i64| (s % 37 * 40 + s / 4) << 20;
        let mut curve = Series::new(Quantity::Reserved, Device::default(), true);
        let mut recording = Recording::new(SourceKind::NvidiaSmi, "test", Clock::LocalWall);
        let mut series = Series::new(Quantity::DriverUsed, Device::default(), false);
        for s in 0..1200 {
            let time_ns = START + s * SECOND_NS;
            curve.push(time_ns, level(s));
            series.push(time_ns + SECOND_NS / 3 + late_ns(s) + 480 * MINUTE_NS, level(s) + (500 << 20));
        }
        recording.span = series.span();
        recording.series.push(series);
        (vec![curve], recording)
    }

    /// A lag beyond two seconds was cut off, and drift was told only where the first third lagged too.
    #[test]
    fn a_fixed_lag_is_told_and_not_applied() {
        for late_ns in [-2 * SECOND_NS, 3 * SECOND_NS, 5 * SECOND_NS] {
            let (curves, recording) = saw_tooth(|_| late_ns);
            let alignment = align(&reference(&curves, &[]), &recording).alignment;
            assert_eq!(alignment.offset_ns, -480 * MINUTE_NS, "{}", alignment.evidence);
            // One sample a second tells no more than half a second.
            let wrong_ns = (alignment.lag_ns.unwrap() - late_ns).abs();
            assert!(wrong_ns <= SECOND_NS / 2, "{late_ns}: {}", alignment.evidence);
            assert!(!alignment.evidence.contains("drift"), "{}", alignment.evidence);
        }
        let (curves, recording) = saw_tooth(|_| 3 * SECOND_NS);
        let evidence = align(&reference(&curves, &[]), &recording).alignment.evidence;
        assert!(
            evidence.contains(" behind the allocator's") && evidence.contains("not applied"),
            "{evidence}"
        );
    }

    #[test]
    fn a_log_that_is_on_time_has_no_lag() {
        let (curves, recording) = saw_tooth(|_| 0);
        let alignment = align(&reference(&curves, &[]), &recording).alignment;
        assert!(alignment.lag_ns.is_none_or(|lag_ns| lag_ns.abs() < SECOND_NS / 2), "{}", alignment.evidence);
    }

    #[test]
    fn clocks_that_drift_are_told() {
        let (curves, recording) = saw_tooth(|s| s * SECOND_NS / 300);
        let evidence = align(&reference(&curves, &[]), &recording).alignment.evidence;
        assert!(evidence.contains("the clocks drift: the log comes "), "{evidence}");
        let (curves, recording) = saw_tooth(|s| -s * SECOND_NS / 300);
        let evidence = align(&reference(&curves, &[]), &recording).alignment.evidence;
        assert!(evidence.contains(" late in its first third and −3"), "{evidence}");
    }

    #[test]
    fn a_straight_ramp_tells_neither_lag_nor_drift() {
        let (mut curves, mut recording) = saw_tooth(|s| s * SECOND_NS / 300);
        let straight = |series: &mut Series| {
            (0..).zip(&mut series.bytes).for_each(|(s, bytes)| *bytes = s << 20);
        };
        curves.iter_mut().chain(&mut recording.series).for_each(straight);
        let alignment = align(&reference(&curves, &[]), &recording).alignment;
        assert_eq!(alignment.lag_ns, None, "{}", alignment.evidence);
        assert!(!alignment.evidence.contains("drift"), "{}", alignment.evidence);
    }

    #[test]
    fn a_time_of_day_finds_its_date() {
        let mut recording = log(Clock::LocalTimeOfDay, 330, 10);
        let midnight_ns = (START + 330 * MINUTE_NS).div_euclid(DAY_NS) * DAY_NS;
        recording.series[0].times_ns.iter_mut().for_each(|time_ns| *time_ns -= midnight_ns);
        recording.span = recording.series[0].span();
        let alignment = found(&recording);
        assert_eq!(alignment.offset_ns, midnight_ns - 330 * MINUTE_NS, "{}", alignment.evidence);
        assert!(alignment.evidence.starts_with("UTC+05:30 on 2026-12-01"), "{}", alignment.evidence);
    }

    #[test]
    fn a_log_that_overlaps_nothing_is_placed_apart_in_its_neighbours_zone() {
        let mut away = log(Clock::LocalWall, 330, 0);
        away.series[0].times_ns.iter_mut().for_each(|time_ns| *time_ns -= 4 * MINUTE_NS);
        away.span = away.series[0].span();
        let near = log(Clock::LocalWall, 330, 10);
        let alone = found(&away);
        assert_eq!((alone.offset_ns, alone.confidence, alone.outside), (0, 0.0, 60));
        let series = run();
        let both = align_logs(&reference(&series, &[]), &[&away, &near]);
        assert_eq!(both[0].alignment.offset_ns, -330 * MINUTE_NS);
        assert_eq!((both[0].alignment.confidence, both[0].alignment.outside), (0.0, 60));
        assert!(both[0].alignment.evidence.contains("another time"), "{}", both[0].alignment.evidence);
    }

    #[test]
    fn a_log_without_times_is_placed_by_its_steps() {
        let series = run();
        let step = |number: i64| Step {
            number,
            range: TimeRange::new(START + number * 5 * SECOND_NS, START + (number + 1) * 5 * SECOND_NS),
        };
        let steps: Vec<Step> = (0..10).map(step).collect();
        let mut recording = Recording::new(SourceKind::TrainingLog, "test", Clock::Order);
        let mut curve = Series::new(Quantity::Reserved, Device::default(), true);
        for (row, number) in [2, 3, 5, 8].into_iter().enumerate() {
            let end_ns = (row as i64 + 1) * SECOND_NS;
            curve.push(end_ns, series[0].at(step(number).range.end_ns).unwrap());
            let name = recording.strings.intern(&format!("step#{number}"));
            recording
                .annotations
                .push(Annotation { name, range: TimeRange::new(end_ns - SECOND_NS, end_ns) });
        }
        recording.span = Some(TimeRange::new(SECOND_NS, 4 * SECOND_NS + 1));
        recording.series.push(curve);
        let placed = align(&reference(&series, &steps), &recording);
        assert_eq!(placed.alignment.method, AlignmentMethod::Steps, "{}", placed.alignment.evidence);
        let retimed = placed.retimed.unwrap();
        let ends: Vec<i64> = [2, 3, 5, 8].map(|number| step(number).range.end_ns).to_vec();
        assert_eq!((retimed.clock, &retimed.series[0].times_ns), (Clock::Unix, &ends));
        assert!(placed.alignment.confidence > 0.9);
    }

    #[test]
    fn a_relative_log_is_placed_by_its_curve() {
        let series = run();
        let mut recording = log(Clock::Relative, 0, 0);
        recording.series[0].times_ns.iter_mut().for_each(|time_ns| *time_ns -= START);
        recording.series[0].quantity = Quantity::Reserved;
        recording.series[0].bytes.iter_mut().for_each(|bytes| *bytes -= 500 << 20);
        recording.span = recording.series[0].span();
        let alignment = align(&reference(&series, &[]), &recording).alignment;
        assert_eq!(alignment.method, AlignmentMethod::ShapeOfCurve, "{}", alignment.evidence);
        assert!((alignment.offset_ns - START).abs() < 2 * SECOND_NS, "{}", alignment.offset_ns - START);
    }
}
