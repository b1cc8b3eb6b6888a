//! Ranks side by side: how much each grew, peaked and kept, and which stand out.

use rayon::prelude::*;

use super::{Index, Query, Selection, Totals, findings, kept};
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
    /// The first finding's title, where there are several processes.
    pub finding: Option<String>,
    /// Whether it keeps more than twice what the median of the others keeps.
    pub is_outlier: bool,
}

/// The processes that a query looks at, in the session's order.
pub fn compare_processes(index: &Index, query: &Query) -> Vec<ProcessSummary> {
    let ids: Vec<ProcessId> = query.selection.processes(&index.session).collect();
    let mut summaries: Vec<ProcessSummary> =
        ids.par_iter().map(|&id| summarize(index, query, id, ids.len() > 1)).collect();
    let kept_bytes: Vec<u64> = summaries.iter().map(|summary| summary.survivors.bytes).collect();
    for (position, summary) in summaries.iter_mut().enumerate() {
        summary.is_outlier = is_outlier(&kept_bytes, position);
    }
    summaries
}

fn summarize(index: &Index, query: &Query, id: ProcessId, with_finding: bool) -> ProcessSummary {
    let process = index.session.process(id);
    let query = Query { selection: Selection { process: Some(id), ..query.selection }, ..*query };
    let mut survivors = Totals::default();
    for row in kept(&index.session, &query) {
        survivors.add(row.get(&index.session).size_bytes);
    }
    let finding = with_finding.then(|| findings::findings(index, &query).into_iter().next()).flatten();
    ProcessSummary {
        process: id,
        growth_per_step_bytes: growth_per_step(process, query.selection, query.range),
        peak_bytes: allocated(process, query.selection)
            .filter_map(|series| series.bytes.iter().max())
            .map(|&bytes| u64::try_from(bytes).unwrap_or(0))
            .reduce(u64::saturating_add),
        survivors,
        finding: finding.map(|finding| finding.title),
        is_outlier: false,
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

/// Whether the process at `position` stands out by what it keeps: against the others rather than against all, so that
/// one of two can.
pub fn is_outlier(kept_bytes: &[u64], position: usize) -> bool {
    let mut others: Vec<u64> = kept_bytes
        .iter()
        .enumerate()
        .filter(|&(other, _)| other != position)
        .map(|(_, &bytes)| bytes)
        .collect();
    others.sort_unstable();
    let Some(&median) = others.get(others.len().saturating_sub(1) / 2) else { return false };
    kept_bytes[position] > median.saturating_mul(2).saturating_add(OUTLIER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_stands_out_against_the_others() {
        const MIB: u64 = 1 << 20;
        assert!(is_outlier(&[0, 50 * MIB], 1));
        assert!(!is_outlier(&[0, 50 * MIB], 0));
        assert!(!is_outlier(&[40 * MIB, 50 * MIB], 1));
        assert!(!is_outlier(&[50 * MIB], 0));
        assert!(is_outlier(&[3 * MIB, 3 * MIB, 90 * MIB, 4 * MIB], 2));
        assert!(!is_outlier(&[0, 900_000], 1));
    }
}
