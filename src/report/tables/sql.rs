//! SQL over the session's tables, and over nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use anyhow::{Context as _, bail};
use polars::error::set_warning_function;
use polars::prelude::{DataFrame, IntoLazy as _, PolarsResult};
use polars::sql::{SQLContext, extract_table_identifiers};

use super::bounds::{check_rows, check_text, collect};
use super::columns::{Texts, frame};
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

/// What statements begin with that change tables, or answer with a plan or settings.
const REFUSED: &[&str] = &[
    "alter",
    "analyze",
    "begin",
    "call",
    "commit",
    "copy",
    "create",
    "deallocate",
    "delete",
    "desc",
    "describe",
    "drop",
    "execute",
    "explain",
    "grant",
    "insert",
    "install",
    "load",
    "merge",
    "pragma",
    "prepare",
    "replace",
    "rollback",
    "set",
    "show",
    "truncate",
    "update",
    "use",
];

/// The thread of a query.
const THREAD: &str = "query";
/// Polars goes down into a query's terms by calling itself. Only what is used becomes memory.
const STACK_BYTES: usize = 256 << 20;

/// How many queries are being answered.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// What `write` makes of the answer to a query. Only the tables that it names are built.
///
/// # Errors
/// When it is no SQL, names tables or columns that aren't there, would read a file or fill the memory.
pub fn query<T: Send>(
    index: &Index,
    sql: &str,
    write: impl FnOnce(DataFrame) -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    silence_polars();
    RUNNING.fetch_add(1, Ordering::Relaxed);
    // Polars checks some of its assumptions by panicking, in the texts of an answer too; a query must not end the
    // program.
    let answer = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name(THREAD.to_owned()).stack_size(STACK_BYTES);
        Ok(thread.spawn_scoped(scope, || answer(index, sql).and_then(write))?.join())
    });
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    answer.and_then(|answer: std::thread::Result<_>| {
        answer.unwrap_or_else(|_| bail!(t!("polars gave up on this query; write it another way")))
    })
}

/// Panics of a query are told as its error, and advice to users of polars is none to those of SQL.
fn silence_polars() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_warning_function(|_, _| {});
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or_default();
            let is_a_querys = name.starts_with("polars-") && RUNNING.load(Ordering::Relaxed) > 0;
            if name != THREAD && !is_a_querys {
                hook(panic);
            }
        }));
    });
}

fn answer(index: &Index, sql: &str) -> anyhow::Result<DataFrame> {
    let lower = sql.to_lowercase();
    if let Some(reader) = FILE_READERS.iter().find(|reader| lower.contains(*reader)) {
        bail!(t!("a query sees the session's tables only: {reader} is not allowed", reader));
    }
    let statement = without_remarks(&lower);
    let words: Vec<&str> =
        statement.split([' ', '\t', '\r', '\n', ';']).filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        ["describe" | "desc", table] | ["show", "columns", "from" | "in", table] => return columns_of(table),
        ["show", "tables"] => {}
        [first, ..] if REFUSED.contains(first) => {
            bail!(t!(
                "a query only reads, so {statement} is not allowed: write SELECT, WITH, SHOW TABLES or DESCRIBE and a table",
                statement = first.to_uppercase()
            ))
        }
        _ => {}
    }
    execute(index, sql)
}

/// A statement without the remarks before it.
fn without_remarks(sql: &str) -> &str {
    let sql = sql.trim_start();
    let rest = match (sql.strip_prefix("--"), sql.strip_prefix("/*")) {
        (Some(remark), _) => remark.split_once('\n'),
        (_, Some(remark)) => remark.split_once("*/"),
        (None, None) => return sql,
    };
    rest.map_or("", |(_, rest)| without_remarks(rest))
}

/// The columns of a table, and what they hold.
fn columns_of(name: &str) -> anyhow::Result<DataFrame> {
    let Some(table) = Table::of_name(name.trim_matches(['"', '`'])) else {
        let names = Table::ALL.map(Table::name).join(", ");
        bail!(t!("no table is named {name}; the tables are {names}", name, names));
    };
    let (mut column, mut kind) = (Texts::new("column"), Texts::new("type"));
    for (name, of_column) in table.columns() {
        column.push(&name)?;
        kind.push(of_column)?;
    }
    Ok(frame(vec![column.finish(), kind.finish()])?)
}

fn execute(index: &Index, sql: &str) -> anyhow::Result<DataFrame> {
    check_text(sql)?;
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
    let frame = context.execute(sql).with_context(unanswerable)?;
    let whole = check_rows(&frame.logical_plan)?;
    collect(frame, whole).with_context(unanswerable)
}

/// What is said before polars' own words.
pub(super) fn unanswerable() -> String {
    let names = Table::ALL.map(Table::name).join(", ");
    t!("the query can't be answered (the tables are {names})", names)
}

/// A table without rows.
pub(super) fn empty(table: Table) -> PolarsResult<DataFrame> {
    let index = Index::new(Arc::new(Session::empty()), UserCode::default());
    table.build(&index, Selection::default())
}
