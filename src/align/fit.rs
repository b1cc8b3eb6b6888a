//! How well a log's curve fits a curve on Unix time, at one offset.

use crate::model::{Quantity, Series, TimeRange};

/// The finest resolution of a reference curve.
const BUCKET_NS: i64 = 50_000_000;
/// The most buckets of a reference curve; longer ones get coarser.
const MAX_BUCKETS: i64 = 100_000;
/// The most points of a log that are compared.
const MAX_POINTS: usize = 2_000;
/// How far a printed figure's time may lie from the moment when it held: logs give whole seconds, and print late.
const PRINT_SLACK_NS: i64 = 1_500_000_000;
/// Driver figures may lie this much below reserved, since both are read at slightly different moments.
const DRIVER_SLACK_BYTES: i64 = 64 << 20;
/// A correlation over fewer points says nothing.
const MIN_POINTS: usize = 4;

/// A reference curve by equal buckets of time: lowest, highest and last value of each.
pub(super) struct Buckets {
    start_ns: i64,
    width_ns: i64,
    lowest: Vec<i64>,
    highest: Vec<i64>,
    last: Vec<i64>,
}

impl Buckets {
    /// `None` for a curve without points.
    pub(super) fn new(series: &Series) -> Option<Self> {
        let span = series.span()?;
        let width_ns = (span.duration_ns() / MAX_BUCKETS).max(BUCKET_NS);
        let count = (span.duration_ns() / width_ns + 1) as usize;
        let (mut lowest, mut highest) = (vec![i64::MAX; count], vec![i64::MIN; count]);
        let mut last = vec![i64::MIN; count];
        for (&time_ns, &bytes) in series.times_ns.iter().zip(&series.bytes) {
            let bucket = ((time_ns.saturating_sub(span.start_ns) / width_ns) as usize).min(count - 1);
            lowest[bucket] = lowest[bucket].min(bytes);
            highest[bucket] = highest[bucket].max(bytes);
            last[bucket] = bytes;
        }
        // The level from before holds on in every bucket until its first change.
        let mut level = series.bytes.first().copied()?;
        for bucket in 0..count {
            lowest[bucket] = lowest[bucket].min(level);
            highest[bucket] = highest[bucket].max(level);
            if last[bucket] == i64::MIN {
                last[bucket] = level;
            }
            level = last[bucket];
        }
        Some(Self { start_ns: span.start_ns, width_ns, lowest, highest, last })
    }

    fn bucket(&self, time_ns: i64) -> Option<usize> {
        let bucket = time_ns.checked_sub(self.start_ns)?.div_euclid(self.width_ns);
        usize::try_from(bucket).ok().filter(|&bucket| bucket < self.last.len())
    }

    fn at(&self, time_ns: i64) -> Option<i64> {
        self.bucket(time_ns).map(|bucket| self.last[bucket])
    }

    /// The value that held at a moment, as far as buckets tell: the last one of the bucket before.
    fn before(&self, time_ns: i64) -> Option<i64> {
        self.bucket(time_ns).map(|bucket| self.last[bucket.saturating_sub(1)])
    }

    /// The lowest and highest value within `slack_ns` of a moment that lies inside.
    fn near(&self, time_ns: i64, slack_ns: i64) -> Option<(i64, i64)> {
        let middle = self.bucket(time_ns)?;
        let reach = (slack_ns / self.width_ns) as usize + 1;
        let range = middle.saturating_sub(reach)..(middle + reach + 1).min(self.last.len());
        Some((*self.lowest[range.clone()].iter().min()?, *self.highest[range].iter().max()?))
    }
}

/// How a log's curve and a reference curve compare at an offset.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fit {
    /// 0 to 1.
    pub score: f64,
    /// Pearson's r, where both vary.
    pub correlation: Option<f64>,
    /// The share of printed figures that held at about their time.
    pub hits: Option<f64>,
}

/// Whether curves of these two quantities show the same thing, and may be compared.
pub(super) fn is_comparable(of_log: &Quantity, of_reference: &Quantity) -> bool {
    match of_log {
        Quantity::DriverUsed | Quantity::ProcessUsed | Quantity::InstanceUsed(_) | Quantity::Reserved => {
            *of_reference == Quantity::Reserved
        }
        Quantity::Allocated => *of_reference == Quantity::Allocated,
        Quantity::Other(_) => matches!(of_reference, Quantity::Allocated | Quantity::Reserved),
        _ => false,
    }
}

/// Whether a quantity comes from the driver, which counts more than the allocator.
pub(super) fn is_drivers(quantity: &Quantity) -> bool {
    matches!(quantity, Quantity::DriverUsed | Quantity::ProcessUsed | Quantity::InstanceUsed(_))
}

