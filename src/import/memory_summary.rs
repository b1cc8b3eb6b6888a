//! Text of memory_summary() and JSON of memory_stats().

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads Text of memory_summary() and JSON of memory_stats().
pub struct MemorySummaryImporter;

impl Importer for MemorySummaryImporter {
    fn name(&self) -> &'static str {
        "memory summary"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
