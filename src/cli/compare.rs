//! TODO
use super::Status;
use super::args::CompareArgs;
pub(super) fn run(_args: &CompareArgs) -> anyhow::Result<Status> {
    anyhow::bail!("not there yet")
}
