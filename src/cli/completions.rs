//! Completions for shells and man pages, from the same definition as the parser's.

use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Args, Status, output};

pub(super) fn run(shell: Shell) -> anyhow::Result<Status> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "vramscope", &mut script);
    output::print(&script)?;
    Ok(Status::Done)
}

pub(super) fn man(folder: Option<&Path>) -> anyhow::Result<Status> {
    match folder {
        Some(folder) => clap_mangen::generate_to(Args::command(), folder)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Args::command()).render(&mut page)?;
            output::print(&page)?;
        }
    }
    Ok(Status::Done)
}
