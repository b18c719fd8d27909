//! `zeno completions`.

use clap::CommandFactory;

use crate::args::Cli;
use crate::args::machine::Completions;
use crate::failure::{DONE, Failure};
use crate::output;

pub(crate) fn completions(typed: &Completions) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(typed.shell, &mut Cli::command(), "zeno", &mut script);
    output::answer(&String::from_utf8_lossy(&script))?;
    Ok(DONE)
}
