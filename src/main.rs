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
        None => {
            give_back_large_blocks();
            match app::run(args.paths, language) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("vramscope: {error:#}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}

/// Blocks from 1 MiB on go back to the system when they are freed. On its own glibc raises that limit to 32 MiB as soon
/// as such a block was freed, and what a closed session has left on a dozen threads stays with the program.
fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const M_MMAP_THRESHOLD: i32 = -3;
        #[expect(unsafe_code, reason = "glibc has no other way; it takes two numbers and keeps no pointer")]
        unsafe extern "C" {
            safe fn mallopt(parameter: i32, value: i32) -> i32;
        }
        // Refused, all is as before.
        let _ = mallopt(M_MMAP_THRESHOLD, 1 << 20);
    }
}
