//! Output of py-spy.

use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads Output of py-spy.
pub struct PySpyImporter;

impl Importer for PySpyImporter {
    fn name(&self) -> &'static str {
        "py-spy output"
    }

    fn detect(&self, _head: &Head<'_>) -> bool {
        false
    }

    fn import(&self, input: &Input, _progress: &Progress) -> Result<Recording, ImportError> {
        Err(ImportError::content("not read yet", input.name()))
    }
}
