//! Promotion: what a sandbox changed, brought into reality, and what stands in the way.

mod commits;
mod executes;
mod gate;
mod hunks;
mod matrix;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::diff::Entry;
use crate::digest::Digest;
use crate::exec::{Context, Text};
use crate::id::{Name, PromotionId, SandboxId, VerdictId};
use crate::sandbox::Actor;

pub use commits::{CommitRef, Commits};
pub use executes::{ExecutesList, ExecutesRule};
pub use gate::{Foretold, Unjudged};
pub use hunks::{Excerpt, Hunk};
pub use matrix::{Deed, Ground, Outcome, live_outcome, outcome};
pub use walk::{Errand, Journey, Plan, PromoteStep, Stopped, Task, Visit, VisitState, Walk, Walked};

/// A promotion's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promotion {
    pub id: PromotionId,
    pub sandbox: SandboxId,
    /// Names exactly the state that was promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Names the state of the sandbox that it was made of, if it was merged, or is only a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_of: Option<String>,
    pub when: Timestamp,
    pub actor: Actor,
    /// The workspace, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Text>,
    pub counts: Counts,
    /// What became of branches, tags and HEAD on which commits were made inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitRef>,
    pub state: PromotionState,
    /// What opened the gate, where checks are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictId>,
    /// Promoted past a closed gate, because the actor said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// What executes by itself was let through, because the actor said so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allowed_executes: bool,
    /// Who was to win where both sides had changed something, if the actor said so.
    #[serde(default, skip_serializing_if = "Resolutions::is_none")]
    pub resolutions: Resolutions,
    /// What was there before is not kept any more: it cannot be taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgotten: bool,
}

impl Promotion {
    /// Is what it displaced still to be kept? Until it is taken back, or for [`KEPT`].
    #[must_use]
    pub fn keeps(&self, now: Timestamp) -> bool {
        match self.state {
            PromotionState::Applying => true,
            PromotionState::Undone => false,
            // One that failed may hold what it could not put back, because somebody else was there first.
            PromotionState::Applied | PromotionState::Failed => {
                !self.forgotten && now.duration_since(self.when) < KEPT
            }
        }
    }
}

/// How long a promotion can be taken back.
pub const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromotionState {
    /// Under way. After a crash it becomes one of the others.
    Applying,
    Applied,
    /// Given up: reality is as it was.
    Failed,
    Undone,
}

/// What is to be promoted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PromoteRequest {
    /// Absolute. None: all of the workspace that git does not ignore.
    pub paths: Vec<Text>,
    pub resolutions: Resolutions,
    pub commits: Commits,
    /// Promote, too, what executes on the host by itself. It is recorded.
    pub allow_executes: bool,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Commands that have to exit with 0 on a copy of the sealed state, besides the declared checks. All of them are run
    /// now, unless a verdict says that they passed on exactly this state.
    pub commands: Vec<String>,
    pub unjudged: Unjudged,
    /// Promote although the declared checks have not passed. It is recorded.
    pub force: bool,
    pub actor: Actor,
    /// The stage to go to; `local`, the worktree, if absent. A state that is promoted already goes on from where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    /// Stages with `approval: human` to which a person has agreed. Only the actor `adm` can say so, and only over the Unix
    /// socket.
    pub approved: BTreeSet<Name>,
    /// Where the commands of stages find themselves: environment and umask. They run in the worktree, as the daemon's user.
    pub context: Context,
    /// What a person was shown and agreed to: nothing else is promoted then. Never said by a caller, who could say anything.
    #[serde(skip)]
    pub agreed: Option<Agreed>,
}

/// What somebody agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Of the sandbox.
    pub state: Digest,
    pub outline: Outline,
}

/// What is to become of reality, without how it comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    root: Option<Text>,
    deleted: BTreeSet<Text>,
    written: BTreeSet<Text>,
    commits: BTreeSet<String>,
}

/// How a promotion that is applied goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdvanceRequest {
    /// The stage to go to; if absent only what is left of `local` is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Name>,
    /// Stages with `approval: human` to which a person has agreed. Only the actor `adm` can say so, and only over the Unix
    /// socket.
    pub approved: BTreeSet<Name>,
    /// Where the commands of stages find themselves: environment and umask.
    pub context: Context,
    /// Only say which stages are ahead.
    pub dry_run: bool,
    pub actor: Actor,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum Promoted {
    /// Reality has it now.
    Done { promotion: Box<Promotion>, assessment: Assessment },
    /// Reality had it before, and it goes on from there.
    Already { promotion: Box<Promotion> },
    /// Nothing was to be done, or it was only asked what would be.
    Planned {
        assessment: Assessment,
        /// Absent where nothing is asked of it, or it does not come as far as the gate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gate: Option<Foretold>,
    },
    /// Something stands in the way. Nothing was changed.
    Blocked { assessment: Assessment },
}

/// How a promotion is to be taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UndoRequest {
    /// Absolute paths that stay as they are now, because they have changed since.
    pub leave: Vec<Text>,
    /// Stages that stay as they are: their rollback is not run, or there is none.
    pub leave_stages: BTreeSet<Name>,
    /// Where the rollbacks of stages find themselves: environment and umask.
    pub context: Context,
    pub actor: Actor,
}

