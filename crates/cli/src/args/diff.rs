//! `zeno diff`.

use std::path::PathBuf;

use clap::Args;

use super::which::Which;

/// Show what a sandbox changed
///
/// The workspace and the rest of the machine are listed apart, deletions first. Paths are relative to the current
/// folder; without any, everything is shown. Times alone are no change.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno diff web
  zeno diff web --stat src
  zeno diff web --from before-upgrade
  zeno diff web --patch | git apply
  zeno diff web --with other-try
  zeno diff web --json /etc")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) form: DiffForm,
    /// Id or name
    pub(crate) sandbox: Which,
    /// Only what it wrote since this snapshot, by id or name
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) from: Option<Which>,
    /// Compare with what this sandbox changed, file by file, without what git ignores
    #[arg(long, value_name = "SANDBOX", conflicts_with_all = ["stat", "name_status", "patch", "ignored"])]
    pub(crate) with: Option<Which>,
    /// List what git ignores path by path, too
    #[arg(long)]
    pub(crate) ignored: bool,
    /// Only what is at or below these
    pub(crate) paths: Vec<PathBuf>,
}

/// How it is shown; one of them.
#[derive(Debug, PartialEq, Eq, Args)]
#[group(multiple = false)]
pub(crate) struct DiffForm {
    /// Count the lines that came and went, file by file
    #[arg(long)]
    pub(crate) stat: bool,
    /// One line each, as `git diff --name-status` writes them
    #[arg(long)]
    pub(crate) name_status: bool,
    /// A patch of the workspace that `git apply` takes, without what git ignores
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) patch: bool,
}
