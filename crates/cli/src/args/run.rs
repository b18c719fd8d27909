//! `run` and `create`.

use clap::Args;

use super::command::{CommandArgs, ContextArgs, LeaveArgs};
use super::sandbox::SandboxArgs;

/// Run a command in a throwaway copy of this machine
///
/// The sandbox is gone when the command has ended, unless it is kept. Exits with the command's own code;
/// 124 when it ran too long, 125 when zeno failed, 126 and 127 when it could not be started, 128+n when
/// signal n ended it.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(
    override_usage = "zeno run [OPTIONS] [--] <CMD>...",
    after_long_help = "Examples:
  zeno run -- cargo test
  zeno run --timeout 5m --memory 2G -- npm test
  zeno run --keep --name try-it -- make install
  zeno run -e DEBUG=1 -w packages/web -- npm start
  git diff | zeno run -- patch -p1 --dry-run"
)]
pub(crate) struct Run {
    /// Keep the sandbox when the command has ended
    #[arg(long)]
    pub(crate) keep: bool,
    /// Start the command, print the sandbox and return; the sandbox is kept
    #[arg(short, long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) leave: LeaveArgs,
    #[command(flatten)]
    pub(crate) command: CommandArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

/// Make a sandbox and print its name
///
/// Prints the name, or the id where it has none. What `-e`, `-w` and `-u` say holds for every command in it.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno create --name web --ttl 2h
  sandbox=$(zeno create)
  zeno create --net host --label ticket=1234")]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) context: ContextArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}
