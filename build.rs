//! Puts the version with the commit into the binary, and on Windows the icon too.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // Only releases name the commit: in between, each commit would compile everything anew.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let version = match git(&["rev-parse", "--short=9", "HEAD"]).filter(|_| is_release) {
        Some(commit) => {
            if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
                println!("cargo:rerun-if-changed={log}");
            }
            format!("{version} ({commit})")
        }
        None => version,
    };
    println!("cargo:rustc-env=VRAMSCOPE_VERSION={version}");
    #[cfg(windows)]
    add_icon();
}

/// What git says, or `None` without git or outside a checkout.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(windows)]
fn add_icon() {
    let icon = "assets/icon.ico";
    println!("cargo:rerun-if-changed={icon}");
    if std::path::Path::new(icon).exists() {
        if let Err(error) = winresource::WindowsResource::new().set_icon(icon).compile() {
            println!("cargo:warning=the icon was not added: {error}");
        }
    }
}
