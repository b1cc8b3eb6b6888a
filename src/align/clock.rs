//! Where a log lies on the time axis: which zone its wall clock kept, or where its curve fits.
//!
//! nvidia-smi and most logs write local time without a zone. Every quarter hour from −12 h to +14 h is tried; the zone
//! under which the log covers the run, and its curve follows the run's, is taken, and shown with how sure that is.

use crate::model::{
    Alignment, AlignmentMethod, Clock, Device, Quantity, Recording, Series, TimeRange, time::format_duration,
};

const MINUTE_NS: i64 = 60_000_000_000;
const DAY_NS: i64 = 24 * 60 * MINUTE_NS;
/// Zones lie a whole number of these apart.
const ZONE_STEP_NS: i64 = 15 * MINUTE_NS;
/// UTC−12 to UTC+14.
const ZONES: std::ops::RangeInclusive<i64> = -48..=56;
/// At how many points of a log two curves are compared.
const SAMPLES: usize = 2000;
/// Fewer common points tell nothing.
const MIN_SAMPLES: usize = 8;
/// From this correlation on a curve is said to follow another.
const FOLLOWS: f64 = 0.5;
/// Logs that lag are shifted by up to this to find the lag.
const MAX_LAG_NS: i64 = 3_000_000_000;
const LAG_STEP_NS: i64 = 50_000_000;

/// What is known on Unix time: curves and the time that they cover.
pub(super) struct Reference<'a> {
    pub curves: Vec<&'a Series>,
    pub span: TimeRange,
}

/// How well an offset fits.
#[derive(Clone, Copy, Debug, Default)]
struct Fit {
    offset_ns: i64,
    /// The share of the shorter of the two that lies within the other.
    overlap: f64,
    correlation: Option<f64>,
}

impl Fit {
    fn score(&self) -> f64 {
        self.overlap * (0.5 + 0.5 * self.correlation.unwrap_or(0.0).max(0.0))
    }

    fn follows(&self) -> bool {
        self.correlation.is_some_and(|correlation| correlation >= FOLLOWS)
    }
}

/// Finds where `recording` lies. `prior_ns` is the offset of another log of the same machine, which decides when the
/// curve does not.
pub(super) fn align(
    reference: Option<&Reference<'_>>,
    recording: &Recording,
    prior_ns: Option<i64>,
) -> Alignment {
    let assumed = |offset_ns, confidence, evidence: &str| Alignment {
        offset_ns,
        method: AlignmentMethod::Assumed,
        confidence,
        outside: 0,
        evidence: evidence.to_owned(),
    };
    let alignment = match (recording.clock, reference) {
        (Clock::Unix, _) => Alignment {
            method: AlignmentMethod::SameClock,
            evidence: "its times are Unix times".to_owned(),
            ..assumed(0, 1.0, "")
        },
        (Clock::LocalWall, None) => assumed(0, 0.5, "nothing else tells the zone: shown as if it were UTC"),
        (_, None) => assumed(0, 0.1, "nothing else is open that it could be placed by"),
        (Clock::LocalWall, Some(reference)) => by_zone(reference, recording, prior_ns, &[0]),
        (Clock::LocalTimeOfDay, Some(reference)) => {
            let day = reference.span.start_ns.div_euclid(DAY_NS);
            by_zone(reference, recording, prior_ns, &[(day - 1) * DAY_NS, day * DAY_NS, (day + 1) * DAY_NS])
        }
        (Clock::Relative | Clock::Order, Some(reference)) => by_shape(reference, recording),
    };
    let outside =
        reference.map_or(0, |reference| points_outside(recording, alignment.offset_ns, reference.span));
    Alignment { outside, ..alignment }
}

