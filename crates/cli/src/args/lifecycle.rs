//! The life of a sandbox: `pause`, `resume`, `stop`, `start`, `extend`, `destroy`.

use clap::Args;
use model::units::Span;

use super::which::Which;

/// Freeze every process of a sandbox
///
/// Memory is kept; `zeno resume` goes on where it was.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno pause web
  zeno pause web worker")]
pub(crate) struct Pause {
    /// Ids or names
    #[arg(required = true, value_name = "SANDBOX")]
    pub(crate) sandboxes: Vec<Which>,
}

/// Let the processes of a paused sandbox go on
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno resume web")]
pub(crate) struct Resume {
    /// Ids or names
    #[arg(required = true, value_name = "SANDBOX")]
    pub(crate) sandboxes: Vec<Which>,
}

/// End every process of a sandbox, keep its files
///
/// `zeno start` brings it back.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno stop web")]
pub(crate) struct Stop {
    /// Ids or names
    #[arg(required = true, value_name = "SANDBOX")]
    pub(crate) sandboxes: Vec<Which>,
}

/// Start a stopped or expired sandbox again
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno start web")]
pub(crate) struct Start {
    /// Ids or names
    #[arg(required = true, value_name = "SANDBOX")]
    pub(crate) sandboxes: Vec<Which>,
}

/// Give a sandbox a new lifetime, counted from now
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno extend web --ttl 2h")]
pub(crate) struct Extend {
    /// Id or name
    pub(crate) sandbox: Which,
    /// How long it may live from now
    #[arg(long, value_name = "TIME")]
    pub(crate) ttl: Span,
}

/// Remove sandboxes and all they wrote
#[derive(Debug, PartialEq, Eq, Args)]
#[command(
    visible_alias = "rm",
    after_long_help = "Examples:
  zeno destroy web
  zeno destroy $(zeno list -q)
  zeno destroy --all --yes"
)]
pub(crate) struct Destroy {
    /// Ids or names
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "SANDBOX")]
    pub(crate) sandboxes: Vec<Which>,
    /// Remove every sandbox
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}
