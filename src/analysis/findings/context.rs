//! What all diagnoses look at, read once.

use super::super::growth::{Growth, growths};
use super::super::query::classify;
use super::super::{Index, Query, RowClass, label_words};
use super::strands::ProcessFacts;
use crate::model::{ProcessId, Quantity, Session, StrId, TimeRange};
use crate::text::t;

/// The session, the question, and what was read of both.
pub(super) struct Context<'a> {
    pub index: &'a Index,
    pub query: &'a Query,
    pub processes: Vec<ProcessFacts<'a>>,
    pub growths: Vec<Growth>,
}

impl<'a> Context<'a> {
    pub fn new(index: &'a Index, query: &'a Query) -> Self {
        let processes =
            query.selection.processes(&index.session).map(|id| ProcessFacts::new(index, query, id)).collect();
        Self { index, query, processes, growths: growths(index, query.selection) }
    }

    pub fn session(&self) -> &'a Session {
        &self.index.session
    }

    /// Whether a row is a survivor of the query.
    pub fn is_kept(&self, facts: &ProcessFacts<'_>, row: u32) -> bool {
        let table = &facts.process.allocations;
        let row = row as usize;
        self.query.range.contains(table.alloc_ns[row])
            && classify(table, row, self.query.free_by.until_ns(self.query.range)) == RowClass::Kept
    }

    /// The growth of a quantity of a process, or of no process.
    pub fn growth(&self, process: Option<ProcessId>, quantity: &Quantity) -> Option<&Growth> {
        self.growths.iter().find(|growth| growth.process == process && growth.quantity == *quantity)
    }

    /// The selected recordings from the first to the last instant.
    pub fn recorded(&self) -> Option<TimeRange> {
        self.processes
            .iter()
            .map(|facts| facts.process.recorded)
            .filter(|range| range.duration_ns() > 0)
            .reduce(TimeRange::union)
    }

    /// A label of the index, in the words of the language that is spoken.
    pub fn label(&self, id: StrId) -> String {
        label_words(self.index.label(id)).into_owned()
    }

    /// ` in rank 1`, where there are several processes.
    pub fn whose(&self, facts: &ProcessFacts<'_>) -> String {
        if self.index.session.processes.len() > 1 {
            t!(" in {process}", process = facts.process.label)
        } else {
            String::new()
        }
    }
}
