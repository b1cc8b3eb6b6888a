//! TODO
use super::Status;
use super::args::QueryArgs;
pub(super) fn run(_args: &QueryArgs) -> anyhow::Result<Status> {
    anyhow::bail!("not there yet")
}
