//! Logs without a clock: placed by step numbers, or by the shape of their curve.

use std::collections::HashMap;

use super::clock::{RefProcess, Reference, percent};
use crate::model::{Alignment, AlignmentMethod, Clock, Recording, TimeRange};
use crate::text::t;

/// A step that a log prints within this of its end is in its place: logs give whole seconds.
const STEP_SLACK_NS: i64 = 2_000_000_000;
/// Positions that are tried along the reference.
const POSITIONS: i64 = 200;
/// Starts and ends that are tried for a log whose pace is unknown.
const STRETCHES: i64 = 40;
/// So far beyond the last anchor nothing of a log lies.
const FAR_NS: i64 = 86_400_000_000_000;
/// A shape has at least this many points.
const MIN_POINTS: usize = 6;
/// A curve that fits worse than this places nothing.
const MIN_SCORE: f64 = 0.7;

/// The log's steps: number and the moment of its line.
fn steps_of(log: &Recording) -> Vec<(i64, i64)> {
    let number = |name: &str| name.strip_prefix("step#")?.parse::<i64>().ok();
    log.annotations
        .iter()
        .filter_map(|annotation| Some((number(log.strings.get(annotation.name))?, annotation.range.end_ns)))
        .collect()
}

fn ends_by_number(process: &RefProcess<'_>) -> HashMap<i64, i64> {
    process.steps.iter().map(|step| (step.number, step.range.end_ns)).collect()
}

/// The share of a log's steps that lie, at an offset, where the reference has the step of that number.
pub(super) fn share_of_steps_in_place(
    reference: &Reference<'_>,
    log: &Recording,
    offset_ns: i64,
) -> Option<f64> {
    let steps = steps_of(log);
    let share = |process: &RefProcess<'_>| {
        let ends = ends_by_number(process);
        let known: Vec<bool> = steps
            .iter()
            .filter_map(|(number, time_ns)| {
                let end_ns = ends.get(number)?;
                Some(
                    time_ns.saturating_add(offset_ns).saturating_sub(*end_ns).saturating_abs()
                        <= STEP_SLACK_NS,
                )
            })
            .collect();
        (!known.is_empty()).then(|| known.iter().filter(|&&hit| hit).count() as f64 / known.len() as f64)
    };
    reference.processes().iter().filter_map(share).max_by(f64::total_cmp)
}

/// Places a log without times by its step numbers: each step's line comes at the end of that step.
pub(super) fn by_steps(reference: &Reference<'_>, log: &Recording) -> Option<(Alignment, Option<Recording>)> {
    let steps = steps_of(log);
    let placed = reference
        .processes()
        .iter()
        .enumerate()
        .filter(|(_, process)| process.may_have_written(log))
        .filter_map(|(index, process)| {
            let ends = ends_by_number(process);
            let mut anchors: Vec<(i64, i64)> =
                steps.iter().filter_map(|(number, row_ns)| Some((*row_ns, *ends.get(number)?))).collect();
            anchors.sort_unstable();
            anchors.dedup_by_key(|anchor| anchor.0);
            let is_ordered = anchors.windows(2).all(|pair| pair[0].1 <= pair[1].1);
            if anchors.len() < 2 || !is_ordered {
                return None;
            }
            let recording = on_unix_time(log, &anchors);
            let score = reference.best_fit(&recording, 0, Some(index)).map_or(0.0, |pair| pair.fit.score);
            Some((score, anchors.len(), recording))
        });
    let (score, count, recording) = placed.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let share = count as f64 / steps.len().max(1) as f64;
    let alignment = Alignment {
        offset_ns: 0,
        method: AlignmentMethod::Steps,
        confidence: (0.5 * share + 0.5 * score) as f32,
        outside: 0,
        evidence: t!(
            "{count} of its {all} steps carry numbers that the trace or snapshot has too; each line is put at the end of its step, where the figures agree to {percent}%",
            count,
            all = steps.len(),
            percent = percent(score)
        ),
        lag_ns: None,
    };
    Some((alignment, Some(recording)))
}

/// Places a log by the shape of its curve: slid along the reference when its pace is known, else stretched as well.
pub(super) fn by_curve(reference: &Reference<'_>, log: &Recording) -> Option<(Alignment, Option<Recording>)> {
    let (span, own) = (reference.span()?, log.span?);
    // Fewer points than these fit anywhere.
    if log.series.iter().all(|series| series.len() < MIN_POINTS) {
        return None;
    }
    if log.clock == Clock::Relative {
        let first_ns = span.start_ns.saturating_sub(own.end_ns);
        let step_ns = span.duration_ns().saturating_add(own.duration_ns()) / POSITIONS;
        let around = |middle_ns: i64, step_ns: i64| {
            let offsets = (-POSITIONS / 2..=POSITIONS / 2)
                .map(move |position| middle_ns.saturating_add(position * step_ns));
            let scored = offsets.filter_map(|offset_ns| {
                let pair = reference.best_fit(log, offset_ns, None)?;
                // A few points at the edge fit anything.
                let placed = own.shifted(offset_ns);
                let inside =
                    span.end_ns.min(placed.end_ns).saturating_sub(span.start_ns.max(placed.start_ns));
                let share = inside as f64 / own.duration_ns().min(span.duration_ns()).max(1) as f64;
                Some((pair.fit.score * share.clamp(0.0, 1.0).sqrt(), offset_ns))
            });
            scored.max_by(|a, b| a.0.total_cmp(&b.0))
        };
        let (_, coarse_ns) = around(first_ns.saturating_add(POSITIONS / 2 * step_ns), step_ns)?;
        let (score, offset_ns) = around(coarse_ns, (step_ns / POSITIONS * 2).max(1))?;
        return (score >= MIN_SCORE).then(|| (shape(offset_ns, score), None));
    }
    let position = |index: i64| span.start_ns + span.duration_ns() / STRETCHES * index;
    let mut best: Option<(f64, Recording)> = None;
    for start in 0..STRETCHES {
        for end in start + 1..=STRETCHES {
            let anchors = [(own.start_ns, position(start)), (own.end_ns - 1, position(end))];
            if anchors[1].0 <= anchors[0].0 {
                return None;
            }
            let candidate = on_unix_time(&curves_only(log), &anchors);
            let score = reference.best_fit(&candidate, 0, None).map_or(0.0, |pair| pair.fit.score);
            if best.as_ref().is_none_or(|(known, _)| score > *known) {
                best = Some((score, on_unix_time(log, &anchors)));
            }
        }
    }
    let (score, recording) = best.filter(|(score, _)| *score >= MIN_SCORE)?;
    Some((shape(0, score), Some(recording)))
}

