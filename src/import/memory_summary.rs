//! `torch.cuda.memory_summary()` tables, one or many in a log, and `memory_stats()` counters.

use super::memory_summary_table::{is_in, stats};
use super::text::{clean_head, read_text};
use super::{Head, ImportError, Importer, Input, Progress, training_log};
use crate::model::{Clock, Quantity, Recording, Series, SourceKind, TimeRange};
use crate::text::t;

/// Reads memory summaries.
pub struct MemorySummaryImporter;

impl Importer for MemorySummaryImporter {
    fn name(&self) -> &'static str {
        "memory summary"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        let text = clean_head(head);
        is_in(&text) && !text.contains("traceEvents")
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let log = read_text(input, progress)?;
        // A JSON file is one set of counters over many lines; anything else is a log with tables or counters in it.
        if !log.text.trim_start().starts_with('{') {
            return training_log::read(input, progress, &log, None);
        }
        let Some(summary) = stats(1, &log.text) else {
            return Err(ImportError::content(
                t!("the counters lack allocated_bytes.all.current"),
                input.name(),
            ));
        };
        let mut recording = Recording::new(SourceKind::MemorySummary, "memory stats", Clock::Order);
        recording.events = summary.figures.len() as u64;
        recording.span = Some(TimeRange::new(0, 1));
        for (quantity, bytes) in [
            (Quantity::Allocated, summary.allocated_bytes),
            (Quantity::Reserved, summary.reserved_bytes),
            (Quantity::PeakAllocated, summary.peak_allocated_bytes),
            (Quantity::PeakReserved, summary.peak_reserved_bytes),
        ] {
            if let Some(bytes) = bytes.and_then(|bytes| i64::try_from(bytes).ok()) {
                let mut series = Series::new(quantity, summary.device, false);
                series.push(0, bytes);
                recording.series.push(series);
            }
        }
        recording.summaries.push(summary);
        if let Some(cut) = log.cut {
            recording.warn("cut", cut);
        }
        Ok(recording)
    }
}
