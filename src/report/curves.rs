//! Curves with fewer points, which keep their first, last, lowest and highest values.

use crate::model::Series;

/// Into how many stretches a long curve is cut.
const STRETCHES: usize = 400;

/// The times and figures of a curve, moved by `offset_ns`. A long one keeps for each stretch of equally many points
/// the first, the lowest, the highest and the last.
pub(super) fn thin(series: &Series, offset_ns: i64) -> (Vec<i64>, Vec<i64>) {
    let count = series.times_ns.len().min(series.bytes.len());
    let mut keep: Vec<usize> = Vec::new();
    if count <= STRETCHES * 4 {
        keep.extend(0..count);
    } else {
        for stretch in 0..STRETCHES {
            let (start, end) = (stretch * count / STRETCHES, (stretch + 1) * count / STRETCHES);
            let lowest = (start..end).min_by_key(|&point| series.bytes[point]);
            let highest = (start..end).max_by_key(|&point| series.bytes[point]);
            let mut points: Vec<usize> =
                [Some(start), lowest, highest, end.checked_sub(1)].into_iter().flatten().collect();
            points.sort_unstable();
            points.dedup();
            keep.extend(points);
        }
    }
    keep.into_iter()
        .map(|point| (series.times_ns[point].saturating_add(offset_ns), series.bytes[point]))
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Device, Quantity};

    #[test]
    fn a_long_curve_keeps_its_peak_and_ends() {
        let mut series = Series::new(Quantity::Allocated, Device::cuda(0), true);
        for point in 0..100_000 {
            series.push(point, if point == 54_321 { 1_000_000 } else { point % 7 });
        }
        let (times, bytes) = thin(&series, 10);
        assert!(times.len() <= STRETCHES * 4 && times.is_sorted());
        assert_eq!(bytes.iter().max(), Some(&1_000_000));
        assert_eq!((times.first(), times.last()), (Some(&10), Some(&100_009)));
    }
}