fn shape(offset_ns: i64, score: f64) -> Alignment {
    Alignment {
        offset_ns,
        method: AlignmentMethod::ShapeOfCurve,
        confidence: (score * 0.6) as f32,
        outside: 0,
        evidence: t!(
            "it has no clock; its curve fits the reference best here ({percent}%)",
            percent = percent(score)
        ),
        lag_ns: None,
    }
}

/// The log's curves alone, which are all that a comparison needs.
fn curves_only(log: &Recording) -> Recording {
    let mut recording = Recording::new(log.kind, log.format, log.clock);
    recording.series.clone_from(&log.series);
    recording.span = log.span;
    recording
}

/// A log that gives whole seconds, with each line at the end of its step where that end lies within about the line's
/// second. Its clock stays its own: only what it left out is filled in.
pub(super) fn within_seconds(
    reference: &Reference<'_>,
    log: &Recording,
    offset_ns: i64,
) -> Option<Recording> {
    let steps = steps_of(log);
    let anchors_of = |process: &RefProcess<'_>| {
        let ends = ends_by_number(process);
        let mut anchors: Vec<(i64, i64)> = steps
            .iter()
            .filter_map(|(number, time_ns)| Some((*time_ns, ends.get(number)?.checked_sub(offset_ns)?)))
            .filter(|(time_ns, end_ns)| time_ns.saturating_sub(*end_ns).saturating_abs() <= STEP_SLACK_NS)
            .collect();
        anchors.sort_unstable();
        anchors.dedup_by_key(|anchor| anchor.0);
        anchors
    };
    let mut anchors = reference.processes().iter().map(anchors_of).max_by_key(Vec::len)?;
    let is_ordered = anchors.windows(2).all(|pair| pair[0].1 <= pair[1].1);
    if !is_ordered || anchors.len() < 2 || anchors.len() * 10 < steps.len() * 8 {
        return None;
    }
    // Beyond the first and last step the lines keep the log's own pace.
    let (first, last) = (*anchors.first()?, *anchors.last()?);
    anchors.insert(0, (first.0.saturating_sub(FAR_NS), first.1.saturating_sub(FAR_NS)));
    anchors.push((last.0.saturating_add(FAR_NS), last.1.saturating_add(FAR_NS)));
    Some(moved(log, &anchors))
}

fn on_unix_time(log: &Recording, anchors: &[(i64, i64)]) -> Recording {
    Recording { clock: Clock::Unix, ..moved(log, anchors) }
}

/// The log with its times moved: straight between anchors (from, to) and beyond them at the pace of the nearest two.
/// The anchors ascend, and are two or more.
fn moved(log: &Recording, anchors: &[(i64, i64)]) -> Recording {
    let map = |row_ns: i64| {
        let after = anchors.partition_point(|anchor| anchor.0 <= row_ns).clamp(1, anchors.len() - 1);
        let ((row_a, unix_a), (row_b, unix_b)) = (anchors[after - 1], anchors[after]);
        let rows = (i128::from(row_b) - i128::from(row_a)).max(1);
        let of_rows = i128::from(row_ns) - i128::from(row_a);
        let moved = of_rows.saturating_mul(i128::from(unix_b) - i128::from(unix_a)) / rows;
        unix_a.saturating_add(i64::try_from(moved).unwrap_or_default())
    };
    let map_range = |range: TimeRange| TimeRange::new(map(range.start_ns), map(range.end_ns));
    let mut recording = log.clone();
    recording.span = log
        .span
        .map(|span| TimeRange::new(map(span.start_ns), map(span.end_ns.saturating_sub(1)).saturating_add(1)));
    for series in &mut recording.series {
        series.times_ns.iter_mut().for_each(|time_ns| *time_ns = map(*time_ns));
    }
    recording.annotations.iter_mut().for_each(|annotation| annotation.range = map_range(annotation.range));
    recording.markers.iter_mut().for_each(|marker| marker.time_ns = map(marker.time_ns));
    for summary in &mut recording.summaries {
        summary.time_ns = summary.time_ns.map(map);
    }
    recording
}