fn by_zone(
    reference: &Reference<'_>,
    recording: &Recording,
    prior_ns: Option<i64>,
    days: &[i64],
) -> Alignment {
    let Some(span) = recording.span else {
        return Alignment {
            offset_ns: 0,
            method: AlignmentMethod::Assumed,
            confidence: 0.0,
            outside: 0,
            evidence: "it has no times".to_owned(),
        };
    };
    let mut fits: Vec<Fit> = days
        .iter()
        .flat_map(|day_ns| ZONES.map(move |zone| day_ns - zone * ZONE_STEP_NS))
        .map(|offset_ns| fit(reference, recording, span, offset_ns))
        .collect();
    fits.sort_by(|a, b| {
        let is_prior = |fit: &Fit| prior_ns == Some(fit.offset_ns);
        b.score().total_cmp(&a.score()).then_with(|| is_prior(b).cmp(&is_prior(a)))
    });
    let (mut best, mut next) = (fits[0], fits[1]);
    if best.overlap == 0.0 {
        return Alignment {
            offset_ns: prior_ns.unwrap_or(days[days.len() / 2]),
            method: AlignmentMethod::Assumed,
            confidence: 0.0,
            outside: 0,
            evidence: "it overlaps the other sources under no zone: placed apart".to_owned(),
        };
    }
    // Where the curve can't decide, logs of one machine keep one zone.
    if !best.follows()
        && let Some(prior) = fits.iter().find(|fit| prior_ns == Some(fit.offset_ns) && fit.overlap > 0.0)
    {
        next = if prior.offset_ns == best.offset_ns { next } else { best };
        best = *prior;
    }
    let margin = (best.score() - next.score()).max(0.0) / best.score().max(f64::EPSILON);
    let confidence = match (best.follows(), prior_ns == Some(best.offset_ns)) {
        (true, _) => 0.6 + 0.4 * margin,
        (false, true) => 0.5 + 0.4 * margin,
        (false, false) => 0.3 + 0.5 * margin,
    };
    let correlation = best.correlation.map_or_else(String::new, |value| format!(", correlation {value:.2}"));
    let lag = lag_ns(reference, recording, best.offset_ns).map_or_else(String::new, |lag| {
        format!("; it lags by about {}, which is not corrected", format_duration(lag))
    });
    Alignment {
        offset_ns: best.offset_ns,
        method: if best.follows() { AlignmentMethod::ZoneByCurve } else { AlignmentMethod::ZoneByOverlap },
        confidence: confidence.clamp(0.0, 1.0) as f32,
        outside: 0,
        evidence: format!(
            "{} fits best (overlap {:.0} %{correlation}); next is {} with {:.0} % of its score{lag}",
            zone_name(best.offset_ns),
            best.overlap * 100.0,
            zone_name(next.offset_ns),
            100.0 * next.score() / best.score().max(f64::EPSILON),
        ),
    }
}

/// Slides a log without usable times along the run.
fn by_shape(reference: &Reference<'_>, recording: &Recording) -> Alignment {
    let start_ns = recording.span.map_or(0, |span| span.start_ns);
    let at_start = reference.span.start_ns.saturating_sub(start_ns);
    let best = recording.span.and_then(|span| {
        let slack = reference.span.duration_ns().saturating_sub(span.duration_ns() / 2).max(0);
        (0..=200_i64)
            .map(|step| fit(reference, recording, span, at_start.saturating_add(slack / 200 * step)))
            .filter(|fit| fit.correlation.is_some_and(|correlation| correlation > 0.9) && fit.overlap > 0.5)
            .max_by(|a, b| a.score().total_cmp(&b.score()))
    });
    match best {
        Some(best) => Alignment {
            offset_ns: best.offset_ns,
            method: AlignmentMethod::ShapeOfCurve,
            confidence: 0.5,
            outside: 0,
            evidence: format!(
                "its curve fits best here (correlation {:.2})",
                best.correlation.unwrap_or(0.0)
            ),
        },
        None => Alignment {
            offset_ns: at_start,
            method: AlignmentMethod::Assumed,
            confidence: 0.1,
            outside: 0,
            evidence: "its times have no known start: placed at the start of the run".to_owned(),
        },
    }
}

