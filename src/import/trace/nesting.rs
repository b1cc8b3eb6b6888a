//! What is open on a thread at an instant: ops, Python calls and annotations, each nested by its own rules.
//!
//! They are kept apart because they don't nest in each other: `with record_function(…)` begins its annotation inside the
//! Python call of `__enter__`, which returns long before the annotation ends.

use super::collect::{PythonIds, RawSlice};
use crate::model::{StackId, StrId};

/// Slices nest deeper than this only in damaged files.
const MAX_DEPTH: usize = 4096;

/// An op that is running.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenOp {
    pub start_ns: i64,
    pub end_ns: i64,
    /// The outermost op around it.
    pub outer: StrId,
    /// It and the ops around it, as a node of the tree of op chains.
    pub chain: u32,
    /// The innermost input shapes, with their types.
    pub shapes: StrId,
    pub dtypes: StrId,
    pub sequence: Option<i64>,
    pub is_backward: bool,
}

/// A Python call that has not returned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenCall {
    pub start_ns: i64,
    pub end_ns: i64,
    pub id: Option<i64>,
    pub stack: StackId,
    pub module: StrId,
}

/// A named stretch that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenAnnotation {
    pub end_ns: i64,
    pub name: StrId,
    pub is_step: bool,
    pub is_optimizer: bool,
}

/// What is open on one thread.
#[derive(Default)]
pub(super) struct Open {
    pub ops: Vec<OpenOp>,
    pub calls: Vec<OpenCall>,
    pub annotations: Vec<OpenAnnotation>,
    /// Start, end and row of each slice, for drawing.
    rows: Vec<(i64, i64, u16)>,
}

impl Open {
    /// The row in which a slice is drawn: below all that are open when it starts.
    pub(super) fn row(&mut self, slice: &RawSlice) -> u16 {
        while self.rows.last().is_some_and(|&(start, end, _)| is_over(start, end, slice.start_ns)) {
            self.rows.pop();
        }
        let row = self.rows.last().map_or(0, |&(_, _, row)| row.saturating_add(1));
        if self.rows.len() < MAX_DEPTH {
            self.rows.push((slice.start_ns, slice.end_ns, row));
        }
        row
    }

    /// The op around one that starts at `start_ns`.
    pub(super) fn outer_op(&mut self, start_ns: i64) -> Option<OpenOp> {
        while self.ops.last().is_some_and(|op| is_over(op.start_ns, op.end_ns, start_ns)) {
            self.ops.pop();
        }
        self.ops.last().copied()
    }

    /// Enters an op; it cannot outlive the one around it.
    pub(super) fn enter_op(&mut self, mut op: OpenOp) {
        if let Some(outer) = self.ops.last() {
            op.end_ns = op.end_ns.min(outer.end_ns);
        }
        if self.ops.len() < MAX_DEPTH {
            self.ops.push(op);
        }
    }

    /// The caller of a Python call that starts at `start_ns`: by its number where the trace has numbers, since calls
    /// whose return the profiler missed seem to go on until its end; else by time.
    pub(super) fn caller(&mut self, start_ns: i64, ids: Option<PythonIds>) -> OpenCall {
        while self.calls.last().is_some_and(|call| is_over(call.start_ns, call.end_ns, start_ns)) {
            self.calls.pop();
        }
        match ids {
            Some(PythonIds { caller: None, .. }) => {
                return OpenCall { end_ns: i64::MAX, ..OpenCall::default() };
            }
            Some(PythonIds { caller, .. }) => {
                if let Some(position) = self.calls.iter().rposition(|call| call.id == caller) {
                    self.calls.truncate(position + 1);
                }
            }
            None => {}
        }
        self.calls.last().copied().unwrap_or(OpenCall { end_ns: i64::MAX, ..OpenCall::default() })
    }

    /// Enters a Python call.
    pub(super) fn enter_call(&mut self, call: OpenCall) {
        if self.calls.len() < MAX_DEPTH {
            self.calls.push(call);
        }
    }

    /// Leaves the annotations that have ended; they may overlap without nesting.
    pub(super) fn leave_annotations(&mut self, time_ns: i64) {
        if self.annotations.iter().any(|annotation| annotation.end_ns <= time_ns) {
            self.annotations.retain(|annotation| annotation.end_ns > time_ns);
        }
    }

    /// Enters an annotation.
    pub(super) fn enter_annotation(&mut self, annotation: OpenAnnotation) {
        if self.annotations.len() < MAX_DEPTH {
            self.annotations.push(annotation);
        }
    }

    /// Leaves what ended before an instant. `slack_ns` is what the clock's rounding may have cut off the ends.
    pub(super) fn leave(&mut self, time_ns: i64, slack_ns: i64) {
        let before_ns = time_ns.saturating_sub(slack_ns);
        while self.ops.last().is_some_and(|op| op.end_ns <= before_ns) {
            self.ops.pop();
        }
        while self.calls.last().is_some_and(|call| call.end_ns <= before_ns) {
            self.calls.pop();
        }
        self.leave_annotations(before_ns);
    }
}

/// Whether a slice ended before another begins. One that takes no time, at the very moment, is around the next.
fn is_over(start_ns: i64, end_ns: i64, next_ns: i64) -> bool {
    end_ns < next_ns || (end_ns == next_ns && start_ns < next_ns)
}
