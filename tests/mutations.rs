//! Damaged files: whatever happens to a file's bytes, opening it ends in a recording or in a sentence, never in a panic.
//!
//! `VRAMSCOPE_MUTATIONS=1000 cargo test mutations` runs the long form through the real binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use vramscope::import::{self, Input, Progress};

use crate::support::root;

/// A small generator of numbers that are the same in every run (SplitMix64).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// One way to damage bytes: cut, flip, overwrite with extremes, delete, double, swap, or nest.
fn mutate(bytes: &mut Vec<u8>, random: &mut Seeded) {
    let (at, length) = (random.below(bytes.len()), random.below(bytes.len().min(4096)) + 1);
    let end = (at + length).min(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => {
            for _ in 0..=random.below(16) {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
        }
        2 => bytes[at..end.min(at + 8)].fill(0xff),
        3 => bytes[at..end.min(at + 8)].fill(0),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        6 => {
            let other = random.below(bytes.len());
            let count = length.min(bytes.len() - at.max(other));
            for index in 0..count {
                bytes.swap(at + index, other + index);
            }
        }
        _ => {
            let opening = [b'[', b'{', b'(', b']', b'}'][random.below(5)];
            bytes.splice(at..at, std::iter::repeat_n(opening, 20_000));
        }
    }
    if bytes.is_empty() {
        bytes.push(b'{');
    }
}

/// The content of every sample and fixture, inflated: damage to compressed data only exercises the inflater.
fn originals() -> Vec<(PathBuf, Vec<u8>)> {
    import::expand_paths(&[root().join("samples"), root().join("tests/fixtures")])
        .into_iter()
        .filter_map(|path| {
            let input = Input::open(&path).ok()?;
            let content = input.read_all(&Progress::default(), 1 << 30).ok()?.bytes.into_owned();
            Some((path, content))
        })
        .collect()
}

fn seed_of(path: &Path) -> u64 {
    path.file_name()
        .unwrap_or_default()
        .as_encoded_bytes()
        .iter()
        .fold(7, |seed, &byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

#[test]
fn damaged_files_never_panic() {
    let mut opened = 0;
    let mut refused = 0;
    for (path, original) in originals() {
        let mut random = Seeded(seed_of(&path));
        // Large files take a part, so that the quick form stays quick.
        let part = &original[..original.len().min(300_000)];
        for _ in 0..6 {
            let mut bytes = part.to_vec();
            for _ in 0..=random.below(3) {
                mutate(&mut bytes, &mut random);
            }
            match import::import(&Input::from_bytes("damaged", bytes), &Progress::default()) {
                Ok(_) => opened += 1,
                Err(error) => {
                    assert!(error.to_string().ends_with(": damaged"), "the file comes last: {error}");
                    refused += 1;
                }
            }
        }
    }
    println!("{opened} opened, {refused} refused");
    assert!(opened > 0 && refused > 0);
}

#[test]
fn damaged_files_through_the_binary() {
    let count = std::env::var("VRAMSCOPE_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("damaged");
    let (mut done, mut refused) = (0, 0);
    for (path, original) in originals().into_iter().take(if count == 0 { 4 } else { usize::MAX }) {
        let mut random = Seeded(seed_of(&path) ^ 0xb1);
        for _ in 0..count.max(2) {
            let mut bytes = original.clone();
            for _ in 0..=random.below(3) {
                mutate(&mut bytes, &mut random);
            }
            std::fs::write(&file, &bytes).unwrap();
            let output =
                Command::new(env!("CARGO_BIN_EXE_vramscope")).arg("inspect").arg(&file).output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => done += 1,
                Some(1) if !errors.trim().is_empty() => refused += 1,
                status => panic!("{}: status {status:?}: {errors}", path.display()),
            }
            assert!(!errors.contains("panicked"), "{}: {errors}", path.display());
        }
    }
    println!("mutations through the binary: {done} read, {refused} refused, 0 panics");
}
