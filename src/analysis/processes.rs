//! Ranks side by side: how much each grew, peaked and kept, and which stand out.

use rayon::prelude::*;

use super::findings::{Finding, findings};
use super::{Index, Query, Selection, Totals, kept};
use crate::model::{Process, ProcessId, Quantity, TimeRange};

/// A rank that keeps less than this is no outlier, however little the others keep.
const OUTLIER_BYTES: u64 = 1 << 20;

/// The figures that tell processes apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSummary {
    /// The process.
    pub process: ProcessId,
    /// How much allocated memory grew per step of the range; `None` without steps or a curve.
    pub growth_per_step_bytes: Option<i64>,
    /// The highest allocated, over all devices that are looked at.
    pub peak_bytes: Option<u64>,
    /// The survivors of the range.
    pub survivors: Totals,
    /// The first finding's title.
    pub finding: Option<String>,
}

/// The processes that a query looks at, in the session's order. `found` is what was found by the query: where it looks
/// at one process these are its findings, and aren't worked out again.
pub fn compare_processes(index: &Index, query: &Query, found: &[Finding]) -> Vec<ProcessSummary> {
    let ids: Vec<ProcessId> = query.selection.processes(&index.session).collect();
    let found = (ids.len() == 1).then_some(found);
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
        growth_per_step_bytes: growth_per_step(process, query.selection, query.range),
        peak_bytes: allocated(process, query.selection)
            .filter_map(|series| series.bytes.iter().max())
            .map(|&bytes| u64::try_from(bytes).unwrap_or(0))
            .reduce(u64::saturating_add),
        survivors,
        finding: found.map_or_else(|| title(&findings(index, &query)), title),
    }
}

fn allocated(process: &Process, selection: Selection) -> impl Iterator<Item = &crate::model::Series> {
    process.series.iter().filter(move |series| {
        series.quantity == Quantity::Allocated && selection.device.admits(series.device)
    })
}

fn growth_per_step(process: &Process, selection: Selection, range: TimeRange) -> Option<i64> {
    let steps = process.steps.iter().filter(|step| range.contains(step.range.start_ns)).count();
    let growth = allocated(process, selection)
        .filter_map(|series| {
            let start = series.at(range.start_ns).or_else(|| series.bytes.first().copied())?;
            Some(series.at(range.end_ns)?.saturating_sub(start))
        })
        .reduce(i64::saturating_add)?;
    growth.checked_div(i64::try_from(steps).ok()?)
}

/// Which processes stand out by what each keeps: more than twice what the median of the others keeps, and a mebibyte more.
/// Against the others rather than against all, so that one of two can.
pub fn outliers(kept_bytes: &[u64]) -> Vec<bool> {
    let mut sorted = kept_bytes.to_vec();
    sorted.sort_unstable();
    let stands_out = |&bytes: &u64| {
        let own = sorted.partition_point(|&other| other < bytes);
        // The middle of what is left when the process itself is taken out.
        let Some(middle) = sorted.len().checked_sub(2).map(|last| last / 2) else { return false };
        let median = sorted[if middle < own { middle } else { middle + 1 }];
        bytes > median.saturating_mul(2).saturating_add(OUTLIER_BYTES)
    };
    kept_bytes.iter().map(stands_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_stands_out_against_the_others() {
        const MIB: u64 = 1 << 20;
        let no: [bool; 0] = [];
        assert_eq!(outliers(&[]), no);
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
