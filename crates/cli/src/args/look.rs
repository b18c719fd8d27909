//! Looking at sandboxes: `list`, `get`, `status`, `logs`, `events`.

use clap::Args;
use model::ExecId;

use super::which::Which;

/// List sandboxes
#[derive(Debug, PartialEq, Eq, Args)]
#[command(visible_aliases = ["ls", "ps"], after_long_help = "Examples:
  zeno list
  zeno list -a
  zeno list --json")]
pub(crate) struct List {
    /// Show destroyed ones too
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Print ids only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Print the record of a sandbox
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno get web
  zeno get web --json")]
pub(crate) struct Get {
    /// Id or name
    pub(crate) sandbox: Which,
}

/// Show how a sandbox stands to the real machine
///
/// Its record, how far its frozen workspace is behind, what is hidden from it, what it wrote, and what it
/// cannot represent or enforce.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno status web
  zeno status web --json")]
pub(crate) struct Status {
    /// Id or name
    pub(crate) sandbox: Which,
}

/// Print the output of a sandbox's commands
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno logs web
  zeno logs web -f --exec 3")]
pub(crate) struct Logs {
    /// Id or name
    pub(crate) sandbox: Which,
    /// Go on as more is written
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Of this command only, numbered as in `zeno execs`
    #[arg(long, value_name = "N")]
    pub(crate) exec: Option<ExecId>,
}

/// Print what happened to sandboxes
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno events
  zeno events -f --after 120
  zeno events -f --json")]
pub(crate) struct Events {
    /// Go on as more happens
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what came after this event's number
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
}
