//! Output of nvidia-smi and like tools: one small file a form, all filling the same samples.

mod boxed;
mod columns;
mod csv;
mod dmon;
mod others;
mod query_text;
mod samples;
mod xml;

use super::text::{clean_head, read_text};
use super::{Head, ImportError, Importer, Input, Progress};
use crate::model::Recording;
use crate::text::t;

/// Reads output of nvidia-smi and like tools.
pub struct NvidiaSmiImporter;

/// The forms that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Csv,
    Dmon,
    Boxed,
    Xml,
    QueryText,
    Gpustat,
    Rocm,
    Json,
    /// Nothing but the words of a driver that can't be reached.
    Failure,
}

/// Whether a text is of a form.
type Detect = fn(&str) -> bool;

fn form_of(text: &str) -> Option<Form> {
    let tests: [(Form, Detect); 9] = [
        (Form::Xml, xml::detect),
        (Form::Json, others::detect_json),
        (Form::Boxed, boxed::detect),
        (Form::QueryText, query_text::detect),
        (Form::Dmon, dmon::detect),
        (Form::Gpustat, others::detect_gpustat),
        (Form::Rocm, others::detect_rocm),
        (Form::Csv, csv::detect),
        (Form::Failure, is_failure),
    ];
    tests.into_iter().find(|(_, detect)| detect(text)).map(|(form, _)| form)
}

/// Whether a short text says nothing but that the driver could not be reached.
fn is_failure(text: &str) -> bool {
    text.lines().take(3).any(samples::is_failure_line) && text.lines().nth(20).is_none()
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
            Some(Form::Dmon) => dmon::import(input, progress, log),
            Some(Form::Boxed) => boxed::import(input, progress, log),
            Some(Form::Xml) => xml::import(input, progress, log),
            Some(Form::QueryText) => query_text::import(input, progress, log),
            Some(Form::Gpustat) => others::import_gpustat(input, progress, log),
            Some(Form::Rocm) => others::import_rocm(input, progress, log),
            Some(Form::Json) => others::import_json(input, progress, log),
            Some(Form::Failure) => Err(ImportError::content(
                t!("nvidia-smi could not reach the driver when this was written, so it holds no figures"),
                input.name(),
            )),
            None => Err(ImportError::content(t!("the text holds no output of nvidia-smi"), input.name())),
        }
    }
}
