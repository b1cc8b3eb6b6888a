//! Ranks side by side: how much each grew, peaked and kept, and which stand out.

use rayon::prelude::*;

use super::findings::{Finding, findings};
use super::{Index, Query, Selection, Totals, growth, kept};
use crate::model::{Process, ProcessId, Quantity, Series, TimeRange};

/// The figures that tell processes apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSummary {
    /// The process.
    pub process: ProcessId,
    /// How much of allocated memory stayed, on average, with each step of the range; `None` without a rhythm or a curve.
    pub growth_per_step_bytes: Option<i64>,
    /// The highest allocated, over all devices that are looked at.
    pub peak_bytes: Option<u64>,
    /// The survivors of the range.
    pub survivors: Totals,
    /// The first finding's title.
    pub finding: Option<String>,
}

/// The processes that a query looks at, in the session's order. `found` is what was found by the query, where that is
/// known: when it looks at one process these are its findings, and aren't worked out again.
pub fn compare_processes(index: &Index, query: &Query, found: Option<&[Finding]>) -> Vec<ProcessSummary> {
    let ids: Vec<ProcessId> = query.selection.processes(&index.session).collect();
    let found = found.filter(|_| ids.len() == 1);
    ids.par_iter().map(|&id| summarize(index, query, id, found)).collect()
}

fn summarize(index: &Index, query: &Query, id: ProcessId, found: Option<&[Finding]>) -> ProcessSummary {
    let process = index.session.process(id);
    let query = Query { selection: Selection { process: Some(id), ..query.selection }, ..*query };
    let mut survivors = Totals::default();
    for row in kept(&index.session, &query) {
        survivors.add(row.get(&index.session).size_bytes);
    }
    let title = |found: &[Finding]| found.first().map(|finding| finding.title.clone());
    ProcessSummary {
        process: id,
        growth_per_step_bytes: growth_per_step(index, id, query.selection, query.range),
        peak_bytes: allocated(process, query.selection)
            .filter_map(|series| series.bytes.iter().max())
            .map(|&bytes| u64::try_from(bytes).unwrap_or(0))
            .reduce(u64::saturating_add),
        survivors,
        finding: found.map_or_else(|| title(&findings(index, &query)), title),
    }
}

fn allocated(process: &Process, selection: Selection) -> impl Iterator<Item = &Series> {
    process.series.iter().filter(move |series| {
        series.quantity == Quantity::Allocated && selection.device.admits(series.device)
    })
}

/// In fewer steps each one weighs too much for a slope: what every fourth one keeps would be lost.
const MIN_FITTED_BEATS: usize = 12;

/// The slope of what stays after each step, so that neither warm-up nor a single jump counts as growth. Of few steps the
/// change of what stays, but for the run's first step, which sets up.
fn growth_per_step(index: &Index, id: ProcessId, selection: Selection, range: TimeRange) -> Option<i64> {
    let rhythm = growth::rhythm_of(index, id)?;
    let slope = |series: &Series| {
        let beats = growth::beats(series, &rhythm);
        let is_inside = |beat: &&growth::Beat| range.contains(rhythm.range_of(beat.beat).start_ns);
        let inside = beats.iter().filter(is_inside).count();
        let first = beats.iter().position(|beat| is_inside(&beat)).unwrap_or(0);
        if inside >= MIN_FITTED_BEATS {
            let (numbers, floors): (Vec<i64>, Vec<i64>) = beats[first..first + inside]
                .iter()
                .map(|beat| (rhythm.number(beat.beat), beat.floor_bytes))
                .unzip();
            return Some(growth::trend(&floors, &numbers).per_beat_bytes.round() as i64);
        }
        // What a beat adds is in the floor of the next one.
        let sets_up = first == 0 && inside > 1;
        let last = (first + inside).min(beats.len().saturating_sub(1));
        if let [before, .., after] = beats.get(first + usize::from(sets_up)..=last).unwrap_or_default() {
            let steps = rhythm.number(after.beat) - rhythm.number(before.beat);
            return Some((after.floor_bytes - before.floor_bytes) / steps.max(1));
        }
        let start = series.at(range.start_ns).or_else(|| series.bytes.first().copied())?;
        Some(series.at(range.end_ns)?.saturating_sub(start))
    };
    allocated(index.session.process(id), selection).filter_map(slope).reduce(i64::saturating_add)
}

/// Which of several figures stand out: more than twice the median of the others, and `least_bytes` more. Against the
/// others rather than against all, so that one of two can.
pub fn outliers(figures_bytes: &[u64], least_bytes: u64) -> Vec<bool> {
    let mut sorted = figures_bytes.to_vec();
    sorted.sort_unstable();
    let stands_out = |&bytes: &u64| {
        let own = sorted.partition_point(|&other| other < bytes);
        // The middle of what is left when the figure itself is taken out.
        let Some(middle) = sorted.len().checked_sub(2).map(|last| last / 2) else { return false };
        let median = sorted[if middle < own { middle } else { middle + 1 }];
        bytes > median.saturating_mul(2).saturating_add(least_bytes)
    };
    figures_bytes.iter().map(stands_out).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_rank_stands_out_against_the_others() {
        const MIB: u64 = 1 << 20;
        let outliers = |figures: &[u64]| super::outliers(figures, MIB);
        assert!(outliers(&[]).is_empty());
        assert_eq!(outliers(&[50 * MIB]), [false]);
        assert_eq!(outliers(&[0, 50 * MIB]), [false, true]);
        assert_eq!(outliers(&[40 * MIB, 50 * MIB]), [false, false]);
        assert_eq!(outliers(&[3 * MIB, 3 * MIB, 90 * MIB, 4 * MIB]), [false, false, true, false]);
        assert_eq!(
            outliers(&[90 * MIB, 90 * MIB, 4 * MIB, 4 * MIB, 4 * MIB]),
            [true, true, false, false, false]
        );
        assert_eq!(outliers(&[0, 900_000]), [false, false]);
    }
}
