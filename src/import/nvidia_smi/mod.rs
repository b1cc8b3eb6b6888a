//! Output of nvidia-smi and like tools.

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads Output of nvidia-smi and like tools.
pub struct NvidiaSmiImporter;

impl Importer for NvidiaSmiImporter {
    fn name(&self) -> &'static str {
        "nvidia-smi log"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
