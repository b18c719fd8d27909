//! What can go wrong, and the problem it becomes for the caller.

use std::io;
use std::path::{Path, PathBuf};

use engine::capture::CaptureError;
use engine::cgroup::Unenforceable;
use engine::diff::DiffError;
use engine::image::ImageError;
use engine::launcher::LauncherError;
use engine::layers::LayerError;
use engine::machine::DiskImages;
use engine::promote::{CommitsError, PromoteError};
use engine::view::ViewError;
use model::{Code, Problem};

use super::limits::flag;

#[derive(Debug, thiserror::Error)]
pub enum NativeError {
    #[error("could not make the folder `{path}`")]
    MakeFolder { path: PathBuf, source: io::Error },
    #[error("could not write `{path}`")]
    Write { path: PathBuf, source: io::Error },
    #[error("could not read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("could not remove `{path}`")]
    Remove { path: PathBuf, source: io::Error },
    #[error("`{path}` does not hold what zeno wrote")]
    Garbled { path: PathBuf, source: serde_json::Error },
    #[error("the workspace `{path}` is not a folder that can be read")]
    Workspace { path: PathBuf, source: io::Error },
    #[error("could not freeze the workspace")]
    Capture(#[from] CaptureError),
    #[error("with the kernel {release} a program in a sandbox could become root ({flaws})")]
    FlawedKernel { release: String, flaws: String },
    #[error("this machine lacks what sandboxes need: {}", lacks.join("; "))]
    Lacking { lacks: Vec<String>, source: LauncherError },
    #[error("this machine cannot enforce {}", list(.0))]
    Unenforceable(Vec<Unenforceable>),
    #[error("what the sandbox wrote is in memory of its own, where only the sandbox can see it")]
    OwnDisk,
    #[error("the sandbox has no workspace, so there is nothing to bring up to date")]
    NotFrozen,
    #[error("the snapshot was taken on another state of the workspace than the sandbox stands on")]
    OtherBase,
    #[error("they do not have the same workspace: {} and {}", workspace(one.as_deref()), workspace(other.as_deref()))]
    OtherWorkspace { one: Option<PathBuf>, other: Option<PathBuf> },
    #[error("could not work with the sandbox's layers")]
    Layers(#[from] LayerError),
    #[error("could not make the sandbox's certificate authority")]
    Authority { source: rcgen::Error },
    #[error("could not limit the sandbox")]
    Cgroup(#[from] engine::cgroup::Error),
    #[error("could not give the sandbox a disk of its own")]
    Image(#[from] ImageError),
    #[error("could not plan the sandbox's view of this machine")]
    View(#[from] ViewError),
    #[error("could not make the sandbox")]
    Launch(#[from] LauncherError),
    #[error("could not tell what the sandbox changed")]
    Diff(#[from] DiffError),
    #[error(
        "no check has judged what would come of it (merged with changes made here: {merged}, left as they are: {left})"
    )]
    Unjudged { merged: u64, left: u64 },
    #[error("`{}`{} changed here, and no check has seen that", path.display(), others(*.more))]
    MovedBeside { path: PathBuf, more: u64 },
    #[error(transparent)]
    Guarded(Box<Problem>),
    #[error("could not lay what the sandbox changed over the present")]
    Lay(#[source] PromoteError),
    #[error("the workspace changes all the time")]
    Restless,
    #[error("could not promote")]
    Promote(#[from] PromoteError),
    #[error("could not promote the commits made inside")]
    Commits(#[from] CommitsError),
    #[error("could not talk to the sandbox")]
    Talk(#[source] io::Error),
    #[error("could not signal the sandbox")]
    Signal(#[source] io::Error),
    #[error("could not list processes of this machine")]
    Inspect(#[source] io::Error),
    #[error("a worker of zeno's failed")]
    Worker(#[from] tokio::task::JoinError),
}

impl From<NativeError> for Problem {
    fn from(error: NativeError) -> Self {
        let full = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        match &error {
            NativeError::Guarded(problem) => Self::clone(problem),
            NativeError::MakeFolder { source, .. }
            | NativeError::Write { source, .. }
            | NativeError::Image(ImageError::Make { source, .. })
                if full(source) =>
            {
                Self::from_error(Code::DiskFull, &error)
                    .hint("make room on the disk that holds ZENO_HOME, or move it")
            }
            NativeError::Image(ImageError::TooSmall { .. }) => Self::from_error(Code::BadRequest, &error)
                .hint("ask for a larger disk, for example with --disk 1G"),
            NativeError::Image(ImageError::Make { source, .. })
                if source.kind() == io::ErrorKind::FileTooLarge =>
            {
                Self::from_error(Code::BadRequest, &error).hint("ask for a smaller disk")
            }
            NativeError::Image(ImageError::NoProgram { .. }) => {
                Self::from_error(Code::MachineUnable, &error).hint(DiskImages::NoMkfs.remedy())
            }
            NativeError::FlawedKernel { .. } => {
                Self::from_error(Code::MachineUnable, &error).hint("update the kernel and reboot")
            }
            NativeError::Unenforceable(missing) => {
                let problem = Self::from_error(Code::LimitUnenforceable, &error);
                let remedies =
                    missing.iter().map(|missing| &missing.remedy).filter(|remedy| !remedy.is_empty());
                let problem = remedies.fold(problem, |problem, remedy| problem.hint(remedy));
                problem.hint("or accept that it is not enforced: --best-effort")
            }
            NativeError::OtherBase => Self::from_error(Code::Refused, &error)
                .hint("compare the two as they are: zeno diff SANDBOX --with SNAPSHOT")
                .hint("or the sandbox with what it started from: leave out --from"),
            NativeError::OtherWorkspace { .. } => {
                Self::from_error(Code::Refused, &error).hint("look at each by itself: zeno diff SANDBOX")
            }
            NativeError::OwnDisk => Self::from_error(Code::Refused, &error)
                .hint("make the sandbox without --disk, or as root, whose disks are images")
                .hint("look from inside: zeno exec SANDBOX -- git status")
                .hint("or copy out what matters: zeno cp SANDBOX:/PATH ."),
            NativeError::Layers(LayerError::Gone { .. }) => {
                Self::from_error(Code::NotFound, &error).hint("see which snapshots there are: zeno snapshots")
            }
            NativeError::Promote(PromoteError::MovedOn { .. } | PromoteError::Left { .. }) => {
                Self::from_error(Code::Conflict, &error)
                    .hint("see what stands in the way: zeno promote SANDBOX --dry-run")
            }
            NativeError::Promote(PromoteError::Called(_)) => Self::from_error(Code::Refused, &error)
                .hint("mend git's settings: git config --list --show-origin")
                .hint("or look at what would be promoted, and allow what executes: --allow-executes"),
            NativeError::Commits(_) | NativeError::Promote(PromoteError::Commits(_)) => {
                Self::from_error(Code::Refused, &error).hint("promote the files without them: --no-commits")
            }
            NativeError::Unjudged { .. } | NativeError::MovedBeside { .. } => {
                Self::from_error(Code::Conflict, &error)
                    .hint("something changed here while the checks ran: promote it again")
            }
            NativeError::Restless => Self::from_error(Code::Conflict, &error)
                .hint("try again when whatever writes in it has come to an end"),
            NativeError::NotFrozen => {
                Self::from_error(Code::Refused, &error).hint("the machine is read live: it is never behind")
            }
            NativeError::Layers(LayerError::Unmounted { .. }) => Self::from_error(Code::Refused, &error)
                .hint("mount it again")
                .hint("or start from the present: zeno create --name NEW"),
            NativeError::Promote(PromoteError::NotApplied) => {
                Self::from_error(Code::NotFound, &error).hint("see what was promoted: zeno promotions")
            }
            NativeError::View(ViewError::HiddenWorkspace { masked, .. }) => {
                Self::from_error(Code::Refused, &error)
                    .hint(format!("show it all the same: --unmask {}", masked.display()))
                    .hint("or work without a frozen workspace: --no-workspace")
            }
            NativeError::View(ViewError::NoHome { .. } | ViewError::NoNumber) => {
                Self::from_error(Code::MachineUnable, &error)
            }
            NativeError::Workspace { .. } => Self::from_error(Code::WorkspaceGone, &error)
                .hint("run it from a folder that exists, or with --no-workspace"),
            NativeError::Launch(LauncherError::Launch(_)) => Self::from_error(Code::MachineUnable, &error)
                .hint("see what this machine lacks and how to mend it: zeno doctor"),
            _ => Self::from_error(Code::Internal, &error),
        }
    }
}

fn workspace(path: Option<&Path>) -> String {
    path.map_or_else(|| "none".to_owned(), |path| format!("`{}`", path.display()))
}

fn list(missing: &[Unenforceable]) -> String {
    missing.iter().map(|missing| flag(missing.controller)).collect::<Vec<_>>().join(", ")
}

fn others(more: u64) -> String {
    if more == 0 { String::new() } else { format!(" and {more} more") }
}