/// Compares a log's curve, moved by `offset_ns`, with a reference curve. `covers_run` says that the process did not
/// live outside the reference, so that it held nothing there. `None` when fewer than one point lies inside.
pub(super) fn fit(log: &Series, offset_ns: i64, reference: &Buckets, covers_run: bool) -> Option<Fit> {
    let points: Vec<(i64, i64)> =
        sampled(log).map(|(time_ns, bytes)| (time_ns.saturating_add(offset_ns), bytes)).collect();
    let inside: Vec<(i64, i64)> =
        points.iter().filter_map(|&(time_ns, bytes)| Some((bytes, reference.at(time_ns)?))).collect();
    if inside.is_empty() {
        return None;
    }
    let r_inside = pearson(&inside);
    if is_drivers(&log.quantity) {
        let r_whole = (covers_run && log.quantity == Quantity::DriverUsed).then(|| {
            let all: Vec<(i64, i64)> =
                points.iter().map(|&(time_ns, bytes)| (bytes, reference.at(time_ns).unwrap_or(0))).collect();
            pearson(&all)
        });
        let known: Vec<f64> = [r_inside, r_whole.flatten()].into_iter().flatten().collect();
        let above = inside.iter().filter(|(log, known)| log + DRIVER_SLACK_BYTES >= *known).count();
        let above = above as f64 / inside.len() as f64;
        let correlation = (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64);
        let score = 0.7 * correlation.unwrap_or(0.0).max(0.0) + 0.3 * above;
        return Some(Fit { score, correlation, hits: None });
    }
    let hits = points
        .iter()
        .filter_map(|&(time_ns, bytes)| {
            let (lowest, highest) = reference.near(time_ns, PRINT_SLACK_NS)?;
            let rounding = (bytes / 1_000).max(1 << 17);
            Some(lowest - rounding <= bytes && bytes <= highest + rounding)
        })
        .filter(|&hit| hit)
        .count() as f64
        / inside.len() as f64;
    let score = r_inside.map_or(hits, |r| 0.7 * hits + 0.3 * r.max(0.0));
    Some(Fit { score, correlation: r_inside, hits: Some(hits) })
}

/// The lags that a sampler is searched for: it may look this much ahead, since both clocks are read by programs,
const MOST_AHEAD_NS: i64 = 5_000_000_000;
/// or come this much behind.
const MOST_BEHIND_NS: i64 = 20_000_000_000;
/// A lag over fewer points says nothing.
const MIN_LAG_POINTS: usize = 20;
/// Curves that follow each other less tell no lag.
const MIN_LAG_CORRELATION: f64 = 0.8;
/// A lag is better than another when it raises the correlation by this much.
const BETTER_BY: f64 = 0.002;
/// Curves that repeat themselves fit about as well one period on: of peaks this near to the best, the nearest counts.
const PEAKS_WITHIN: f64 = 0.02;

/// How well a sampled curve follows the reference, by its lag.
pub(super) struct Lags {
    step_ns: i64,
    /// The most ahead, in steps.
    first_step: i64,
    /// Correlation at each multiple of the step, from the most ahead on.
    correlations: Vec<Option<f64>>,
}

impl Lags {
    /// For the part of a log's curve that lies in `range` at an offset. `None` where it follows the reference at no lag.
    pub(super) fn new(log: &Series, range: TimeRange, offset_ns: i64, reference: &Buckets) -> Option<Self> {
        let points: Vec<(i64, i64)> = log
            .times_ns
            .iter()
            .zip(&log.bytes)
            .map(|(&time_ns, &bytes)| (time_ns.saturating_add(offset_ns), bytes))
            .filter(|&(time_ns, _)| range.contains(time_ns))
            .collect();
        let points: Vec<(i64, i64)> = thinned(points.len(), points.into_iter()).collect();
        let pairs = |lag_ns: i64| -> Vec<(i64, i64)> {
            let known = |&(time_ns, bytes): &(i64, i64)| {
                Some((bytes, reference.before(time_ns.saturating_sub(lag_ns))?))
            };
            points.iter().filter_map(known).collect()
        };
        // The few that are left at a long lag may fit anything.
        let enough = MIN_LAG_POINTS.max(pairs(0).len() * 3 / 4);
        let correlation = |lag_ns: i64| {
            let pairs = pairs(lag_ns);
            (pairs.len() >= enough).then(|| pearson(&pairs)).flatten()
        };
        let step_ns = reference.width_ns;
        let first_step = -(MOST_AHEAD_NS / step_ns);
        let steps = first_step..=MOST_BEHIND_NS / step_ns;
        let correlations = steps.map(|step| correlation(step * step_ns)).collect();
        let lags = Self { step_ns, first_step, correlations };
        (lags.highest()? > MIN_LAG_CORRELATION).then_some(lags)
    }

    /// The correlation at a lag.
    pub(super) fn at(&self, lag_ns: i64) -> Option<f64> {
        let index = lag_ns / self.step_ns - self.first_step;
        self.correlations.get(usize::try_from(index).ok()?).copied().flatten()
    }