/// How many paths were, or would be, touched in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub deleted: u64,
    pub created: u64,
    pub modified: u64,
    pub merged: u64,
    /// Reality's version stays, because the user said so.
    pub kept: u64,
    /// Reality has the same already.
    pub same: u64,
}

impl Counts {
    /// Is reality as it should be already?
    #[must_use]
    pub fn is_nothing(self) -> bool {
        let Self { deleted, created, modified, merged, kept: _, same: _ } = self;
        deleted + created + modified + merged == 0
    }
}

/// What a promotion would do, and what stands in its way. Paths are relative to the root within the workspace (`.` is the
/// root itself), absolute elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assessment {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<Text>,
    /// Deletions first, then by path.
    pub actions: Vec<Planned>,
    /// Changed on both sides, and not decided by the user.
    pub conflicts: Vec<Conflict>,
    /// What is never promoted.
    pub refused: Vec<Refusal>,
    /// What would execute on the host by itself, and was not allowed.
    pub executes: Vec<Executes>,
    /// Branches, tags and HEAD that are not where they were, and where they are to be found in the real repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<CommitRef>,
    pub left_out: LeftOut,
    /// What of the sandbox cannot be brought, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<Caveat>,
}

impl Assessment {
    /// Is reality as it should be already?
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.counts().is_nothing() && self.commits.is_empty()
    }

    /// May it be applied?
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.conflicts.is_empty() && self.refused.is_empty() && self.executes.is_empty()
    }

    #[must_use]
    pub fn outline(&self) -> Outline {
        let paths = |wanted: &[Action]| {
            let planned = self.actions.iter().filter(|planned| wanted.contains(&planned.action));
            planned.map(|planned| planned.path.clone()).collect()
        };
        Outline {
            root: self.root.clone(),
            deleted: paths(&[Action::Delete]),
            written: paths(&[Action::Create, Action::Modify, Action::Merge]),
            commits: self.commits.iter().map(|commit| format!("{} {}", commit.outside, commit.tip)).collect(),
        }
    }

    /// Are there files that neither side has seen as they would become?
    #[must_use]
    pub fn has_merges(&self) -> bool {
        self.actions.iter().any(|planned| planned.action == Action::Merge)
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for planned in &self.actions {
            let count = match planned.action {
                Action::Delete => &mut counts.deleted,
                Action::Create => &mut counts.created,
                Action::Modify => &mut counts.modified,
                Action::Merge => &mut counts.merged,
                Action::Keep => &mut counts.kept,
                Action::Same => &mut counts.same,
            };
            *count += 1;
        }
        counts
    }
}

/// One path, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    pub path: Text,
    pub action: Action,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Delete,
    Create,
    Modify,
    /// Both sides changed it, in different places.
    Merge,
    /// Reality's version stays, because the user said so.
    Keep,
    /// Reality has the same already.
    Same,
}

/// A path that both sides changed, and not in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    pub path: Text,
    pub reason: ConflictReason,
    /// What both sides started from; absent if there was nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Entry>,
    /// The sandbox.
    pub ours: Side,
    /// Reality.
    pub theirs: Side,
    /// Can it be decided for the sandbox? Not where reality has no place for it any more.
    pub ours_possible: bool,
    /// Where the two are in each other's way, of a text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<Hunk>,
    /// How many lines of these, and of further hunks, are not told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_lines: u64,
}

/// One side of a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    pub did: Did,
    /// What is there now; absent if there is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// When its contents were last written, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
}

/// What somebody did with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Did {
    Nothing,
    Create,
    /// Other bytes, or another link target.
    Edit,
    Delete,
    /// Permissions, owner or extended attributes.
    Attributes,
    /// A file became a folder, a folder a link, and so on.
    ChangeType,
    /// It was read live and has changed since the sandbox, or the one it comes from, was made; nobody knows how.
    Something,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictReason {
    /// Both edited the same lines, or it is not text.
    SameLines,
    /// Both set the permissions, owner or an extended attribute, to different values.
    SameAttributes,
    /// Both moved to, or on, a branch, and not to the same place.
    Branches,
    BothCreated,
    /// One changed what the other deleted, or turned into something else.
    ChangedAndGone,
    /// The sandbox removed the folder, and reality has something in it that the sandbox never saw.
    FolderHoldsMore,
    /// The folder it is in is gone from reality.
    FolderGone,
    /// The folder it is in is a file or a symbolic link in reality. It is never followed.
    FolderReplaced,
    /// It was read live, and reality has changed it since the sandbox, or the one it comes from, was made.
    MovedOn,
}

