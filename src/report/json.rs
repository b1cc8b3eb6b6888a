//! The report as JSON: the contract, as it stands.

use std::io::Write;

use super::Report;

/// Writes indented JSON with a newline at the end, row by row: all allocations may be much.
pub(super) fn write(report: &Report, mut out: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut out, report)?;
    out.write_all(b"\n")
}
