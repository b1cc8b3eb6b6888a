//! What a row of figures does: stays level, climbs, climbs in stairs, saws, jumps once or warms up.

use crate::text::t;

/// Beats at the start that belong to warm-up and say nothing of growth.
const WARM_UP_BEATS: usize = 3;
/// Points beyond which the slope is fitted to every n-th.
const MAX_FITTED: usize = 400;
/// Growth below this share of the level is noise.
const MIN_RISE_SHARE: f64 = 0.002;
/// Growth below this is noise.
const MIN_RISE_BYTES: f64 = 64.0 * 1024.0;
/// A rise in the first beats below this share of the level is not worth a word.
const MIN_WARM_UP_SHARE: f64 = 0.02;

/// The shape of a row of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Too few beats to tell.
    TooShort,
    /// Nothing grows.
    Level,
    /// It grows with each beat.
    Ramp,
    /// It grows in stairs; the period in beats, when they are regular.
    Staircase(Option<usize>),
    /// It grows and falls back.
    SawTooth,
    /// It grew once, at this beat.
    SingleJump(usize),
    /// It grew in the first beats and stayed level.
    WarmUp,
}

impl Shape {
    /// Whether it goes on growing.
    pub fn is_growth(self) -> bool {
        matches!(self, Self::Ramp | Self::Staircase(_))
    }

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Self::TooShort => t!("too short to tell"),
            Self::Level => t!("level"),
            Self::Ramp => t!("ramp"),
            Self::Staircase(_) => t!("staircase"),
            Self::SawTooth => t!("saw-tooth"),
            Self::SingleJump(_) => t!("single jump"),
            Self::WarmUp => t!("warm-up, then level"),
        }
    }
}

/// What a row of figures does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Its shape.
    pub shape: Shape,
    /// Growth in bytes for each beat: the median of the slopes between all pairs of beats (Theil–Sen).
    pub per_beat_bytes: f64,
    /// The middle half of those slopes.
    pub spread_bytes: (f64, f64),
    /// By how much it grew from [`Self::from`] to [`Self::to`].
    pub rise_bytes: i64,
    /// The beat from which it grows; the end of warm-up when it doesn't.
    pub from: usize,
    /// The beat until which it grows.
    pub to: usize,
}

/// Reads the trend of one figure for each beat. `numbers` are the beats' numbers, ascending, as long as `values`.
pub fn trend(values: &[i64], numbers: &[i64]) -> Trend {
    let count = values.len().min(numbers.len());
    let (values, numbers) = (&values[..count], &numbers[..count]);
    let warm_up = WARM_UP_BEATS.min(count / 4);
    let tail = &values[warm_up..];
    let (slope, spread, concordance) = theil_sen(tail, &numbers[warm_up..]);
    let mut result = Trend {
        shape: Shape::TooShort,
        per_beat_bytes: slope,
        spread_bytes: spread,
        rise_bytes: values.last().zip(values.first()).map_or(0, |(last, first)| last - first),
        from: warm_up,
        to: count.saturating_sub(1),
    };
    if tail.len() < 4 {
        result.from = 0;
        return result;
    }
    let differences: Vec<i64> = tail.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let noise = median_deviation(&differences);
    let level = median(values) as f64;
    let threshold = (4.0 * noise).max(level.abs() * MIN_RISE_SHARE).max(MIN_RISE_BYTES);
    let warm_up_threshold = threshold.max(level.abs() * MIN_WARM_UP_SHARE);
    let (low, high) = bounds(tail);
    let swing = (high - low) as f64;

    result.shape = if is_saw_tooth(&differences, swing, threshold) {
        Shape::SawTooth
    } else if let Some(at) = single_jump(tail, swing, threshold) {
        Shape::SingleJump(warm_up + at)
    } else if has_settled(values, warm_up_threshold) {
        Shape::WarmUp
    } else if slope > 0.0 && rise_of_quarters(tail) > threshold && concordance >= 0.55 {
        stairs(&differences, threshold)
    } else if warm_up > 0 && (median(tail) - values[0]) as f64 > warm_up_threshold {
        Shape::WarmUp
    } else {
        Shape::Level
    };
    let (from, to) = match result.shape {
        Shape::Ramp | Shape::Staircase(_) => extent(tail, swing, noise),
        Shape::SingleJump(at) => (at - warm_up - 1, at - warm_up),
        _ => (0, tail.len() - 1),
    };
    (result.from, result.to) = (warm_up + from, warm_up + to);
    result.rise_bytes = values[result.to] - values[result.from];
    result
}

