//! The window.

use std::path::PathBuf;
use std::process::ExitCode;

/// Shows the window with these files opened, until it is closed.
pub fn run(_paths: Vec<PathBuf>) -> ExitCode {
    ExitCode::SUCCESS
}
