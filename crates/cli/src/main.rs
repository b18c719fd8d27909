//! The `zeno` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
