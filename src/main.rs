//! Arguments, then the window or a command; nothing else.

use std::process::ExitCode;

use clap::Parser as _;
use vramscope::text::Language;
use vramscope::{app, cli};

fn main() -> ExitCode {
    let args = cli::Args::parse();
    let language = args.language.or_else(Language::asked_for);
    match args.command {
        Some(command) => {
            // Scripts read commands: those don't follow the system.
            language.unwrap_or_default().speak();
            cli::run(&command)
        }
        None => match app::run(args.paths, language) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error:#}");
                ExitCode::FAILURE
            }
        },
    }
}
