//! Files of export_memory_timeline.

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads Files of export_memory_timeline.
pub struct MemoryTimelineImporter;

impl Importer for MemoryTimelineImporter {
    fn name(&self) -> &'static str {
        "memory timeline"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
