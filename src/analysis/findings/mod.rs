//! Findings: typed diagnoses with evidence, from the curve to the cause and to the change in the code.

use super::{Index, Query};
use crate::model::TimeRange;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Expected, or good to know.
    Info,
    /// Worth a look.
    Warning,
    /// Memory grows without bound, or the run failed.
    Error,
}

impl Severity {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is: `graph_kept`, `fragmentation`.
    pub kind: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is, 0 to 1.
    pub confidence: f32,
    /// How much memory it holds so far.
    pub bytes: u64,
    /// How much a step adds; 0 when it does not grow by steps.
    pub per_step_bytes: u64,
    /// One sentence.
    pub title: String,
    /// Why it is believed, in numbers, a sentence each.
    pub evidence: Vec<String>,
    /// A two-line experiment that would confirm it.
    pub confirm: String,
    /// What to change.
    pub advice: String,
    /// The change as Python, before and after; empty when there is none.
    pub code_before: String,
    /// See [`Self::code_before`].
    pub code_after: String,
    /// Where, the most bytes first.
    pub call_sites: Vec<String>,
    /// When.
    pub range: TimeRange,
}

/// What the data shows in a range, the most important first.
pub fn findings(_index: &Index, _query: &Query) -> Vec<Finding> {
    Vec::new()
}
