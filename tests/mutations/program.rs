//! The program itself, in limited memory and time.

use std::path::Path;
use std::process::Command;

/// The time that the program may compute; unoptimised the code takes several times as long.
const MAX_CPU_SECONDS: u64 = if cfg!(debug_assertions) { 20 } else { 10 };
/// A program that waits for ever computes nothing.
const MAX_SECONDS: u64 = 30 * MAX_CPU_SECONDS;
/// What the program maps whatever it reads, beside itself: libraries, stacks, room for what each thread allocates.
const MAPPED_BYTES: u64 = 512 << 20;

const FORMATS: [&str; 4] = ["html", "md", "json", "csv"];

/// The format of a mutation's report.
pub fn format_of(number: u64) -> &'static str {
    // Every tenth is compressed; those too take turns.
    FORMATS[((number + number / 10) % 4) as usize]
}

/// Makes a report of a file. Whether it could be opened; an error when the program did anything but end with a status of
/// 0 or, after a sentence that names the file, 1.
pub fn report(path: &Path, format: &str) -> Result<bool, String> {
    let program =
        std::env::var("VRAMSCOPE_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_vramscope").to_owned());
    let length = |path: &Path| path.metadata().map_or(0, |metadata| metadata.len());
    let max_bytes = (2 << 30) + 8 * length(path) + length(Path::new(&program)) + MAPPED_BYTES;
    let written = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!(
            "ulimit -c 0 -v {} -t {MAX_CPU_SECONDS}; exec timeout {MAX_SECONDS} \"$@\"",
            max_bytes >> 10
        ))
        .args(["limited", &program, "report", "--format", format, "-o"])
        .args([written.path(), path])
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .map_err(|error| error.to_string())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_sentence =
        |line: &str| line.starts_with("vramscope: ") && line.ends_with(&format!(": {}", path.display()));
    let is_well = match output.status.code() {
        Some(0) => length(written.path()) > 0,
        Some(1) => !errors.is_empty() && errors.lines().all(is_sentence),
        _ => false,
    };
    if is_well && !errors.contains("panicked") {
        return Ok(output.status.success());
    }
    Err(format!("{}: {}", output.status, errors.trim()))
}
