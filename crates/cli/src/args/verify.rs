//! `verify` and `verdicts`.

use clap::Args;
use model::Name;

use super::which::Which;

/// Run checks on the state of a sandbox
///
/// The state is sealed, and every check runs in a copy of it that is gone afterwards, so that checks void nothing. Which
/// checks there are stands in zeno.yaml at the root of the real workspace. A check that fails is run once more. The verdict
/// holds for exactly this state: one changed byte, and it is void. Exits with 0 if all pass, else with 1.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno verify web
  zeno verify web unit lint
  zeno verify web --check 'npm test' --json")]
pub(crate) struct Verify {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Checks of zeno.yaml, with what they need; all of them if none is given, and no --check
    #[arg(value_name = "CHECK")]
    pub(crate) checks: Vec<Name>,
    /// A line for `sh` that has to exit with 0 (repeatable)
    #[arg(long = "check", value_name = "CMD")]
    pub(crate) commands: Vec<String>,
}

/// List what checks said
///
/// Oldest first. `--json` has all that is known of each, with the files that hold what the checks wrote.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno verdicts
  zeno verdicts web
  zeno verdicts web --json | jq '.[-1].checks[].runs[].log'")]
pub(crate) struct Verdicts {
    /// Only those on states of this sandbox, which may be gone
    pub(crate) sandbox: Option<Which>,
}