/// Long rises and steep falls that take back much of them.
fn is_saw_tooth(differences: &[i64], swing: f64, threshold: f64) -> bool {
    let falls: Vec<f64> = differences.iter().filter(|&&d| d < 0).map(|&d| -d as f64).collect();
    let steep = falls.iter().filter(|&&fall| fall >= 0.4 * swing).count();
    let ups = differences.iter().filter(|&&d| d > 0).count();
    let last_rise: i64 = differences.iter().sum();
    steep > 0 && swing > 1.5 * threshold && ups >= 2 * steep && (last_rise as f64) < 0.8 * swing
}

/// The index at which nearly all of the rise happens at once, with a level before and after.
fn single_jump(tail: &[i64], swing: f64, threshold: f64) -> Option<usize> {
    if tail.len() < 5 || swing <= threshold {
        return None;
    }
    let at = (1..tail.len()).max_by_key(|&at| tail[at] - tail[at - 1])?;
    let height = (tail[at] - tail[at - 1]) as f64;
    let flat = |part: &[i64]| {
        let (low, high) = bounds(part);
        (high - low) as f64 <= 0.25 * swing
    };
    let net = (tail[tail.len() - 1] - tail[0]) as f64;
    // A stair of a long period looks like one jump when only one of its steps is seen: two beats on each side at least.
    (height >= 0.75 * swing && net >= 0.6 * swing && at >= 2 && tail.len() - at >= 2)
        .then_some(())
        .filter(|()| flat(&tail[..at]) && flat(&tail[at..]))
        .map(|()| at)
}

/// Whether it rose at first and the later 60 % are level.
fn has_settled(values: &[i64], threshold: f64) -> bool {
    let later = &values[values.len() * 2 / 5..];
    let (low, high) = bounds(later);
    let rise = (median(later) - values[0]) as f64;
    // A slow climb after a high first step is still a climb.
    let climbs = rise_of_quarters(later) > threshold;
    later.len() >= 3 && rise > threshold && ((high - low) as f64) < 0.1 * rise && !climbs
}

/// The median of the last quarter minus that of the first, scaled to the whole.
fn rise_of_quarters(values: &[i64]) -> f64 {
    let quarter = (values.len() / 4).max(1);
    let rise = median(&values[values.len() - quarter..]) - median(&values[..quarter]);
    rise as f64
}

/// A ramp, or stairs with their period.
fn stairs(differences: &[i64], threshold: f64) -> Shape {
    let highest = differences.iter().copied().max().unwrap_or(0) as f64;
    let ups: f64 = differences.iter().filter(|&&d| d > 0).map(|&d| d as f64).sum();
    let at: Vec<usize> = (0..differences.len())
        .filter(|&index| {
            differences[index] as f64 >= 0.3 * highest && differences[index] as f64 > threshold / 4.0
        })
        .collect();
    let of_stairs: f64 = at.iter().map(|&index| differences[index] as f64).sum();
    if at.len() < 2 || at.len() * 2 > differences.len() + 1 || of_stairs < 0.6 * ups {
        return Shape::Ramp;
    }
    let mut gaps: Vec<i64> = at.windows(2).map(|pair| (pair[1] - pair[0]) as i64).collect();
    gaps.sort_unstable();
    let period = gaps[gaps.len() / 2];
    let slack = (period / 5).max(i64::from(period > 3));
    let regular = gaps.iter().filter(|&&gap| (gap - period).abs() <= slack).count();
    let is_regular = regular * 4 >= gaps.len() * 3;
    if period < 2 { Shape::Ramp } else { Shape::Staircase(is_regular.then_some(period as usize)) }
}

/// From where to where it grows.
fn extent(tail: &[i64], swing: f64, noise: f64) -> (usize, usize) {
    let slack = (0.02 * swing).max(noise) as i64;
    let (first, last) = (tail[0], tail[tail.len() - 1]);
    let from = tail.iter().rposition(|&value| value <= first + slack).unwrap_or(0);
    let to = tail.iter().position(|&value| value >= last - slack).unwrap_or(tail.len() - 1);
    // A level of a few beats at the end may be the last stair: growth goes on as far as anyone can tell.
    let to = if tail.len() - to <= tail.len() / 4 + 1 { tail.len() - 1 } else { to };
    if from < to { (from, to) } else { (0, tail.len() - 1) }
}