impl ConflictReason {
    /// One sentence for people.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::SameLines => "both changed the same lines, or it is not text",
            Self::Branches => "both sides committed, or changed the branch they are on",
            Self::SameAttributes => "both changed its permissions, owner or attributes, to different values",
            Self::BothCreated => "both created it, differently",
            Self::ChangedAndGone => "one changed what the other deleted or turned into something else",
            Self::FolderHoldsMore => {
                "the sandbox removed the folder, and here is something in it that the sandbox never saw"
            }
            Self::FolderGone => "the folder it is in is gone",
            Self::FolderReplaced => "the folder it is in has become a file or a symbolic link",
            Self::MovedOn => "it has changed since the sandbox, or the one it comes from, was made",
        }
    }
}

/// Whose version wins where both sides changed a path and they cannot be merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The sandbox's.
    Ours,
    /// Reality's.
    Theirs,
    /// Nobody's: nothing is promoted.
    #[default]
    Abort,
}

/// How conflicts are decided: for all paths, and for some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Resolutions {
    pub otherwise: OnConflict,
    /// By path as the assessment shows it. A folder stands for all that is in it.
    #[schemars(with = "BTreeMap<String, OnConflict>")]
    pub paths: BTreeMap<String, OnConflict>,
}

impl Resolutions {
    /// Is nothing decided?
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The decision for a path: that of the nearest folder, or of the path itself.
    #[must_use]
    pub fn of(&self, path: &Text) -> OnConflict {
        let path = std::path::Path::new(path.as_os_str());
        let nearest = path.ancestors().find_map(|path| self.paths.get(path.to_str()?));
        nearest.copied().unwrap_or(self.otherwise)
    }
}

/// A path that cannot be promoted, whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    pub path: Text,
    pub reason: RefusalReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// A set-user-id or set-group-id bit on a file.
    SetId,
    /// A file capability: rights that come with running it.
    Capability,
    Device,
    /// A pipe or a socket.
    Endpoint,
    /// It belongs to somebody whom this user may not give files to.
    Owner,
    /// The sandbox's version cannot be read.
    Unreadable,
    /// This user may not write to the folder it is in.
    NotWritable,
    /// Something is mounted there.
    Mount,
}

impl RefusalReason {
    /// Why, for people.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::SetId => "it has a set-user-id or set-group-id bit",
            Self::Capability => "it carries a file capability",
            Self::Device => "it is a device",
            Self::Endpoint => "it is a pipe or a socket",
            Self::Owner => "it belongs to somebody to whom you may not give files",
            Self::Unreadable => "what the sandbox has there cannot be read",
            Self::NotWritable => "you may not write to its folder",
            Self::Mount => "another file system is mounted there",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::SetId => "remove the bit inside (`chmod u-s,g-s`), or set it yourself afterwards",
            Self::Capability => "remove it inside (`setcap -r`), or set it yourself afterwards",
            Self::Device | Self::Endpoint => "remove it inside",
            Self::Owner => "do it as root",
            Self::Unreadable => "make it readable inside (`chmod u+r`)",
            Self::NotWritable => "do it as somebody who may",
            Self::Mount => "unmount it first",
        }
    }
}

/// A path that would execute on the host without anyone asking for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executes {
    pub path: Text,
    /// What makes it run.
    pub why: String,
}

/// Changes of the sandbox that are not part of the promotion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// In the workspace, ignored by git. They are promoted where they are named.
    pub ignored: u64,
    /// Outside of the workspace. They are promoted where they are named.
    pub machine: u64,
    /// In the workspace, but not among the named paths.
    pub unnamed: u64,
    /// Masked paths: never promoted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<Text>,
    /// Git's own folders, of whatever repository: never promoted as files. Commits of the workspace's come as refs instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<Text>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_until_it_is_taken_back_or_a_week_has_passed() {
        let mut promotion = Promotion {
            id: PromotionId::from_bits(1),
            sandbox: SandboxId::from_bits(1),
            digest: None,
            made_of: None,
            when: Timestamp::UNIX_EPOCH,
            actor: Actor::default(),
            root: None,
            counts: Counts::default(),
            commits: Vec::new(),
            state: PromotionState::Applied,
            verdict: None,
            forced: false,
            allowed_executes: false,
            resolutions: Resolutions::default(),
            forgotten: false,
        };
        let day = |number: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * number);
        assert!(promotion.keeps(day(6)) && !promotion.keeps(day(7)));
        promotion.state = PromotionState::Failed;
        assert!(promotion.keeps(day(6)) && !promotion.keeps(day(7)));
        promotion.state = PromotionState::Applying;
        assert!(promotion.keeps(day(8)), "it is not known yet what it will need");
        promotion.state = PromotionState::Undone;
        assert!(!promotion.keeps(day(0)));
    }

    #[test]
    fn the_nearest_decision_counts() {
        let paths = [("d".to_owned(), OnConflict::Ours), ("d/e".to_owned(), OnConflict::Theirs)];
        let resolutions = Resolutions { otherwise: OnConflict::Abort, paths: paths.into() };
        let of = |path: &str| resolutions.of(&Text::from(path));
        assert_eq!(
            ["a", "d", "d/x", "d/e", "d/e/x", "de"].map(of),
            [
                OnConflict::Abort,
                OnConflict::Ours,
                OnConflict::Ours,
                OnConflict::Theirs,
                OnConflict::Theirs,
                OnConflict::Abort
            ]
        );
    }
}