fn fit(reference: &Reference<'_>, recording: &Recording, span: TimeRange, offset_ns: i64) -> Fit {
    let placed = span.shifted(offset_ns);
    let common =
        placed.end_ns.min(reference.span.end_ns).saturating_sub(placed.start_ns.max(reference.span.start_ns));
    let shorter = placed.duration_ns().min(reference.span.duration_ns()).max(1);
    let overlap = (common.max(0) as f64 / shorter as f64).min(1.0);
    let correlation = if overlap > 0.0 { correlation(reference, recording, offset_ns) } else { None };
    Fit { offset_ns, overlap, correlation }
}

/// The best correlation of any curve of the log with the curve that it should follow.
fn correlation(reference: &Reference<'_>, recording: &Recording, offset_ns: i64) -> Option<f64> {
    recording
        .series
        .iter()
        .filter_map(|series| {
            let followed = followed_by(&series.quantity)?;
            let on_device = |curve: &&&Series| curve.quantity == *followed && curve.device == series.device;
            let any_gpu = |curve: &&&Series| curve.quantity == *followed && !curve.device.is_host();
            let curves = &reference.curves;
            let curve = curves.iter().find(on_device).or_else(|| curves.iter().find(any_gpu))?;
            correlate(series, curve, offset_ns, reference.span)
        })
        .max_by(f64::total_cmp)
}

/// Which of a run's curves a log's curve should follow.
fn followed_by(quantity: &Quantity) -> Option<&Quantity> {
    match quantity {
        Quantity::DriverUsed | Quantity::ProcessUsed | Quantity::Reserved => Some(&Quantity::Reserved),
        Quantity::Allocated => Some(&Quantity::Allocated),
        _ => None,
    }
}

/// Pearson's correlation of a log with a curve at the log's points. Before the run the process holds nothing; after its
/// recording it may hold anything.
fn correlate(log: &Series, curve: &Series, offset_ns: i64, span: TimeRange) -> Option<f64> {
    let start_ns = span.start_ns.saturating_sub(span.duration_ns() / 2);
    let rows = log.rows_in(TimeRange { start_ns, ..span }.shifted(offset_ns.saturating_neg()));
    let every = rows.len().div_ceil(SAMPLES).max(1);
    let pairs: Vec<(f64, f64)> = rows
        .step_by(every)
        .map(|row| {
            let time_ns = log.times_ns[row].saturating_add(offset_ns);
            let level = if span.contains(time_ns) { curve.at(time_ns).unwrap_or(0) } else { 0 };
            (log.bytes[row] as f64, level as f64)
        })
        .collect();
    if pairs.len() < MIN_SAMPLES {
        return None;
    }
    let count = pairs.len() as f64;
    let (mean_x, mean_y) =
        pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / count, y + pair.1 / count));
    let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        xy += (x - mean_x) * (y - mean_y);
        xx += (x - mean_x).powi(2);
        yy += (y - mean_y).powi(2);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

