//! Findings: typed diagnoses with evidence, from the curve to the cause and to the change in the code.
//!
//! Evidence is structure: periods, sizes, library frames, phases, block states, curve against curve. The user's own
//! file, function and variable names are shown and never matched.

mod advice;
mod context;
mod driver;
mod expected;
mod families;
mod growing;
mod kept;
mod level;
mod once;
mod oom;
mod recorded;
mod reserved;
mod story;
mod strands;

use context::Context;
pub(super) use strands::{Role, role_of};

use super::{Index, Query};
use crate::model::TimeRange;
use crate::text::{msg, say};

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
            Self::Info => msg!("info"),
            Self::Warning => msg!("warning"),
            Self::Error => msg!("error"),
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

impl Finding {
    /// A finding with the words of its cause and nothing measured yet.
    fn new(
        kind: &'static str,
        severity: Severity,
        confidence: f32,
        title: String,
        words: advice::Advice,
    ) -> Self {
        Self {
            kind,
            severity,
            confidence,
            bytes: 0,
            per_step_bytes: 0,
            title,
            evidence: Vec::new(),
            confirm: say(words.confirm).to_owned(),
            advice: say(words.advice).to_owned(),
            code_before: words.before.to_owned(),
            code_after: words.after.to_owned(),
            call_sites: Vec::new(),
            range: TimeRange::new(0, 0),
        }
    }
}

/// The diagnoses, in the order in which they are asked; [`level::find`] looks at what the others found.
const DIAGNOSES: &[fn(&Context<'_>, &mut Vec<Finding>)] = &[
    oom::find,
    kept::find,
    once::find,
    growing::find,
    reserved::find,
    driver::find,
    expected::find,
    recorded::find,
    level::find,
];

/// Among findings of one severity, these come first, in this order.
const FIRST_KINDS: &[&str] = &["oom", "no_growth", "optimizer_state"];

/// What the data shows in a range, the most important first.
///
/// The range's own survivors are judged by what the whole run shows of their kind: a period or a level can't be read
/// from a few steps.
pub fn findings(index: &Index, query: &Query) -> Vec<Finding> {
    let context = Context::new(index, query);
    let mut found = Vec::new();
    for diagnose in DIAGNOSES {
        diagnose(&context, &mut found);
    }
    let place = |finding: &Finding| {
        FIRST_KINDS.iter().position(|&kind| kind == finding.kind).unwrap_or(FIRST_KINDS.len())
    };
    found.sort_by(|a, b| {
        let weight = |finding: &Finding| finding.bytes as f64 * f64::from(finding.confidence);
        b.severity
            .cmp(&a.severity)
            .then_with(|| place(a).cmp(&place(b)))
            .then_with(|| weight(b).total_cmp(&weight(a)))
    });
    found
}
