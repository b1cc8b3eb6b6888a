//! The report as JSON: the contract, as it stands.

use super::Report;

/// Writes indented JSON with a newline at the end.
pub(super) fn render(report: &Report) -> anyhow::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(report)?;
    bytes.push(b'\n');
    Ok(bytes)
}
