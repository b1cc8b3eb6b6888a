//! Columns that are filled row by row, then become a polars frame.

use std::sync::Arc;

use polars::chunked_array::builder::CategoricalChunkedBuilder;
use polars::prelude::{
    BooleanChunked, Categorical32Type, CategoricalMapping, CategoricalPhysical, Categories, ChunkTake as _,
    Column, DataFrame, DataType, Int64Chunked, IntoColumn as _, IntoSeries as _, NewChunkedArray as _,
    PolarsResult, StringChunked,
};
use rustc_hash::FxHashMap;

/// Whole numbers: signed ones everywhere, since not every reader of Parquet knows others.
pub(super) struct Numbers {
    name: &'static str,
    values: Vec<Option<i64>>,
}

impl Numbers {
    pub fn new(name: &'static str) -> Self {
        Self { name, values: Vec::new() }
    }

    pub fn push(&mut self, value: i64) {
        self.values.push(Some(value));
    }

    pub fn push_option(&mut self, value: Option<i64>) {
        self.values.push(value);
    }

    /// A count, a size or an address; beyond 63 bits it stops.
    pub fn push_unsigned(&mut self, value: u64) {
        self.push(i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub fn finish(self) -> Column {
        Int64Chunked::from_iter_options(self.name.into(), self.values.into_iter()).into_column()
    }
}

/// Yes or no.
pub(super) struct Flags {
    name: &'static str,
    values: Vec<bool>,
}

impl Flags {
    pub fn new(name: &'static str) -> Self {
        Self { name, values: Vec::new() }
    }

    pub fn push(&mut self, value: bool) {
        self.values.push(value);
    }

    pub fn finish(self) -> Column {
        BooleanChunked::from_slice(self.name.into(), &self.values).into_column()
    }
}

/// Text that repeats: each distinct one is kept once, and written to Parquet as a dictionary.
pub(super) struct Texts {
    builder: CategoricalChunkedBuilder<Categorical32Type>,
    mapping: Arc<CategoricalMapping>,
    by_key: FxHashMap<u64, u32>,
}

impl Texts {
    pub fn new(name: &'static str) -> Self {
        let categories = Categories::random(name.into(), CategoricalPhysical::U32);
        let mapping = categories.mapping();
        let builder = CategoricalChunkedBuilder::new(name.into(), DataType::from_categories(categories));
        Self { builder, mapping, by_key: FxHashMap::default() }
    }

    /// Adds a text; an empty one means "not known".
    pub fn push(&mut self, text: &str) -> PolarsResult<()> {
        if text.is_empty() {
            self.builder.append_null();
            return Ok(());
        }
        self.builder.append_str(text)
    }

    /// The same for text that is dear to make: it is made once for each `key`.
    pub fn push_keyed(&mut self, key: u64, text: impl FnOnce() -> String) -> PolarsResult<()> {
        /// What stands for an empty text.
        const EMPTY: u32 = u32::MAX;
        let category = match self.by_key.get(&key) {
            Some(&category) => category,
            None => {
                let text = text();
                let category = if text.is_empty() { EMPTY } else { self.mapping.insert_cat(&text)? };
                self.by_key.insert(key, category);
                category
            }
        };
        if category == EMPTY {
            self.builder.append_null();
            return Ok(());
        }
        self.builder.append_cat(category, &self.mapping)
    }

    pub fn finish(self) -> Column {
        self.builder.finish().into_series().into_column()
    }
}

/// Categories as plain text. The rows share the texts, where a cast would copy one for each row.
pub(super) fn plain(column: &Column) -> PolarsResult<Column> {
    let categories = column.cat32()?;
    let mapping = categories.get_mapping();
    let texts =
        (0..mapping.num_cats_upper_bound() as u32).map(|id| mapping.cat_to_str(id).unwrap_or_default());
    let texts = StringChunked::from_iter_values(column.name().clone(), texts);
    Ok(texts.take(categories.physical())?.into_column())
}

/// A frame of columns of one length.
pub(super) fn frame(columns: Vec<Column>) -> PolarsResult<DataFrame> {
    let rows = columns.first().map_or(0, Column::len);
    DataFrame::new(rows, columns)
}
