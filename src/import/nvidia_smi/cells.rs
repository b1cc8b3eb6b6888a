//! Cells of nvidia-smi's tables: figures with units, times, and the words for "nothing to say".

use jiff::civil;

use crate::model::parse_bytes;

/// Words that stand where a figure should: a gap, never 0.
const MISSING: &[&str] = &[
    "n/a",
    "not supported",
    "unknown error",
    "insufficient permissions",
    "gpu requires reset",
    "gpu is lost",
    "not found",
    "no data",
    "err!",
    "error",
    "unknown",
    "-",
    "",
];

/// Whether a cell holds no figure.
pub(super) fn is_missing(cell: &str) -> bool {
    let word = cell.trim().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    MISSING.contains(&word.as_str())
}

/// Bytes of a memory cell. Without a unit of its own the column's counts, `MiB` unless it says otherwise.
pub(super) fn bytes(cell: &str, unit: &str) -> Option<i64> {
    let cell = cell.trim();
    if is_missing(cell) {
        return None;
    }
    let has_unit = cell.ends_with(|c: char| c.is_ascii_alphabetic());
    let unit = if unit.is_empty() { "MiB" } else { unit };
    let bytes = if has_unit { parse_bytes(cell) } else { parse_bytes(&format!("{cell} {unit}")) };
    bytes.and_then(|bytes| i64::try_from(bytes).ok())
}

/// What a time cell means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// Local wall time, as if it were UTC.
    Local(i64),
    /// With a zone: Unix time.
    Unix(i64),
}

/// `2026/12/01 11:22:03.379`, or ISO with or without a zone.
pub(super) fn time(cell: &str) -> Option<Time> {
    let cell = cell.trim();
    if let Ok(time) = cell.parse::<jiff::Timestamp>() {
        return i64::try_from(time.as_nanosecond()).ok().map(Time::Unix);
    }
    // "2026/12/01 …" differs from ISO in its slashes only.
    let iso = cell.replace('/', "-");
    let time: civil::DateTime = iso.parse().ok()?;
    // A date alone is no time of a sample.
    if !cell.contains(':') {
        return None;
    }
    let time = jiff::tz::TimeZone::UTC.to_timestamp(time).ok()?;
    i64::try_from(time.as_nanosecond()).ok().map(Time::Local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_kind() {
        assert_eq!(bytes("694 MiB", "MiB"), Some(694 << 20));
        assert_eq!(bytes("694", "MiB"), Some(694 << 20));
        assert_eq!(bytes("2048 KiB", "MiB"), Some(2 << 20));
        assert_eq!(bytes("12", ""), Some(12 << 20));
        for gap in [
            "[N/A]",
            "N/A",
            "[Not Supported]",
            "[No data]",
            "[GPU requires reset]",
            "[Insufficient Permissions]",
            "-",
            "",
        ] {
            assert_eq!(bytes(gap, "MiB"), None, "{gap}");
        }
    }

    #[test]
    fn times_of_both_kinds() {
        assert_eq!(time("2026/12/01 11:22:03.379"), Some(Time::Local(1_796_124_123_379_000_000)));
        assert_eq!(time("2026-12-01T11:22:03.379+05:30"), Some(Time::Unix(1_796_104_323_379_000_000)));
        for bad in ["2026/12/01", "0", "NVIDIA H200", ""] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
