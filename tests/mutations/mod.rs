//! Damaged and hostile files: whatever happens to a file's bytes, opening it ends in a session or in a sentence, within
//! seconds and a bounded memory, never in a panic.
//!
//! `VRAMSCOPE_MUTATIONS=1000 cargo test mutations` runs the long form: so many mutations of every sample, fixture and
//! recording, each file in a process of its own whose memory is limited. What fails is kept in the folder that it names.

mod bombs;
mod damage;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vramscope::align::{self, Opened};
use vramscope::analysis::growth::suggested;
use vramscope::analysis::{FreeBy, GroupBy, Index, Query, Selection, UserCode};
use vramscope::import::{self, Input, Progress};
use vramscope::report::{self, Format, Options};

use crate::support::root;
use damage::{Seeded, damage};

/// No damaged file takes longer; unoptimised the code takes several times as long.
pub const MAX_TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 10 });

/// The most memory that a file of so many bytes may take.
pub fn max_memory(bytes: usize) -> u64 {
    (2 << 30) + 8 * bytes as u64
}

/// Larger files are cut to this before they are damaged, so that a thousand mutations take minutes.
const PART_BYTES: usize = 200_000;
/// In the long form one mutation of so many damages the compressed bytes.
const COMPRESSED_EVERY: u64 = 10;
/// Names the file that a process of its own damages.
const FILE: &str = "VRAMSCOPE_MUTATED_FILE";
const FOLDER: &str = "VRAMSCOPE_MUTATED_FOLDER";
const COUNT: &str = "VRAMSCOPE_MUTATIONS";

fn count() -> u64 {
    std::env::var(COUNT).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

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
        report::render(&report, format).expect("every report can be written");
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

/// What became of one file's mutations.
#[derive(Default)]
struct Tally {
    opened: u64,
    refused: u64,
    slowest_ms: u64,
    peak_kib: u64,
    failed: Vec<String>,
}

/// The most memory that this process ever held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Ends the process when one mutation takes far too long, since a thread can't be stopped.
fn watch(started_ms: Arc<AtomicU64>, epoch: Instant) {
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let now_ms = epoch.elapsed().as_millis() as u64;
                if now_ms - started_ms.load(Ordering::Relaxed).min(now_ms) > 6 * MAX_TIME.as_millis() as u64 {
                    println!("TALLY hangs");
                    std::process::exit(3);
                }
            }
        })
        .expect("a thread");
}

/// The part of the long form that runs in a process of its own; does nothing without a file.
#[test]
fn one_file_of_the_long_form() {
    let Some(path) = std::env::var_os(FILE).map(PathBuf::from) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).expect("a folder for what fails"));
    let original = Original::read(&path).expect("a file");
    let (name, mut tally) = (name_of(&path), Tally::default());
    let (epoch, started_ms) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    watch(started_ms.clone(), epoch);
    for number in 0..count() {
        let bytes = original.damaged(&name, number);
        // Should the process end, this is why.
        let kept = folder.join(format!("{number}-{name}"));
        std::fs::write(&kept, &bytes).expect("the damaged file");
        started_ms.store(epoch.elapsed().as_millis() as u64, Ordering::Relaxed);
        let (started, limit) = (Instant::now(), max_memory(bytes.len()));
        let result = catch_unwind(AssertUnwindSafe(|| open_and_report(bytes)));
        let took = started.elapsed();
        tally.slowest_ms = tally.slowest_ms.max(took.as_millis() as u64);
        let is_within = took <= MAX_TIME && peak_kib() << 10 <= limit;
        match result {
            Ok(true) => tally.opened += 1,
            Ok(false) => tally.refused += 1,
            Err(_) => {}
        }
        if result.is_ok() && is_within {
            std::fs::remove_file(&kept).expect("removed");
        } else {
            tally.failed.push(format!("{} after {} ms", kept.display(), took.as_millis()));
        }
    }
    println!("TALLY {} {} {} {}", tally.opened, tally.refused, tally.slowest_ms, peak_kib());
    assert!(tally.failed.is_empty(), "{}", tally.failed.join("\n"));
}

#[cfg(unix)]
#[test]
fn damaged_files_in_the_long_form() {
    if count() == 0 {
        println!("skipped: set {COUNT}=1000 to run it");
        return;
    }
    let folder = tempfile::tempdir().unwrap().keep();
    let recordings = std::env::var_os("VRAMSCOPE_RECORDINGS")
        .map_or_else(|| root().join("../shared/recordings"), PathBuf::from);
    let mut paths =
        import::expand_paths(&[root().join("samples"), root().join("tests/fixtures"), recordings]);
    paths.sort_by_key(|path| path.metadata().map_or(0, |metadata| metadata.len()));
    let (mut total, mut files) = (Tally::default(), 0);
    for path in &paths {
        let Some(original) = Original::read(path) else { continue };
        let limit_kib = max_memory(original.content.len()) >> 9;
        let output = Command::new("bash")
            .args(["-c", "ulimit -v $0; exec \"$@\"", &limit_kib.to_string()])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "mutations::one_file_of_the_long_form", "--nocapture"])
            .env(FILE, path)
            .env(FOLDER, &folder)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers = text.lines().find_map(|line| line.split_once("TALLY ")).map_or("", |(_, rest)| rest);
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        if let [opened, refused, slowest_ms, peak_kib] = numbers[..] {
            total.opened += opened;
            total.refused += refused;
            total.slowest_ms = total.slowest_ms.max(slowest_ms);
            total.peak_kib = total.peak_kib.max(peak_kib);
        }
        files += 1;
        println!("{} of {} files: {}", files, paths.len(), path.display());
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let mut why = format!("{} ({})", path.display(), output.status);
            for line in
                errors.lines().filter(|line| line.contains("panicked") || line.contains("after")).take(8)
            {
                let _ = write!(why, "\n  {line}");
            }
            println!("{why}");
            total.failed.push(why);
        }
    }
    println!(
        "mutations: {} of {files} files, {} opened, {} refused, {} files failed; slowest {} ms, peak {} MiB; {}",
        count(),
        total.opened,
        total.refused,
        total.failed.len(),
        total.slowest_ms,
        total.peak_kib >> 10,
        folder.display()
    );
    assert!(total.failed.is_empty(), "{}", total.failed.join("\n"));
}
