//! What the driver sees: nvidia-smi in its forms, one file a form.
//!
//! Every form becomes curves of used memory, a device or a process each, on the local wall clock that nvidia-smi
//! prints. A cell without a figure (`[N/A]`, `[No data]`, `-`) is a gap, never 0.

mod cells;
mod csv;

use super::text::{decode, plain_line};
use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;

/// The most that is read of a log.
const MAX_BYTES: u64 = 4 << 30;

/// Reads nvidia-smi's output.
pub struct NvidiaSmiImporter;

/// The forms that can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Csv,
}

impl Importer for NvidiaSmiImporter {
    fn name(&self) -> &'static str {
        "nvidia-smi log"
    }

    fn detect(&self, head: &Head<'_>) -> bool {
        form_of(&head.text).is_some()
    }

    fn import(&self, input: &Input, progress: &Progress) -> Result<Recording, ImportError> {
        let file = input.name();
        let inflated = input.read_all(progress, MAX_BYTES)?;
        let text = decode(&inflated.bytes);
        let recording = match form_of(&text) {
            Some(Form::Csv) => csv::read(&text, progress),
            None => Err("this is not output of nvidia-smi".to_owned()),
        };
        if progress.is_cancelled() {
            return Err(ImportError::Cancelled { file });
        }
        let mut recording = recording.map_err(|cause| ImportError::content(cause, file))?;
        if let Some(why) = inflated.cut {
            recording.warn("cut", why);
        }
        Ok(recording)
    }
}

fn form_of(text: &str) -> Option<Form> {
    let start = text.get(..16 * 1024).unwrap_or(text);
    let mut lines = start.lines().map(plain_line);
    lines.any(|line| csv::is_header(&line) || csv::is_row(&line)).then_some(Form::Csv)
}