/// By how much a driver's log follows late: the driver is sampled, and prints the time after it looked.
fn lag_ns(reference: &Reference<'_>, recording: &Recording, offset_ns: i64) -> Option<i64> {
    let series = recording.series.iter().find(|series| series.quantity == Quantity::DriverUsed)?;
    let curve = reference
        .curves
        .iter()
        .find(|curve| curve.quantity == Quantity::Reserved && curve.device == series.device)?;
    let shifted = |lag: i64| correlate(series, curve, offset_ns - lag, reference.span);
    let unshifted = shifted(0).filter(|&value| value >= FOLLOWS)?;
    let (lag, best) = (1..=MAX_LAG_NS / LAG_STEP_NS)
        .map(|step| step * LAG_STEP_NS)
        .filter_map(|lag| Some((lag, shifted(lag)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (best > unshifted + 0.002).then_some(lag)
}

fn points_outside(recording: &Recording, offset_ns: i64, span: TimeRange) -> u64 {
    let outside = |series: &Series| {
        let inside = series.rows_in(span.shifted(offset_ns.saturating_neg())).len();
        (series.len() - inside) as u64
    };
    recording.series.iter().filter(|series| series.quantity != Quantity::Capacity).map(outside).sum()
}

/// The zone that an offset undoes, `UTC+05:30`.
fn zone_name(offset_ns: i64) -> String {
    let zone_ns = (offset_ns.saturating_neg() + DAY_NS / 2).rem_euclid(DAY_NS) - DAY_NS / 2;
    // UTC+12:15 to +14 look like UTC−11:45 to −10 of the day after; a plain offset tells them apart.
    let zone_ns =
        if (-14 * 60 * MINUTE_NS..=14 * 60 * MINUTE_NS).contains(&offset_ns) { -offset_ns } else { zone_ns };
    let minutes = zone_ns.abs() / MINUTE_NS;
    format!("UTC{}{:02}:{:02}", if zone_ns < 0 { '−' } else { '+' }, minutes / 60, minutes % 60)
}

/// Curves of a device that a log can be compared with.
pub(super) fn is_comparable(series: &Series) -> bool {
    matches!(series.quantity, Quantity::Reserved | Quantity::Allocated)
        && series.device != Device::CPU
        && series.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SourceKind;

    const SECOND: i64 = 1_000_000_000;
    const START: i64 = 1_796_104_323 * SECOND;

    fn run() -> Series {
        let mut series = Series::new(Quantity::Reserved, Device::default(), true);
        for step in 0..60 {
            series.push(START + step * SECOND, (step * step) << 20);
        }
        series
    }

    fn log(zone_minutes: i64, extra_s: i64) -> Recording {
        let mut recording = Recording::new(SourceKind::NvidiaSmi, "test", Clock::LocalWall);
        let mut series = Series::new(Quantity::DriverUsed, Device::default(), false);
        for step in -extra_s..60 + extra_s {
            let level = if (0..60).contains(&step) { (step * step + 500) << 20 } else { 0 };
            series.push(START + step * SECOND + zone_minutes * MINUTE_NS, level);
        }
        recording.span = series.span();
        recording.series.push(series);
        recording
    }

    fn found(recording: &Recording, prior_ns: Option<i64>) -> Alignment {
        let curve = run();
        let span = TimeRange::new(START, START + 60 * SECOND);
        let reference = Reference { curves: vec![&curve], span };
        align(Some(&reference), recording, prior_ns)
    }

    #[test]
    fn zones_are_found_in_quarter_hours() {
        for zone in [-720, -210, 0, 330, 345, 480, 840] {
            let alignment = found(&log(zone, 10), None);
            assert_eq!(alignment.offset_ns, -zone * MINUTE_NS, "{}", alignment.evidence);
            assert_eq!(alignment.method, AlignmentMethod::ZoneByCurve);
            assert!(alignment.confidence > 0.9, "{}", alignment.confidence);
            assert_eq!(alignment.outside, 20);
        }
        assert_eq!(zone_name(-330 * MINUTE_NS), "UTC+05:30");
        assert_eq!(zone_name(210 * MINUTE_NS), "UTC−03:30");
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
            series.push(START + minute * MINUTE_NS + SECOND + 480 * MINUTE_NS, level(minute) + (500 << 20));
        }
        recording.span = series.span();
        recording.series.push(series);
        let reference = Reference { span: curve.span().unwrap(), curves: vec![&curve] };
        assert_eq!(align(Some(&reference), &recording, None).offset_ns, -480 * MINUTE_NS);
    }

    #[test]
    fn a_log_that_overlaps_nothing_is_placed_apart() {
        let mut recording = log(0, 0);
        recording.series[0].times_ns.iter_mut().for_each(|time| *time += 40 * DAY_NS);
        recording.span = recording.series[0].span();
        let alignment = found(&recording, None);
        assert_eq!((alignment.confidence, alignment.outside), (0.0, 60));
    }
}
