//! `cargo xtask`: the project's own chores.
//!
//! Never needed at run time, and never asked anything by the product.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the person at the terminal")]

mod bench;
mod check;
mod files;
mod generate;
mod packages;
mod process;
mod program;
mod rig;
mod sdks;
mod soak;
mod test;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;

/// Chores of the zeno project
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Chore {
    Test(test::Args),
    Check(check::Args),
    Generate(generate::Args),
    Bench(bench::Args),
    Soak(soak::Args),
}

fn main() -> ExitCode {
    let done: Result<(), Box<dyn Error>> = match Chore::parse() {
        Chore::Test(args) => test::test(&args).map_err(Into::into),
        Chore::Check(args) => check::check(&args).map_err(Into::into),
        Chore::Generate(args) => generate::generate(&args).map_err(Into::into),
        Chore::Bench(args) => bench::bench(&args).map_err(Into::into),
        Chore::Soak(args) => soak::soak(&args).map_err(Into::into),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// An error and what caused it, on one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
