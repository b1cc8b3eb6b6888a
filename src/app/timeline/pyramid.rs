//! A curve that can be drawn at any zoom: its points, and their lowest and highest in ever larger buckets.

use std::ops::Range;

/// How many entries of a level make one of the next.
const FAN: usize = 16;

/// Points in the order of time with a pyramid of extremes over them.
#[derive(Clone, Debug, Default)]
pub struct Pyramid {
    /// The times, ascending.
    pub times_ns: Vec<i64>,
    /// The figures.
    pub bytes: Vec<i64>,
    /// `levels[k]` holds (lowest, highest) of [`FAN`]^(k+1) points each.
    levels: Vec<Vec<(i64, i64)>>,
}

impl Pyramid {
    /// Builds the levels.
    pub fn new(times_ns: Vec<i64>, bytes: Vec<i64>) -> Self {
        let merge = |chunk: &[(i64, i64)]| {
            chunk.iter().fold((i64::MAX, i64::MIN), |(low, high), &(l, h)| (low.min(l), high.max(h)))
        };
        let mut levels: Vec<Vec<(i64, i64)>> = Vec::new();
        let points: Vec<(i64, i64)> = bytes.iter().map(|&value| (value, value)).collect();
        let mut below = points;
        while below.len() > FAN {
            below = below.chunks(FAN).map(merge).collect();
            levels.push(below.clone());
        }
        Self { times_ns, bytes, levels }
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.times_ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times_ns.is_empty()
    }

    /// The index of the first point at or after `time_ns`.
    pub fn first_at(&self, time_ns: i64) -> usize {
        self.times_ns.partition_point(|&time| time < time_ns)
    }

    /// The value of the last point at or before `time_ns`.
    pub fn at(&self, time_ns: i64) -> Option<i64> {
        let after = self.times_ns.partition_point(|&time| time <= time_ns);
        self.bytes.get(after.checked_sub(1)?).copied()
    }

    /// The value that was recorded at `time_ns`: not before the first point, and after the last one only for the time that
    /// lies between two points on average. Both ends are `slack_ns` wider.
    pub fn recorded_at(&self, time_ns: i64, slack_ns: i64) -> Option<i64> {
        let (first, last) = (*self.times_ns.first()?, *self.times_ns.last()?);
        let interval_ns = last.saturating_sub(first) / (self.len() as i64 - 1).max(1);
        let end_ns = last.saturating_add(interval_ns.max(slack_ns));
        let is_recorded = (first.saturating_sub(slack_ns)..=end_ns).contains(&time_ns);
        is_recorded.then(|| self.at(time_ns.max(first))).flatten()
    }

    /// The lowest and highest of some points.
    pub fn extremes(&self, points: Range<usize>) -> Option<(i64, i64)> {
        let (mut start, mut end) = (points.start, points.end.min(self.len()));
        if start >= end {
            return None;
        }
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let mut level = 0;
        loop {
            let mut fold = |entries: Range<usize>| {
                for entry in entries {
                    let (l, h) = match level {
                        0 => (self.bytes[entry], self.bytes[entry]),
                        _ => self.levels[level - 1][entry],
                    };
                    low = low.min(l);
                    high = high.max(h);
                }
            };
            let (up_start, up_end) = (start.div_ceil(FAN), end / FAN);
            if level == self.levels.len() || up_start >= up_end {
                fold(start..end);
                return Some((low, high));
            }
            fold(start..up_start * FAN);
            fold(up_end * FAN..end);
            (start, end, level) = (up_start, up_end, level + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_those_of_a_plain_scan() {
        let bytes: Vec<i64> = (0..5_000_i64).map(|i| (i * 7_919) % 1_009 - 300).collect();
        let pyramid = Pyramid::new((0..5_000).collect(), bytes.clone());
        for (start, end) in [(0, 5_000), (1, 4_999), (17, 18), (15, 33), (256, 4_096), (4_990, 9_000)] {
            let plain = &bytes[start..end.min(bytes.len())];
            let expected = (*plain.iter().min().unwrap(), *plain.iter().max().unwrap());
            assert_eq!(pyramid.extremes(start..end), Some(expected), "{start}..{end}");
        }
        assert_eq!(pyramid.extremes(7..7), None);
        assert_eq!(pyramid.at(-1), None);
        assert_eq!(pyramid.at(3), Some(bytes[3]));
    }

    #[test]
    fn nothing_is_told_of_times_that_were_not_recorded() {
        let curve = Pyramid::new(vec![100, 200, 300], vec![1, 2, 3]);
        let told = [89, 90, 250, 400, 401].map(|time_ns| curve.recorded_at(time_ns, 10));
        assert_eq!(told, [None, Some(1), Some(2), Some(3), None]);
        let point = Pyramid::new(vec![100], vec![1]);
        assert_eq!([89, 110, 111].map(|time_ns| point.recorded_at(time_ns, 10)), [None, Some(1), None]);
    }
}
