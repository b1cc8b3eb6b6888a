//! Training logs with printed memory figures.

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads Training logs with printed memory figures.
pub struct TrainingLogImporter;

impl Importer for TrainingLogImporter {
    fn name(&self) -> &'static str {
        "training log"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
