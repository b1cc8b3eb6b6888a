//! TODO
use super::Status;
use super::args::ExportArgs;
pub(super) fn run(_args: &ExportArgs) -> anyhow::Result<Status> {
    anyhow::bail!("not there yet")
}
