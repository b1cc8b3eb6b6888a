//! The session as tables: for polars, SQL, CSV and Parquet.
//!
//! Times are Unix nanoseconds, names carry their units, and what is not known is null. Text that repeats is
//! categorical, which Parquet keeps as a dictionary.

mod bounds;
mod columns;
mod rows;
mod sql;

use std::io::Write;

use polars::prelude::{
    CsvWriter, DataFrame, DataType, Field, IntoLazy as _, LazyFrame, ParquetWriter, PolarsResult, Schema,
    SerWriter as _, col, lit,
};

pub use sql::{EXAMPLES, query};

use super::csv::{FORMULA, guard};
use crate::analysis::{Index, Selection};

/// How many rows of CSV are made at once: each may have a stack of its own.
const CSV_BATCH_ROWS: usize = 4_096;

/// A table of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// One row an allocation.
    Allocations,
    /// One row an allocation, free or segment event.
    Events,
    /// One row a slice of a trace: op, Python function, kernel, annotation.
    Ops,
    /// One row a point of a curve.
    Samples,
    /// One row a training step.
    Steps,
    /// One row a block of a segment, at the moment of a snapshot.
    Segments,
    /// One row a distinct stack that allocated.
    Stacks,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Allocations,
        Self::Events,
        Self::Ops,
        Self::Samples,
        Self::Steps,
        Self::Segments,
        Self::Stacks,
    ];

    /// The name on the command line and in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allocations => "allocations",
            Self::Events => "events",
            Self::Ops => "ops",
            Self::Samples => "samples",
            Self::Steps => "steps",
            Self::Segments => "segments",
            Self::Stacks => "stacks",
        }
    }

    /// The table of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// What a row is.
    pub fn description(self) -> &'static str {
        match self {
            Self::Allocations => "a row for each allocation",
            Self::Events => "a row for each allocation, free and segment event",
            Self::Ops => "a row for each op, Python function, kernel and annotation of a trace",
            Self::Samples => "a row for each point of each curve",
            Self::Steps => "a row for each training step",
            Self::Segments => "a row for each block of each segment when the snapshot was taken",
            Self::Stacks => "a row for each distinct stack that allocated",
        }
    }

    /// The table's rows for the selected processes. Devices are not filtered: they are a column.
    ///
    /// # Errors
    /// When polars can't hold it: more than 2³² distinct texts.
    pub fn build(self, index: &Index, selection: Selection) -> PolarsResult<DataFrame> {
        let ids: Vec<_> = selection.processes(&index.session).collect();
        match self {
            Self::Allocations => rows::allocations(index, &ids),
            Self::Events => rows::events(index, &ids),
            Self::Ops => rows::ops(index, &ids),
            Self::Samples => rows::samples(index, &ids),
            Self::Steps => rows::steps(index, &ids),
            Self::Segments => rows::segments(index, &ids),
            Self::Stacks => rows::stacks(index, &ids),
        }
    }

    /// The columns' names and types.
    pub fn columns(self) -> Vec<(String, &'static str)> {
        let columns = sql::empty(self).map(|frame| frame.schema().clone()).unwrap_or_default();
        columns
            .iter()
            .map(|(name, dtype)| {
                let kind = match dtype {
                    DataType::Boolean => "boolean",
                    DataType::Int64 => "integer",
                    _ => "text",
                };
                (name.to_string(), kind)
            })
            .collect()
    }
}

/// Writes a table as Parquet.
///
/// # Errors
/// When `out` can't be written.
pub fn write_parquet(frame: &mut DataFrame, out: impl Write) -> PolarsResult<()> {
    ParquetWriter::new(out).finish(frame).map(|_| ())
}

/// Writes a table as CSV. Texts that a spreadsheet would take for a formula begin with an apostrophe. Whole stacks
/// are left out where there is a `stack_id`: they would make most of the file, and the table `stacks` has them.
///
/// # Errors
/// When `out` can't be written.
pub fn write_csv(frame: &DataFrame, mut out: impl Write) -> PolarsResult<()> {
    let has_ids = frame.schema().contains("stack_id") && frame.schema().contains("alloc_ns");
    let frame = if has_ids { frame.drop("stack").unwrap_or_else(|_| frame.clone()) } else { frame.clone() };
    let frame = plain_texts(frame)?;
    for first in (0..frame.height().max(1)).step_by(CSV_BATCH_ROWS) {
        let mut guarded = guard_texts(frame.slice(first as i64, CSV_BATCH_ROWS).lazy())?.collect()?;
        let names: Vec<_> = guarded.get_column_names().iter().map(|name| guard(name).into_owned()).collect();
        guarded.set_column_names(&names)?;
        let mut bytes = Vec::new();
        CsvWriter::new(&mut bytes).include_header(first == 0).finish(&mut guarded)?;
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// The table with plain text in place of categories, whose ids are of one table: so files of several ranks agree.
///
/// # Errors
/// When polars can't hold it.
pub fn plain_texts(frame: DataFrame) -> PolarsResult<DataFrame> {
    with_plain_texts(frame.lazy())?.collect()
}

/// Categorical columns as plain text, on which every function of SQL works.
fn with_plain_texts(mut frame: LazyFrame) -> PolarsResult<LazyFrame> {
    let schema = frame.collect_schema()?;
    let texts: Vec<_> = schema
        .iter()
        .filter(|(_, dtype)| matches!(dtype, DataType::Categorical(..)))
        .map(|(name, _)| {
            let is_text = |_: &Schema, field: &Field| Ok(Field::new(field.name().clone(), DataType::String));
            col(name.clone()).map(|column| columns::plain(&column), is_text)
        })
        .collect();
    Ok(frame.with_columns(texts))
}

fn guard_texts(mut frame: LazyFrame) -> PolarsResult<LazyFrame> {
    let schema = frame.collect_schema()?;
    let texts: Vec<_> = schema
        .iter()
        .filter(|(_, dtype)| matches!(dtype, DataType::String))
        .map(|(name, _)| col(name.clone()).str().replace(lit(FORMULA), lit("'$1"), false))
        .collect();
    Ok(frame.with_columns(texts))
}
