//! CUDA memory snapshots.

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads CUDA memory snapshots.
pub struct SnapshotImporter;

impl Importer for SnapshotImporter {
    fn name(&self) -> &'static str {
        "memory snapshot"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
