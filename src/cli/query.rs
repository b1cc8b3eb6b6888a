//! `vramscope query`: SQL over the session's tables.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use polars::prelude::{AnyValue, Column, DataFrame};
use serde::Serializer as _;

use super::args::{QueryArgs, QueryFormat};
use super::{Status, UsageError, open};
use crate::model::format_count;
use crate::report::{printable, tables};
use crate::text::t;

/// A terminal shows no more rows than this; the other formats have them all.
const MAX_ROWS: usize = 500;
/// A cell of a terminal's table is no wider than this.
const MAX_CELL_CHARS: usize = 60;

pub(super) fn run(args: &QueryArgs) -> anyhow::Result<Status> {
    let (sql, files) = args.files_and_sql.split_last().context(t!("no SQL was given"))?;
    let sql = sql.to_str().ok_or_else(|| UsageError(t!("the SQL is not UTF-8").to_owned()))?;
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let format = args.output.format(args.format, QueryFormat::Text)?;
    args.output.spare(&files, &args.reading)?;
    let loaded = open::open(&files, &args.reading)?;
    let status = loaded.complain()?;
    tables::query(&loaded.index, sql, |mut answer| {
        args.output.write(|out| {
            match format {
                QueryFormat::Text => out.write_all(printable(&to_text(&answer)).as_bytes())?,
                QueryFormat::Csv => tables::write_csv(&answer, out)?,
                QueryFormat::Json => write_json(&answer, out)?,
                QueryFormat::Parquet => tables::write_parquet(&mut answer, out)?,
            }
            Ok(())
        })
    })?;
    Ok(status)
}

/// A table in columns, numbers to the right.
fn to_text(answer: &DataFrame) -> String {
    let shown = answer.height().min(MAX_ROWS);
    let columns: Vec<(Vec<String>, bool)> = answer
        .columns()
        .iter()
        .map(|column| {
            let cells = (0..shown)
                .map(|row| column.get(row).map_or_else(|_| String::new(), |value| cell_text(&value)));
            (std::iter::once(column.name().to_string()).chain(cells).collect(), column.dtype().is_numeric())
        })
        .collect();
    let width = |cells: &[String]| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(|(cells, _)| width(cells)).collect();
    let mut text = String::new();
    for row in 0..=shown {
        let mut line = String::new();
        for ((cells, is_number), &width) in columns.iter().zip(&widths) {
            let cell = cells.get(row).map_or("", String::as_str);
            let _ =
                if *is_number { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:<width$}  ") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if answer.height() > shown {
        let _ = writeln!(
            text,
            "{}",
            t!("… and {count} more rows", count = format_count((answer.height() - shown) as u64))
        );
    }
    text
}

fn cell_text(value: &AnyValue<'_>) -> String {
    let text = match (value, value.get_str()) {
        (AnyValue::Null, _) => String::new(),
        (_, Some(text)) => text.replace(['\n', '\r', '\t'], " "),
        (other, None) => other.to_string(),
    };
    if text.chars().count() <= MAX_CELL_CHARS {
        return text;
    }
    text.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect()
}

/// An object for each row, row by row.
fn write_json(answer: &DataFrame, mut out: &mut dyn Write) -> std::io::Result<()> {
    let value = |column: &Column, row| column.get(row).map_or(serde_json::Value::Null, |it| json_value(&it));
    let rows = (0..answer.height()).map(|row| {
        let fields = answer.columns().iter().map(|column| (column.name().to_string(), value(column, row)));
        fields.collect::<serde_json::Map<_, _>>()
    });
    serde_json::Serializer::pretty(&mut out).collect_seq(rows)?;
    out.write_all(b"\n")
}

fn json_value(value: &AnyValue<'_>) -> serde_json::Value {
    if let Some(text) = value.get_str() {
        return text.into();
    }
    match value {
        AnyValue::Null => serde_json::Value::Null,
        AnyValue::Boolean(value) => (*value).into(),
        value if value.is_integer() => match value.extract::<i64>() {
            Some(number) => number.into(),
            None => value.to_string().into(),
        },
        value if value.is_float() => value.extract::<f64>().into(),
        value => value.to_string().into(),
    }
}
