//! Curves as one floor and one peak for each beat, and the curves that no file has: driver minus reserved.

use rustc_hash::FxHashMap;

use super::super::{Rhythm, Selection};
use crate::model::{Device, ProcessId, Quantity, Series, Session, SourceId, TimeRange};
use crate::text::msg;

/// What a derived curve of the driver's figure minus the allocator's is called.
pub const DRIVER_MINUS_RESERVED: &str = msg!("driver − reserved");

/// A curve of a session on Unix time.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The file it comes from, when it doesn't belong to a process.
    pub source: Option<SourceId>,
    /// The process it belongs to.
    pub process: Option<ProcessId>,
    /// The points.
    pub series: Series,
}

/// The lowest and the highest figure of a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Which beat of the rhythm.
    pub beat: usize,
    /// The lowest figure: what stays.
    pub floor_bytes: i64,
    /// The highest figure.
    pub peak_bytes: i64,
}

/// The selected curves of one quantity; of several that tell the same, the one with the longest span.
pub fn curves_of(session: &Session, selection: Selection, quantity: &Quantity) -> Vec<Curve> {
    let mut found: Vec<Curve> = Vec::new();
    let mut places = FxHashMap::default();
    for (source, process, series, offset_ns) in session.curves() {
        let is_selected = selection.process.is_none_or(|one| process.is_none_or(|process| process == one));
        if series.quantity != *quantity || !is_selected || !selection.device.admits(series.device) {
            continue;
        }
        let mut curve = Curve { source, process, series: series.clone() };
        curve.series.times_ns.iter_mut().for_each(|time| *time = time.saturating_add(offset_ns));
        let source = source.filter(|_| process.is_none());
        let place = *places.entry((process, source, series.device, series.pid)).or_insert(found.len());
        match found.get_mut(place) {
            Some(other) if span_ns(&other.series) < span_ns(&curve.series) => *other = curve,
            Some(_) => {}
            None => found.push(curve),
        }
    }
    found
}

fn span_ns(series: &Series) -> i64 {
    series.span().map_or(0, TimeRange::duration_ns)
}

/// The driver's figure minus what the session's processes had reserved at the moment, within their recordings.
pub fn driver_minus_reserved(session: &Session, selection: Selection) -> Vec<Curve> {
    let reserved = curves_of(session, selection, &Quantity::Reserved);
    let Some(recorded) =
        selection.processes(session).map(|id| session.process(id).recorded).reduce(TimeRange::union)
    else {
        return Vec::new();
    };
    if reserved.is_empty() {
        return Vec::new();
    }
    let devices_of = |device: Device| {
        // Inside a container a process numbers its devices from 0: without a twin, one device stands for the other.
        let same: Vec<&Curve> = reserved.iter().filter(|curve| curve.series.device == device).collect();
        if same.is_empty() { reserved.iter().collect() } else { same }
    };
    curves_of(session, selection, &Quantity::DriverUsed)
        .into_iter()
        .map(|mut curve| {
            let others = devices_of(curve.series.device);
            let mut series = Series::new(
                Quantity::Other(DRIVER_MINUS_RESERVED.to_owned()),
                curve.series.device,
                curve.series.is_step,
            );
            for (&time_ns, &bytes) in curve.series.times_ns.iter().zip(&curve.series.bytes) {
                if recorded.contains(time_ns) {
                    let reserved: i64 = others.iter().filter_map(|other| other.series.at(time_ns)).sum();
                    series.push(time_ns, bytes - reserved);
                }
            }
            curve.series = series;
            curve
        })
        .filter(|curve| !curve.series.is_empty())
        .collect()
}

/// A floor and a peak for each beat that the curve covers.
pub fn beats(series: &Series, rhythm: &Rhythm) -> Vec<Beat> {
    let mut beats = Vec::with_capacity(rhythm.len());
    for beat in 0..rhythm.len() {
        let range = rhythm.range_of(beat);
        let rows = series.rows_in(range);
        let inside = series.bytes.get(rows).unwrap_or_default();
        // What holds at the beat's start counts: for samples only when there are none inside.
        let before = series.at(range.start_ns).filter(|_| series.is_step || inside.is_empty());
        let is_over = series.times_ns.last().is_none_or(|&last| last < range.start_ns);
        if is_over {
            break;
        }
        let figures = inside.iter().copied().chain(before);
        let bounds = figures.fold(None, |bounds: Option<(i64, i64)>, figure| {
            Some(bounds.map_or((figure, figure), |(low, high)| (low.min(figure), high.max(figure))))
        });
        if let Some((floor_bytes, peak_bytes)) = bounds {
            beats.push(Beat { beat, floor_bytes, peak_bytes });
        }
    }
    beats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_hold_what_was_there_at_the_start() {
        let mut series = Series::new(Quantity::Allocated, Device::default(), true);
        for (time, bytes) in [(0, 10), (5, 30), (12, 20), (25, 40)] {
            series.push(time, bytes);
        }
        let rhythm = Rhythm::of_windows(TimeRange::new(0, 40), 4).expect("a rhythm");
        let figures: Vec<_> =
            beats(&series, &rhythm).iter().map(|beat| (beat.floor_bytes, beat.peak_bytes)).collect();
        assert_eq!(figures, [(10, 30), (20, 30), (20, 40)]);
    }
}
