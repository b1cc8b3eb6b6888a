//! The importers and the analysis without the window and the tables, and what the targets have in common.

#![allow(dead_code, missing_docs, unused_imports, unused_macros, reason = "the folders are whole in the crate that they belong to")]

#[path = "../../src/align/mod.rs"]
pub mod align;
#[path = "../../src/analysis/mod.rs"]
pub mod analysis;
#[path = "../../src/import/mod.rs"]
pub mod import;
#[path = "../../src/model/mod.rs"]
pub mod model;
#[path = "../../src/text/mod.rs"]
pub mod text;

use std::hint::black_box;
use std::sync::Arc;

use align::Opened;
use analysis::findings::findings;
use analysis::{FreeBy, GroupBy, Index, Query, Selection, UserCode};
use import::{IMPORTERS, ImportError, Input, Progress};

/// What stands between the files of an input of several.
const SEPARATOR: &[u8] = b"\n%%%%\n";
/// More files tell nothing more.
const MAX_FILES: usize = 4;

/// Reads bytes as a format, whether or not they look like it.
pub fn read_as(format: &str, bytes: &[u8]) {
    let importer = IMPORTERS.iter().find(|importer| importer.name() == format).expect("a format of that name");
    let input = Input::from_bytes("fuzzed", bytes.to_vec());
    check(importer.import(&input, &Progress::default()).err());
}

/// Finds out what bytes are and reads them.
pub fn read(bytes: &[u8]) {
    check(import::import(&Input::from_bytes("fuzzed", bytes.to_vec()), &Progress::default()).err());
}

/// Errors are one sentence with the file last.
fn check(error: Option<ImportError>) {
    let Some(error) = error else { return };
    let text = error.to_string();
    assert!(text.ends_with(": fuzzed") && !text.contains('\n'), "{text}");
}

/// Opens several files together and asks everything that a report asks.
pub fn open_and_ask(bytes: &[u8]) {
    let opened: Vec<Opened> = split(bytes)
        .take(MAX_FILES)
        .enumerate()
        .filter_map(|(number, bytes)| {
            let name = format!("run/file{number}");
            let input = Input::from_bytes(&name, bytes.to_vec());
            let recording = Arc::new(import::import(&input, &Progress::default()).ok()?);
            Some(Opened::new(name, recording))
        })
        .collect();
    let index = Index::new(Arc::new(align::build(&opened)), UserCode::default());
    let (selection, span) = (Selection::default(), index.session.span);
    let suggested = analysis::growth::suggest(&index, selection);
    for range in suggested.iter().map(|suggestion| suggestion.range).chain([span]) {
        for free_by in [FreeBy::RecordingEnd, FreeBy::RangeEnd] {
            let query = Query { selection, range, free_by };
            let rows = analysis::kept(&index.session, &query);
            for by in GroupBy::ALL {
                black_box(analysis::group(&index, &rows, by));
            }
            black_box(analysis::totals(&index.session, selection, range));
            black_box(analysis::module_tree(&index, &query));
            black_box(findings(&index, &query));
        }
        black_box(analysis::live(&index.session, selection, range.end_ns));
    }
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let bytes = rest?;
        let at = memchr::memmem::find(bytes, SEPARATOR);
        rest = at.map(|at| &bytes[at + SEPARATOR.len()..]);
        Some(&bytes[..at.unwrap_or(bytes.len())])
    })
}
