//! SQL over the session's tables, asked on a thread of its own.

use std::sync::Arc;

use super::data::Data;
use crate::report::tables;

/// How many rows of an answer are shown.
pub const MAX_ROWS: usize = 50_000;

/// What was asked and answered.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The statement as typed.
    pub text: String,
    /// The last answer, or why there is none.
    pub answer: Option<Result<Arc<Answer>, String>>,
    /// Whether a statement is being answered.
    pub is_running: bool,
}

impl Default for Sql {
    fn default() -> Self {
        let text = tables::EXAMPLES.first().map_or("", |(_, sql)| sql);
        Self { text: text.to_owned(), answer: None, is_running: false }
    }
}

/// A table as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its first rows.
    pub rows: Vec<Vec<String>>,
    /// How many rows there are.
    pub total: usize,
}

/// Asks; slow.
pub fn ask(data: &Data, text: &str) -> Result<Arc<Answer>, String> {
    let answer = tables::query(&data.index, text, |frame| {
        let mut bytes = Vec::new();
        tables::write_csv(&frame.head(Some(MAX_ROWS)), &mut bytes)?;
        Ok((frame.height(), bytes))
    });
    let (total, bytes) = answer.map_err(|error| format!("{error:#}"))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes.as_slice());
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let columns = texts(reader.headers().map_err(|error| error.to_string())?);
    let rows = reader.records().filter_map(Result::ok).map(|record| texts(&record)).collect();
    Ok(Arc::new(Answer { columns, rows, total }))
}
