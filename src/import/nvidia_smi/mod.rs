//! Output of nvidia-smi and like tools: one small file a form, all filling the same samples.

mod columns;
mod csv;
mod samples;

use super::text::{clean_head, read_text};
use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// Reads output of nvidia-smi and like tools.
pub struct NvidiaSmiImporter;

/// The forms that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Csv,
    /// Nothing but the words of a driver that can't be reached.
    Failure,
}

fn form_of(text: &str) -> Option<Form> {
    if csv::detect(text) {
        return Some(Form::Csv);
    }
    let is_failure = text.lines().take(3).any(samples::is_failure_line) && text.lines().count() < 20;
    is_failure.then_some(Form::Failure)
}

impl Importer for NvidiaSmiImporter {
    fn name(&self) -> &'static str {
        "nvidia-smi log"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        form_of(&clean_head(head)).is_some()
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let log = read_text(input, progress)?;
        match form_of(&log.text) {
            Some(Form::Csv) => csv::import(input, progress, log),
            Some(Form::Failure) => Err(ImportError::content(
                "nvidia-smi could not reach the driver when this was written, so it holds no figures",
                input.name(),
            )),
            None => Err(ImportError::content("the text holds no output of nvidia-smi", input.name())),
        }
    }
}
