//! Arguments, then the window or a command; nothing else.

use std::process::ExitCode;

use clap::Parser as _;
use vramscope::{app, cli};

fn main() -> ExitCode {
    let args = cli::Args::parse();
    match args.command {
        Some(command) => cli::run(&command),
        None => match app::run(args.paths) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::FAILURE
            }
        },
    }
}
