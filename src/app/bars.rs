//! Steps and annotations in rows, ready to be drawn.

use crate::model::{Process, TimeRange};
use crate::text::t;

/// A process has no more rows of annotations.
const MAX_ROWS: usize = 6;

/// A named stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its name.
    pub name: String,
    /// What is written where there is no room for the name.
    pub short: String,
    /// When it ran.
    pub range: TimeRange,
    /// Whether it is a step; else an annotation of the user's.
    pub is_step: bool,
}

/// Steps first, then annotations that aren't steps, in as few rows as they need. In a row they don't overlap.
pub fn bars_of(process: &Process) -> Vec<Vec<Bar>> {
    let mut rows: Vec<Vec<Bar>> = Vec::new();
    if !process.steps.is_empty() {
        let bars = process.steps.iter().map(|step| Bar {
            name: t!("step {number}", number = step.number),
            short: step.number.to_string(),
            range: step.range,
            is_step: true,
        });
        rows.push(bars.collect());
    }
    let first = rows.len();
    let is_step = |name: &str| !process.step_name.is_empty() && name.starts_with(&process.step_name);
    for annotation in &process.annotations {
        let name = process.strings.get(annotation.name);
        if is_step(name) {
            continue;
        }
        let bar =
            Bar { name: name.to_owned(), short: name.to_owned(), range: annotation.range, is_step: false };
        let is_free = |row: &&mut Vec<Bar>| {
            row.last().is_none_or(|last: &Bar| last.range.end_ns <= annotation.range.start_ns)
        };
        if let Some(row) = rows[first..].iter_mut().find(is_free) {
            row.push(bar);
        } else if rows.len() < first + MAX_ROWS {
            rows.push(vec![bar]);
        }
    }
    rows
}