    fn highest(&self) -> Option<f64> {
        self.correlations.iter().flatten().copied().max_by(f64::total_cmp)
    }

    /// The lag at which the curve follows best; in the middle where several are equally good, as they are between two
    /// samples.
    pub(super) fn best_ns(&self) -> Option<i64> {
        let enough = self.highest()? - PEAKS_WITHIN;
        let mut peaks = Vec::new();
        let mut at = 0_usize;
        for level in self.correlations.chunk_by(|a, b| a.zip(*b).is_some_and(|(a, b)| (a - b).abs() < 1e-9)) {
            let before = at.checked_sub(1).and_then(|before| self.correlations[before]);
            let after = self.correlations.get(at + level.len()).copied().flatten();
            let is_peak = |r: f64| r >= enough && before.is_none_or(|b| b < r) && after.is_none_or(|a| a < r);
            if level[0].is_some_and(is_peak) {
                peaks.push((self.first_step * 2 + (at * 2 + level.len() - 1) as i64) * self.step_ns / 2);
            }
            at += level.len();
        }
        peaks.into_iter().min_by_key(|lag_ns| lag_ns.abs())
    }

    /// Whether the curve follows clearly better at one lag than at another.
    pub(super) fn is_better(&self, lag_ns: i64, than_ns: i64) -> bool {
        matches!((self.at(lag_ns), self.at(than_ns)), (Some(one), Some(other)) if one > other + BETTER_BY)
    }
}

/// So many points, or fewer from everywhere when there are too many.
fn thinned(count: usize, points: impl Iterator<Item = (i64, i64)>) -> impl Iterator<Item = (i64, i64)> {
    points.step_by(count.div_ceil(MAX_POINTS).max(1))
}

/// The points of a curve, thinned.
fn sampled(series: &Series) -> impl Iterator<Item = (i64, i64)> {
    thinned(series.len(), series.times_ns.iter().copied().zip(series.bytes.iter().copied()))
}

/// Pearson's correlation; `None` for too few points or where one side is level.
pub(crate) fn pearson(pairs: &[(i64, i64)]) -> Option<f64> {
    if pairs.len() < MIN_POINTS {
        return None;
    }
    let count = pairs.len() as f64;
    let mean_x = pairs.iter().map(|pair| pair.0 as f64).sum::<f64>() / count;
    let mean_y = pairs.iter().map(|pair| pair.1 as f64).sum::<f64>() / count;
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for &(x, y) in pairs {
        let (x, y) = (x as f64 - mean_x, y as f64 - mean_y);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Device;

    const S: i64 = 1_000_000_000;

    fn series(quantity: Quantity, points: &[(i64, i64)]) -> Series {
        let mut series = Series::new(quantity, Device::cuda(0), true);
        points.iter().for_each(|&(s, mib)| series.push(s * S, mib << 20));
        series
    }

    #[test]
    fn a_level_holds_until_it_changes() {
        let buckets = Buckets::new(&series(Quantity::Reserved, &[(0, 10), (10, 20), (20, 0)])).unwrap();
        assert_eq!(buckets.at(9 * S), Some(10 << 20));
        assert_eq!(buckets.at(10 * S + S / 2), Some(20 << 20));
        assert_eq!(buckets.near(10 * S - S / 2, S), Some((10 << 20, 20 << 20)));
        assert_eq!(buckets.at(-1), None);
        assert_eq!(buckets.at(21 * S), None);
    }

    #[test]
    fn the_right_offset_fits_best() {
        let reference = series(Quantity::Reserved, &[(0, 0), (10, 500), (20, 900), (30, 700), (40, 0)]);
        let buckets = Buckets::new(&reference).unwrap();
        let driver: Vec<(i64, i64)> =
            (-10..50).map(|s| (s, reference.at(s * S).map_or(0, |bytes| (bytes >> 20) + 500))).collect();
        let log = series(Quantity::DriverUsed, &driver);
        let score = |offset_s: i64| fit(&log, offset_s * S, &buckets, true).unwrap().score;
        assert!(score(0) > 0.9, "{}", score(0));
        for wrong in [-15, -5, 5, 15] {
            assert!(score(wrong) < score(0) - 0.1, "{wrong}: {}", score(wrong));
        }
        let printed = series(Quantity::Reserved, &[(11, 500), (21, 900), (31, 700)]);
        assert_eq!(fit(&printed, 0, &buckets, true).unwrap().hits, Some(1.0));
        assert!(fit(&printed, -10 * S, &buckets, true).unwrap().hits < Some(0.5));
    }

    #[test]
    fn correlation_needs_something_that_varies() {
        assert_eq!(pearson(&[(1, 1), (2, 2), (3, 3), (4, 4)]), Some(1.0));
        assert_eq!(pearson(&[(1, 1), (1, 2), (1, 3), (1, 4)]), None);
        assert_eq!(pearson(&[(1, 1), (2, 2)]), None);
    }
}
