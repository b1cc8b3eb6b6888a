//! SQL over the session's tables, and over nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use polars::prelude::{DataFrame, IntoLazy as _, PolarsResult};
use polars::sql::{SQLContext, extract_table_identifiers};

use super::{Table, with_plain_texts};
use crate::analysis::{Index, Selection, UserCode};
use crate::model::Session;
use crate::text::{msg, t};

/// Queries to begin with: what they answer, and the SQL.
pub const EXAMPLES: &[(&str, &str)] = &[
    (
        msg!("What is kept, by call site"),
        "SELECT call_site, COUNT(*) AS kept_count, SUM(size_bytes) AS kept_bytes\nFROM allocations\n\
         WHERE state = 'kept'\nGROUP BY call_site\nORDER BY kept_bytes DESC\nLIMIT 20",
    ),
    (
        msg!("What each step leaves behind"),
        "SELECT process, step, kept_count, kept_bytes\nFROM steps\nORDER BY process, step",
    ),
    (
        msg!("Free and used bytes of segments, by state"),
        "SELECT state, COUNT(*) AS blocks, SUM(block_bytes) AS bytes\nFROM segments\nGROUP BY state",
    ),
    (
        msg!("The longest-lived allocations that were freed"),
        "SELECT call_site, op, size_bytes, (free_completed_ns - alloc_ns) / 1000000 AS lived_ms\nFROM allocations\n\
         WHERE state = 'freed'\nORDER BY lived_ms DESC\nLIMIT 20",
    ),
    (
        msg!("The highest point of each curve"),
        "SELECT source, process, quantity, device, MAX(bytes) AS peak_bytes\nFROM samples\n\
         GROUP BY source, process, quantity, device\nORDER BY peak_bytes DESC",
    ),
];

/// Functions that would read a file. They are refused wherever they stand, even in text: no table needs the words,
/// and a parser of our own could be fooled.
const FILE_READERS: &[&str] = &["read_csv", "read_parquet", "read_ipc", "read_json", "read_ndjson", "scan_"];

/// The answer to a query. Only the tables that it names are built.
///
/// # Errors
/// When it is no SQL, names tables or columns that aren't there, or would read a file.
pub fn query(index: &Index, sql: &str) -> anyhow::Result<DataFrame> {
    let lower = sql.to_lowercase();
    if let Some(reader) = FILE_READERS.iter().find(|reader| lower.contains(*reader)) {
        bail!(t!("a query sees the session's tables only: {reader} is not allowed", reader));
    }
    // polars checks some of its assumptions by panicking; a query must not end the program.
    catch_unwind(AssertUnwindSafe(|| execute(index, sql)))
        .unwrap_or_else(|_| bail!(t!("polars gave up on this query; write it another way")))
}

fn execute(index: &Index, sql: &str) -> anyhow::Result<DataFrame> {
    let named = extract_table_identifiers(sql, false, true).context(t!("this is not SQL"))?;
    let mut context = SQLContext::new();
    if named.is_empty() {
        for table in Table::ALL {
            context.register(table.name(), empty(table)?.lazy());
        }
    }
    for table in Table::ALL.into_iter().filter(|table| named.iter().any(|name| name == table.name())) {
        let frame = table.build(index, Selection::of(&index.session))?.lazy();
        context.register(table.name(), with_plain_texts(frame)?);
    }
    let answer = context.execute(sql).and_then(polars::prelude::LazyFrame::collect);
    answer.with_context(|| {
        let names = Table::ALL.map(Table::name).join(", ");
        t!("the query can't be answered (the tables are {names})", names)
    })
}

/// A table without rows.
pub(super) fn empty(table: Table) -> PolarsResult<DataFrame> {
    let index = Index::new(Arc::new(Session::empty()), UserCode::default());
    table.build(&index, Selection::default())
}
