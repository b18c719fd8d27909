//! `cargo xtask check`: everything about the sources that can be judged without running the product.

mod modules;
mod sources;

use std::process::Command;
use std::time::Instant;

use crate::files::{self, FileError};
use crate::generate::{self, GenerateError};
use crate::process::{self, ProcessError};

/// Check formatting, lints, generated files, dependencies and house rules
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

type Check = (&'static str, fn() -> Result<(), CheckError>);

/// Cheap ones first.
const CHECKS: &[Check] = &[
    ("format", || cargo(&["fmt", "--all", "--check"])),
    ("every file is compiled", modules::every_file_is_compiled),
    ("no path of this machine", sources::no_machine_paths),
    ("short files", sources::short_files),
    ("lints", || cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("generated files", || Ok(generate::generate(&generate::Args { check: true })?)),
    ("dependencies", dependencies),
];

/// Runs every check, so that one failure does not hide the next.
pub(crate) fn check(_: &Args) -> Result<(), CheckError> {
    let mut failed = Vec::new();
    for (name, check) in CHECKS {
        let start = Instant::now();
        let outcome = check();
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("ok      {seconds:6.1} s  {name}"),
            Err(error) => {
                println!("FAILED  {seconds:6.1} s  {name}: {}", crate::chain(&error));
                failed.push(*name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(CheckError::Failed { checks: failed.join(", ") }) }
}

/// Advisories are left out: their database is cloned from the web, and a build must not depend on that.
fn dependencies() -> Result<(), CheckError> {
    if process::quietly(Command::new("cargo").args(["deny", "--version"])).is_err() {
        println!("installing cargo-deny, once (some minutes)");
        cargo(&["install", "--quiet", "--locked", "cargo-deny"])?;
    }
    cargo(&["deny", "--log-level", "error", "check", "bans", "licenses", "sources"])
}

fn cargo(words: &[&str]) -> Result<(), CheckError> {
    Ok(process::run(Command::new("cargo").args(words).current_dir(files::root()))?)
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error("failed: {checks}")]
    Failed { checks: String },
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error("in no module tree, so never compiled or run: {}", files.join(" "))]
    Orphans { files: Vec<String> },
    #[error("a path of this machine in: {}", places.join(" "))]
    MachinePaths { places: Vec<String> },
}
