//! Bringing what a sandbox changed into reality and out to stages: `promote`, `promotions`, `undo`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use model::Name;
use model::promotion::{OnConflict, Resolutions};
use model::sandbox::Actor;

use super::sandbox::actor;
use super::which::Which;

/// Bring what a sandbox changed into reality, all or nothing
///
/// By default everything in the workspace that git does not ignore. Where the same file changed here meanwhile, text is
/// merged if it can be; what cannot is a conflict, and nothing is changed. Git's own folders, masked files, devices and
/// set-user-id bits are never promoted. Commits and stashes made inside arrive as refs/zeno/SANDBOX/..., also those of
/// submodules, and no ref of yours is touched. What was there before is kept for `zeno undo`.
///
/// `--to` goes on from there, through the stages of zeno.yaml as it is here, not as the sandbox has it. Their commands run
/// on this machine, in the worktree, with your environment. One that does not pass is taken back by its `rollback`, and
/// none after it is touched. Where a stage asks for a person, zeno asks at a terminal. The same again goes on with the
/// stage that comes next; the id of a promotion does that when its sandbox is gone.
#[derive(Debug, PartialEq, Eq, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
#[command(after_long_help = "Examples:
  zeno promote web --dry-run
  zeno promote web
  zeno promote web --to staging
  zeno promote prk3v7q2m4x6ab --to production
  zeno promote web --paths src package.json
  zeno promote web --on-conflict theirs --on-conflict src/main.rs=ours")]
pub(crate) struct Promote {
    /// Id or name of the sandbox, or id of a promotion that is to go on
    pub(crate) sandbox: Which,
    /// Stage of zeno.yaml to go to, through all before it
    #[arg(long, value_name = "STAGE")]
    pub(crate) to: Option<Name>,
    /// Only these, also ignored ones and those outside the workspace
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) paths: Vec<PathBuf>,
    /// Say what would be done, and do nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Whose version wins in a conflict: `ours` (the sandbox's), `theirs`, `abort`; for one path `PATH=ours` (repeatable)
    #[arg(long, value_name = "[PATH=]WHOSE")]
    pub(crate) on_conflict: Vec<Decision>,
    /// Leave commits made inside where they are; `--paths` leaves them, too
    #[arg(long)]
    pub(crate) no_commits: bool,
    /// Promote, too, what executes here by itself: editor tasks, .envrc, hooks of tools; it is recorded
    #[arg(long)]
    pub(crate) allow_executes: bool,
    /// First run this on a copy of the sealed state, besides the checks of zeno.yaml, unless all of them passed on exactly
    /// this state before (repeatable)
    #[arg(long = "check", value_name = "CMD")]
    pub(crate) commands: Vec<String>,
    /// Promote although the checks of zeno.yaml have not passed; it is recorded
    #[arg(long)]
    pub(crate) force: bool,
    /// Who asks: a person, an agent or automation; else ZENO_ACTOR, or what it looks like
    #[arg(long, value_parser = PossibleValuesParser::new(["adm", "agt", "atm"]).map(|text| actor(&text)))]
    pub(crate) actor: Option<Actor>,
}

/// Bring a sandbox up to date with its workspace
///
/// Lays what the sandbox changed over the workspace as it is now. Where the same file changed on both sides, text is merged
/// if it can be; what cannot is a conflict, and the sandbox stays as it is. Its processes are ended; it runs again if it
/// ran. What it was before is kept as a snapshot.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno refresh web --dry-run
  zeno refresh web
  zeno refresh web --on-conflict src/main.rs=theirs")]
pub(crate) struct Refresh {
    /// Id or name of the sandbox
    pub(crate) sandbox: Which,
    /// Say what would be done, and do nothing
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
    /// Whose version wins in a conflict: `ours` (the sandbox's), `theirs`, `abort`; for one path `PATH=ours` (repeatable)
    #[arg(long, value_name = "[PATH=]WHOSE")]
    pub(crate) on_conflict: Vec<Decision>,
}

/// List what was brought into reality, and how far it went out
///
/// What was there before is kept for 7 days, or until it is taken back; then `zeno gc` and zeno itself remove it.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct Promotions {}

/// Take a promotion back
///
/// Restores what was there before, unless it has changed since. Possible for 7 days. A promotion that went out to stages is taken back from
/// there first, the last stage first, by their rollbacks; where one has none, or it fails, nothing is undone here.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno undo
  zeno undo prk3v7q2m4x6ab
  zeno undo --leave src/main.rs
  zeno undo --leave-stage staging")]
pub(crate) struct Undo {
    /// Id of the promotion; without one, the last that was not taken back
    pub(crate) promotion: Option<Which>,
    /// Leave these as they are now
    #[arg(long, value_name = "PATH", num_args = 1..)]
    pub(crate) leave: Vec<PathBuf>,
    /// Leave this stage as it is: do not run its rollback (repeatable)
    #[arg(long = "leave-stage", value_name = "STAGE")]
    pub(crate) leave_stages: Vec<Name>,
    /// Who asks: a person, an agent or automation; else ZENO_ACTOR, or what it looks like
    #[arg(long, value_parser = PossibleValuesParser::new(["adm", "agt", "atm"]).map(|text| actor(&text)))]
    pub(crate) actor: Option<Actor>,
}

/// Who wins, everywhere or at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) path: Option<String>,
    pub(crate) whose: OnConflict,
}

/// All decisions together.
pub(crate) fn resolutions(decisions: &[Decision]) -> Resolutions {
    let mut resolutions = Resolutions::default();
    for decision in decisions {
        match &decision.path {
            Some(path) => drop(resolutions.paths.insert(path.clone(), decision.whose)),
            None => resolutions.otherwise = decision.whose,
        }
    }
    resolutions
}

impl FromStr for Decision {
    type Err = BadDecision;

    fn from_str(text: &str) -> Result<Self, BadDecision> {
        let (path, word) = match text.rsplit_once('=') {
            Some((path, word)) => (Some(path.to_owned()), word),
            None => (None, text),
        };
        let whose = match word {
            "ours" => OnConflict::Ours,
            "theirs" => OnConflict::Theirs,
            "abort" => OnConflict::Abort,
            _ => return Err(BadDecision { text: text.to_owned() }),
        };
        Ok(Self { path, whose })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` says not who wins: write ours, theirs or abort, or PATH=ours")]
pub(crate) struct BadDecision {
    text: String,
}
