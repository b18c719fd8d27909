//! Save points: `snapshot`, `snapshots`, `rollback`, `restore`, `fork`, `gc`.

use clap::{Args, Subcommand};
use model::Name;

use super::sandbox::Label;
use super::which::Which;

/// Seal all that a sandbox has written, to come back to
///
/// A sandbox that runs goes on: its commands are not ended. Prints the snapshot's name, or its id where it has none.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno snapshot web
  zeno snapshot web --name before-upgrade
  zeno snapshot web --label ticket=1234")]
pub(crate) struct Snapshot {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Name of the snapshot
    #[arg(long)]
    pub(crate) name: Option<Name>,
    /// Label it (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<Label>,
}

/// List snapshots, or remove some
///
/// A snapshot outlives the sandbox it was made of. One that nobody asked for (of a sandbox whose time was over, or that
/// was forked) is removed after a week.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:
  zeno snapshots
  zeno snapshots --of web --tree
  zeno snapshots rm before-upgrade
  zeno snapshots get before-upgrade --json"
)]
pub(crate) struct Snapshots {
    #[command(subcommand)]
    pub(crate) action: Option<SnapshotsAction>,
    /// Only those of this sandbox, which may be gone
    #[arg(long, value_name = "SANDBOX")]
    pub(crate) of: Option<Which>,
    /// Show which was made on which
    #[arg(long)]
    pub(crate) tree: bool,
    /// Ids only, one per line
    #[arg(short, long, conflicts_with = "tree")]
    pub(crate) quiet: bool,
}

#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum SnapshotsAction {
    /// Print the record of a snapshot
    Get {
        /// Id or name
        snapshot: Which,
    },
    /// Remove snapshots; what was made from them stays whole
    Rm {
        /// Ids or names
        #[arg(required = true, value_name = "SNAPSHOT")]
        snapshots: Vec<Which>,
    },
}

/// Take a sandbox back to a snapshot
///
/// What it wrote since is gone, and its processes are ended; it runs again if it ran. Its id and name stay.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno rollback web
  zeno rollback web before-upgrade")]
pub(crate) struct Rollback {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Id or name of the snapshot; without one, the last that it stood on
    pub(crate) snapshot: Option<Which>,
}

/// Make a new sandbox of a snapshot
///
/// It has the files, the environment and the limits of the sandbox that the snapshot was made of, but none of its
/// processes.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno restore before-upgrade
  zeno restore before-upgrade --name second-try")]
pub(crate) struct Restore {
    /// Id or name of the snapshot
    pub(crate) snapshot: Which,
    /// Name of the sandbox
    #[arg(long)]
    pub(crate) name: Option<Name>,
    /// Label it (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<Label>,
}

/// Make new sandboxes of one, on all that it has written
///
/// Each has its files, its environment and its limits, but none of its processes. The one they are made of goes on. One
/// that cannot be made does not keep the others.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno fork web
  zeno fork web --name second-try
  zeno fork web -n 3 --name try        # try-1, try-2, try-3")]
pub(crate) struct Fork {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u32,
    /// Name of the new sandbox; several are numbered
    #[arg(long)]
    pub(crate) name: Option<Name>,
    /// Label them (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub(crate) labels: Vec<Label>,
}

/// Remove what no sandbox and no snapshot needs any more
///
/// Done by itself now and then.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno gc --dry-run
  zeno gc")]
pub(crate) struct Gc {
    /// Remove nothing, only say what would be
    #[arg(long)]
    pub(crate) dry_run: bool,
}
