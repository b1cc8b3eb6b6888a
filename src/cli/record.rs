//! TODO
use super::Status;
use super::args::RecordArgs;
pub(super) fn run(_args: &RecordArgs) -> anyhow::Result<Status> {
    anyhow::bail!("not there yet")
}
