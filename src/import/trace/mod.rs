//! Chrome traces of torch.profiler.

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads Chrome traces of torch.profiler.
pub struct TraceImporter;

impl Importer for TraceImporter {
    fn name(&self) -> &'static str {
        "profiler trace"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
