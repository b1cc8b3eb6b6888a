//! TODO
use super::Report;
use crate::analysis::Index;
pub(super) fn redact(report: &Report, _index: &Index) -> Report {
    report.clone()
}
