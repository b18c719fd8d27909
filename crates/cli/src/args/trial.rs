//! `try`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::command::CommandArgs;
use super::sandbox::SandboxArgs;

/// Run a command in a sandbox, look at what it did, then decide
///
/// Shows what the command changed, in the workspace and on the machine, and asks: promote all of it, pick files, keep the
/// sandbox, or drop it. Nothing reaches the real machine before that. Where zeno.yaml declares checks, promoting runs them
/// first, and what does not pass is not promoted. Exits with the command's own code, as `zeno run`
/// does, or as `zeno promote` does where promoting fails. One that changed nothing is dropped.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(
    override_usage = "zeno try [OPTIONS] [--] <CMD>...",
    after_long_help = "Examples:
  zeno try -- npm update
  zeno try --net host -- cargo update
  zeno try --then promote -- ./codemod.sh
  zeno try --json --then drop -- make install"
)]
pub(crate) struct Trial {
    /// Do this instead of asking; where nobody can be asked, the sandbox is kept
    #[arg(long, value_parser = PossibleValuesParser::new(["promote", "keep", "drop"]).map(|text| then(&text)))]
    pub(crate) then: Option<Then>,
    #[command(flatten)]
    pub(crate) command: CommandArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

/// What becomes of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Promote,
    Keep,
    Drop,
}

fn then(text: &str) -> Then {
    match text {
        "promote" => Then::Promote,
        "drop" => Then::Drop,
        _ => Then::Keep,
    }
}
