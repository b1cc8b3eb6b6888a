//! One set of figures without a clock, as a memory summary is: placed where a process's curves have the same figures.

use super::clock::{RefProcess, Reference, percent};
use crate::model::time::format_offset;
use crate::model::{Alignment, AlignmentMethod, Quantity, Recording, Series, TimeRange};
use crate::text::t;

/// Figures that hold for the whole of a long stretch say no better than this where in it they were printed.
const MAX_CONFIDENCE: f64 = 0.8;

/// Places figures of one instant in the middle of the stretch that has them for the longest.
pub(super) fn by_level(reference: &Reference<'_>, log: &Recording) -> Option<Alignment> {
    let (span, at_ns) = (reference.span()?, only_instant(log)?);
    let stretches: Vec<TimeRange> = reference
        .processes()
        .iter()
        .filter(|process| process.may_have_written(log))
        .flat_map(|process| stretches_with(process, log, span.end_ns))
        .collect();
    let total_ns: i64 = stretches.iter().map(|stretch| stretch.duration_ns()).fold(0, i64::saturating_add);
    let share_of = |stretch: &TimeRange| stretch.duration_ns() as f64 / total_ns.max(1) as f64;
    // Of many short ones the last: most are printed when all is over.
    let longest = stretches.iter().max_by_key(|stretch| stretch.duration_ns());
    let stretch = longest.filter(|longest| share_of(longest) >= 0.5).or(stretches.last())?;
    let share = share_of(stretch);
    let middle_ns = stretch.start_ns.saturating_add(stretch.duration_ns() / 2);
    Some(Alignment {
        offset_ns: middle_ns.saturating_sub(at_ns),
        method: AlignmentMethod::Level,
        confidence: (MAX_CONFIDENCE * share) as f32,
        outside: 0,
        evidence: t!(
            "it has no clock; the curves have its figures from {start} to {end}, which is {percent}% of the time that they have them at all: put in the middle",
            start = format_offset(stretch.start_ns, span.start_ns),
            end = format_offset(stretch.end_ns, span.start_ns),
            percent = percent(share)
        ),
        lag_ns: None,
    })
}

/// The instant of all of a log's points, if they share one.
fn only_instant(log: &Recording) -> Option<i64> {
    let mut times = log.series.iter().flat_map(|series| &series.times_ns);
    let first = *times.next()?;
    times.all(|&time_ns| time_ns == first).then_some(first)
}

/// When a process had all figures that its curves can tell; allocated memory is one of them.
fn stretches_with(process: &RefProcess<'_>, log: &Recording, end_ns: i64) -> Vec<TimeRange> {
    let mut stretches: Option<Vec<TimeRange>> = None;
    for quantity in [Quantity::Allocated, Quantity::Reserved, Quantity::Active, Quantity::Requested] {
        let of = |series: &&Series| series.quantity == quantity;
        let mut figures =
            log.series.iter().filter(of).filter_map(|series| Some((series.device, *series.bytes.first()?)));
        let mut curves = process.series.iter().filter(of).filter(|series| !series.device.is_host());
        let found = figures.next().and_then(|(device, bytes)| {
            let curve = curves.find(|curve| curve.device == device)?;
            Some(stretches_at(curve, bytes, end_ns))
        });
        stretches = match (stretches, found) {
            (Some(known), Some(found)) => Some(shared(&known, &found)),
            (None, None) => return Vec::new(),
            (known, found) => known.or(found),
        };
    }
    stretches.unwrap_or_default()
}

/// When a curve has a figure, as far as it was printed.
fn stretches_at(curve: &Series, bytes: i64, end_ns: i64) -> Vec<TimeRange> {
    let figures = bytes..bytes.saturating_add(unit_of(bytes));
    let mut stretches: Vec<TimeRange> = Vec::new();
    for (at, _) in curve.bytes.iter().enumerate().filter(|(_, value)| figures.contains(value)) {
        let until_ns = curve.times_ns.get(at + 1).copied().unwrap_or(end_ns);
        let range = TimeRange::new(curve.times_ns[at], until_ns);
        match stretches.last_mut() {
            Some(last) if last.end_ns == range.start_ns => last.end_ns = range.end_ns,
            _ => stretches.push(range),
        }
    }
    stretches
}

/// `memory_summary()` cuts figures to whole KiB or MiB; counters are exact.
fn unit_of(bytes: i64) -> i64 {
    [1 << 20, 1 << 10].into_iter().find(|unit| bytes != 0 && bytes % unit == 0).unwrap_or(1)
}

/// What two lists of ascending stretches share.
fn shared(a: &[TimeRange], b: &[TimeRange]) -> Vec<TimeRange> {
    let (mut at_a, mut at_b, mut found) = (0, 0, Vec::new());
    while let (Some(one), Some(other)) = (a.get(at_a), b.get(at_b)) {
        let (start_ns, end_ns) = (one.start_ns.max(other.start_ns), one.end_ns.min(other.end_ns));
        if start_ns < end_ns {
            found.push(TimeRange { start_ns, end_ns });
        }
        if one.end_ns <= other.end_ns {
            at_a += 1;
        } else {
            at_b += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Clock, Device, SourceKind};

    const MIB: i64 = 1 << 20;

    fn series(quantity: Quantity, points: &[(i64, i64)]) -> Series {
        let mut series = Series::new(quantity, Device::default(), true);
        points.iter().for_each(|&(time_ns, bytes)| series.push(time_ns, bytes));
        series
    }

    fn placed(figures: &[(Quantity, i64)]) -> Option<(i64, f32)> {
        let curves = [
            series(Quantity::Allocated, &[(100, MIB), (200, 5 * MIB + 900), (300, MIB), (500, 7 * MIB)]),
            series(Quantity::Reserved, &[(100, 2 * MIB), (190, 8 * MIB)]),
        ];
        let process = RefProcess { rank: None, series: &curves, steps: &[], covers_run: true };
        let reference = Reference::new(vec![process], Some(TimeRange::new(100, 900)));
        let mut log = Recording::new(SourceKind::MemorySummary, "test", Clock::Order);
        log.series =
            figures.iter().map(|(quantity, bytes)| series(quantity.clone(), &[(7, *bytes)])).collect();
        by_level(&reference, &log).map(|found| (found.offset_ns + 7, found.confidence))
    }

    #[test]
    fn figures_are_placed_where_the_curves_have_them() {
        // Printed as 5 MiB: cut, not rounded.
        assert_eq!(placed(&[(Quantity::Allocated, 5 * MIB)]), Some((250, 0.8)));
        assert_eq!(placed(&[(Quantity::Allocated, 7 * MIB)]), Some((700, 0.8)), "to the end");
        // 1 MiB is there twice, for 100 and for 200 ns; what is reserved tells them apart.
        assert_eq!(placed(&[(Quantity::Allocated, MIB)]), Some((400, (0.8 * 2.0 / 3.0) as f32)));
        let first = [(Quantity::Allocated, MIB), (Quantity::Reserved, 2 * MIB)];
        assert_eq!(placed(&first), Some((145, 0.8)));
        assert_eq!(placed(&[(Quantity::Allocated, 5 * MIB + 1)]), None, "counters are exact");
        assert_eq!(placed(&[(Quantity::Reserved, 2 * MIB)]), None, "reserved alone says little");
        assert_eq!(placed(&[]), None);
    }
}
