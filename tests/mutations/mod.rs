//! Damaged and hostile files: whatever happens to a file's bytes, opening it ends in a session or in a sentence, within
//! seconds and a bounded memory, never in a panic.
//!
//! `VRAMSCOPE_MUTATIONS=1000 cargo test mutations::damaged -- --nocapture` runs the long form: so many mutations of every
//! sample, fixture and recording, the largest first, each through the program itself in limited memory and time.
//! `VRAMSCOPE_PROGRAM` names another program (an optimised one is quicker), `VRAMSCOPE_MUTATION_THREADS` how many run at
//! once. What fails is kept in the folder that it names.

mod bombs;
mod damage;
mod program;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use vramscope::align::{self, Opened};
use vramscope::analysis::growth::suggested;
use vramscope::analysis::{FreeBy, GroupBy, Index, Query, Selection, UserCode};
use vramscope::import::{self, Input, Progress};
use vramscope::report::{self, Format, Options};

use crate::support::root;
use damage::{Seeded, damage};

/// Larger files are cut to this before they are damaged, so that a thousand mutations take minutes.
const PART_BYTES: usize = 200_000;
/// In the long form one mutation of so many damages the compressed bytes.
const COMPRESSED_EVERY: u64 = 10;
const COUNT: &str = "VRAMSCOPE_MUTATIONS";
const THREADS: &str = "VRAMSCOPE_MUTATION_THREADS";

/// A file as it is on disk and as it is inflated.
struct Original {
    packed: Vec<u8>,
    content: Vec<u8>,
}

impl Original {
    fn read(path: &Path) -> Option<Self> {
        let input = Input::open(path).ok()?;
        let mut content = input.read_all(&Progress::default(), 1 << 30).ok()?.bytes.to_vec();
        content.truncate(PART_BYTES);
        Some(Self { packed: std::fs::read(path).ok()?, content })
    }

    /// The damaged bytes of a number.
    fn damaged(&self, name: &str, number: u64) -> Vec<u8> {
        let is_packed = number % COMPRESSED_EVERY == COMPRESSED_EVERY - 1;
        let mut bytes = if is_packed { self.packed.clone() } else { self.content.clone() };
        damage(&mut bytes, &mut Seeded::of(name, number));
        bytes
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Opens bytes and makes a report of them. Whether they could be opened.
pub fn open_and_report(bytes: Vec<u8>) -> bool {
    let recording = match import::import(&Input::from_bytes("damaged", bytes), &Progress::default()) {
        Ok(recording) => Arc::new(recording),
        Err(error) => {
            let text = error.to_string();
            assert!(
                text.ends_with(": damaged") && !text.contains('\n'),
                "one sentence, the file last: {text}"
            );
            return false;
        }
    };
    let opened = Opened::new("damaged", recording);
    let index = Index::new(Arc::new(align::build(&[opened])), UserCode::default());
    let selection = Selection::default();
    let range = suggested(&index, selection).range;
    let query = Query { selection, range, free_by: FreeBy::RecordingEnd };
    let report = report::build(&index, &query, GroupBy::CallSite, &Options::default());
    for format in [Format::Html, Format::Markdown, Format::Json, Format::Csv] {
        report::render(&report, format, &mut std::io::sink()).expect("every report can be written");
    }
    true
}

#[test]
fn damaged_files_never_panic() {
    let (mut opened, mut refused) = (0, 0);
    for path in import::expand_paths(&[root().join("samples"), root().join("tests/fixtures")]) {
        let (Some(original), name) = (Original::read(&path), name_of(&path)) else { continue };
        for number in 0..3 {
            if open_and_report(original.damaged(&name, number)) {
                opened += 1;
            } else {
                refused += 1;
            }
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 0 && refused > 0);
}

/// What became of mutations.
#[derive(Default)]
struct Tally {
    opened: u64,
    refused: u64,
    slowest: (Duration, String),
    failed: Vec<String>,
}

impl Tally {
    fn take(&mut self, took: Duration, name: String, result: Result<bool, String>) {
        match result {
            Ok(true) => self.opened += 1,
            Ok(false) => self.refused += 1,
            Err(why) => {
                println!("{name}: {why}");
                self.failed.push(format!("{name}: {why}"));
            }
        }
        self.slowest = std::mem::take(&mut self.slowest).max((took, name));
    }
}

#[test]
fn damaged_files_in_the_long_form() {
    let number_of = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(count) = number_of(COUNT).filter(|_| cfg!(target_os = "linux")) else {
        println!("skipped: set {COUNT}=1000 to run it, on Linux");
        return;
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let threads = number_of(THREADS).unwrap_or(cores);
    let folder = tempfile::tempdir().unwrap().keep();
    let recordings = std::env::var_os("VRAMSCOPE_RECORDINGS")
        .map_or_else(|| root().join("../shared/recordings"), PathBuf::from);
    let mut paths =
        import::expand_paths(&[root().join("samples"), root().join("tests/fixtures"), recordings]);
    paths.sort_by_key(|path| std::cmp::Reverse(path.metadata().map_or(0, |metadata| metadata.len())));
    let (tally, mut files) = (Mutex::new(Tally::default()), 0);
    for (done, path) in paths.iter().enumerate() {
        let (started, name, next) = (Instant::now(), name_of(path), AtomicU64::new(0));
        let Some(original) = Original::read(path) else {
            println!("{} can't be read by itself", path.display());
            continue;
        };
        files += 1;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(number) = Some(next.fetch_add(1, Relaxed)).filter(|&number| number < count)
                    {
                        let kept = folder.join(format!("{done}-{number}-{name}"));
                        std::fs::write(&kept, original.damaged(&name, number)).expect("the damaged file");
                        let started = Instant::now();
                        let result = program::report(&kept, program::format_of(number));
                        if result.is_ok() {
                            std::fs::remove_file(&kept).expect("removed");
                        }
                        tally.lock().unwrap().take(
                            started.elapsed(),
                            format!("{number} of {}", path.display()),
                            result,
                        );
                    }
                });
            }
        });
        println!("{} of {} files in {:?}: {}", done + 1, paths.len(), started.elapsed(), path.display());
    }
    let Tally { opened, refused, slowest: (slowest, name), failed } = tally.into_inner().unwrap();
    println!(
        "mutations: {count} of each of {files} files, {opened} opened, {refused} refused, {} failed; slowest {slowest:?}, {name}",
        failed.len()
    );
    assert!(failed.is_empty(), "what failed is kept in {}:\n{}", folder.display(), failed.join("\n"));
}