/// The median slope of all pairs, the middle half of the slopes, and by how much rising pairs outnumber falling ones
/// (−1 to 1).
fn theil_sen(values: &[i64], numbers: &[i64]) -> (f64, (f64, f64), f64) {
    let stride = values.len().div_ceil(MAX_FITTED).max(1);
    let points: Vec<(f64, f64)> = values
        .iter()
        .zip(numbers)
        .step_by(stride)
        .map(|(&value, &number)| (number as f64, value as f64))
        .collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    let (mut rising, mut falling) = (0_u64, 0_u64);
    for (nth, &(x0, y0)) in points.iter().enumerate() {
        for &(x1, y1) in &points[nth + 1..] {
            if x1 > x0 {
                slopes.push((y1 - y0) / (x1 - x0));
                rising += u64::from(y1 > y0);
                falling += u64::from(y1 < y0);
            }
        }
    }
    if slopes.is_empty() {
        return (0.0, (0.0, 0.0), 0.0);
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let quantile = |share: usize| slopes[(slopes.len() - 1) * share / 4];
    let pairs = (rising + falling).max(1) as f64;
    (quantile(2), (quantile(1), quantile(3)), (rising as f64 - falling as f64) / pairs)
}

/// The median, 0 of nothing.
pub(crate) fn median(values: &[i64]) -> i64 {
    if values.is_empty() {
        return 0;
    }
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    *sorted.select_nth_unstable(middle).1
}

/// 1.48 times the median distance from the median: like a standard deviation, but blind to a few wild values.
fn median_deviation(values: &[i64]) -> f64 {
    let middle = median(values);
    let distances: Vec<i64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.48 * median(&distances) as f64
}

fn bounds(values: &[i64]) -> (i64, i64) {
    values.iter().fold((i64::MAX, i64::MIN), |(low, high), &value| (low.min(value), high.max(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: i64 = 1 << 20;

    fn shape(values: &[i64]) -> Trend {
        let values: Vec<i64> = values.iter().map(|value| value * MIB).collect();
        let numbers: Vec<i64> = (0..values.len() as i64).collect();
        trend(&values, &numbers)
    }

    /// Small steady noise.
    fn jitter(n: i64) -> i64 {
        (n * 48_271 % 101 % 5) - 2
    }

    #[test]
    fn level_runs_do_not_grow() {
        assert_eq!(shape(&[500; 20]).shape, Shape::Level);
        let noisy: Vec<i64> = (0..40).map(|n| 500 + jitter(n)).collect();
        assert_eq!(shape(&noisy).shape, Shape::Level);
        let warm: Vec<i64> = (0..20).map(|n| if n == 0 { 100 } else { 500 + jitter(n) }).collect();
        assert_eq!(shape(&warm).shape, Shape::WarmUp);
        assert_eq!(shape(&[1, 2]).shape, Shape::TooShort);
    }

    #[test]
    fn a_ramp_has_its_slope() {
        let ramp: Vec<i64> = (0..30).map(|n| 500 + 17 * n + jitter(n)).collect();
        let trend = shape(&ramp);
        assert_eq!(trend.shape, Shape::Ramp);
        assert!((trend.per_beat_bytes / MIB as f64 - 17.0).abs() < 0.2);
        assert!(trend.spread_bytes.0 <= trend.per_beat_bytes && trend.per_beat_bytes <= trend.spread_bytes.1);
        assert_eq!((trend.from, trend.to), (3, 29));
    }

    #[test]
    fn stairs_have_their_period() {
        let stairs: Vec<i64> = (0..24).map(|n| 500 + (n / 4) * 300 + jitter(n)).collect();
        assert_eq!(shape(&stairs).shape, Shape::Staircase(Some(4)));
        let long: Vec<i64> = (0..1500).map(|n| 90 + n / 50).collect();
        assert_eq!(shape(&long).shape, Shape::Staircase(Some(50)));
    }

    #[test]
    fn a_slow_climb_after_a_high_first_step_is_a_ramp() {
        let values: Vec<i64> =
            (0..30).map(|n| if n == 0 { 4 * MIB } else { 100 * MIB + n * 160 * 1024 }).collect();
        let numbers: Vec<i64> = (0..30).collect();
        assert_eq!(trend(&values, &numbers).shape, Shape::Ramp);
    }

    #[test]
    fn a_last_beat_that_differs_is_no_growth() {
        let mut values = vec![100; 12];
        values.push(111);
        assert!(!shape(&values).shape.is_growth());
    }

    #[test]
    fn growth_that_starts_late_is_placed() {
        let late: Vec<i64> = (0..40).map(|n| 500 + (n - 20).max(0) * 30).collect();
        let trend = shape(&late);
        assert!(trend.shape.is_growth());
        assert_eq!((trend.from, trend.to), (20, 39));
    }

    #[test]
    fn jumps_and_teeth_are_no_growth() {
        let jump: Vec<i64> = (0..20).map(|n| if n < 9 { 100 } else { 500 }).collect();
        assert_eq!(shape(&jump).shape, Shape::SingleJump(9));
        let teeth: Vec<i64> = (0..24).map(|n| 100 + (n % 6) * 50).collect();
        assert_eq!(shape(&teeth).shape, Shape::SawTooth);
    }

    #[test]
    fn odd_lengths_do_not_panic() {
        for count in 0..12 {
            let _ = shape(&vec![3; count]);
            let _ = shape(&(0..count as i64).collect::<Vec<_>>());
        }
    }
}
