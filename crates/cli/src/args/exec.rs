//! Commands in a sandbox that exists: `exec`, `shell`, `attach`, `execs`, `kill`.

use clap::Args;
use model::ExecId;

use super::command::{CommandArgs, ContextArgs, LeaveArgs};
use super::which::Which;
use crate::signal::SignalNumber;

/// Run a command in a sandbox
///
/// Exits with the command's own code, as `zeno run` does. On a terminal, ctrl-p ctrl-q leaves it running: `zeno attach`
/// comes back to it.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(
    override_usage = "zeno exec [OPTIONS] <SANDBOX> [--] <CMD>...",
    after_long_help = "Examples:
  zeno exec web -- npm test
  zeno exec web -u postgres -- psql
  zeno exec web -d -- npm start
  tar c src | zeno exec web -w /tmp -- tar x"
)]
pub(crate) struct Exec {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Start the command, print its number and return
    #[arg(short, long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) leave: LeaveArgs,
    #[command(flatten)]
    pub(crate) command: CommandArgs,
}

/// Open a shell in a sandbox
///
/// Starts your own shell ($SHELL) as a login shell, on a terminal. ctrl-p ctrl-q leaves it running: `zeno attach` comes
/// back to it.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno shell web
  zeno shell web -u root -w /etc")]
pub(crate) struct Shell {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    #[command(flatten)]
    pub(crate) context: ContextArgs,
    #[command(flatten)]
    pub(crate) leave: LeaveArgs,
}

/// Join a running command
///
/// Shows its output from now on and hands on standard input and signals. One on a terminal gets the size of this one.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno execs web
  zeno attach web 3")]
pub(crate) struct Attach {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Number of the command, as in `zeno execs`
    pub(crate) exec: ExecId,
    #[command(flatten)]
    pub(crate) leave: LeaveArgs,
}

/// List the commands of a sandbox
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno execs web
  zeno execs web --json")]
pub(crate) struct Execs {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
}

/// Send a signal to a command
///
/// The signal goes to the command's process group.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno kill web 3
  zeno kill web 3 --signal KILL")]
pub(crate) struct Kill {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Number of the command, as in `zeno execs`
    pub(crate) exec: ExecId,
    /// Name or number of the signal
    #[arg(short, long, default_value = "TERM")]
    pub(crate) signal: SignalNumber,
}
