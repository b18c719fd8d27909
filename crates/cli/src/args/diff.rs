//! `zeno diff`.

use std::path::PathBuf;

use clap::Args;

use super::which::Which;

/// Show what a sandbox changed
///
/// The workspace and the rest of the machine are listed apart, deletions first. Paths are relative to the current
/// folder; without any, everything is shown. Times alone are no change.
///
/// With another sandbox or a snapshot, shows what it takes to make that one of the first, and which of the two changed
/// it. A word that could be a path as well is refused: write `./WORD` or put it after `--` for a path, `--with WORD` for
/// the other.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno diff web
  zeno diff web --stat src
  zeno diff web --from before-upgrade
  zeno diff web --patch | git apply
  zeno diff web other-try
  zeno diff right wrong
  zeno diff web other-try --stat src
  zeno diff web --with before-upgrade --patch
  zeno diff web --json /etc")]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) form: DiffForm,
    /// Id or name; or a candidate: RACE/NAME, or only its name in the last race if no sandbox is called that
    #[arg(value_parser = Which::or_candidate)]
    pub(crate) sandbox: Which,
    /// Only what changed since this snapshot, by id or name
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) from: Option<Which>,
    /// Compare with this sandbox, with this snapshot if no sandbox is called that, or with this candidate
    #[arg(long, value_name = "OTHER", value_parser = Which::or_candidate)]
    pub(crate) with: Option<Which>,
    /// List what git ignores path by path, too
    #[arg(long)]
    pub(crate) ignored: bool,
    /// Another sandbox, a snapshot or a candidate to compare with; what follows, or all if there is none, are paths: only what is at
    /// or below these
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<PathBuf>,
    /// Paths, whatever they are called
    #[arg(last = true, value_name = "PATH")]
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
