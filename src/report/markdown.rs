//! TODO
use super::Report;
pub(super) fn render(report: &Report) -> String {
    report.summary.clone()
}
