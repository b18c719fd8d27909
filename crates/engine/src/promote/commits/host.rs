//! The real repository.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::CommitsError;
use super::git::{Call, Git};
use super::names::is_id;
use crate::capture::git::{common_dir, git_dir};

#[derive(Debug)]
pub(super) struct Host {
    /// Of this worktree: its HEAD.
    pub(super) git_dir: PathBuf,
    /// Of all its worktrees: refs and objects.
    pub(super) common: PathBuf,
}

impl Host {
    /// The repository of a real workspace, as it is laid out now. What the sandbox made of the layout does not matter.
    pub(super) fn of(workspace: &Path) -> Option<Self> {
        let git_dir = git_dir(workspace)?;
        let common = common_dir(&git_dir);
        Some(Self { git_dir, common })
    }

    /// The repository whose git folder is exactly this, without a link on the way.
    pub(super) fn at(folder: &Path) -> Option<Self> {
        let is_this = folder.canonicalize().is_ok_and(|found| found == folder);
        let is_one = is_this && folder.join("HEAD").is_file() && folder.join("objects").is_dir();
        is_one.then(|| Self { git_dir: folder.to_owned(), common: folder.to_owned() })
    }

    /// All that its refs and its HEAD stand for.
    pub(super) fn haves(&self, git: &Git) -> Result<Vec<String>, CommitsError> {
        let what = "list the refs of the real repository";
        let arguments = ["for-each-ref", "--format=%(objectname)"];
        let mut said = git.ask(Call { what, folder: &self.git_dir, arguments: &arguments }, b"")?;
        let arguments = ["rev-parse", "--quiet", "--verify", "HEAD^{commit}"];
        let head = git.run(Call { what, folder: &self.git_dir, arguments: &arguments }, b"")?;
        // Before the first commit there is none.
        if head.status.success() {
            said.extend(head.stdout);
        }
        let said = String::from_utf8_lossy(&said);
        Ok(said.lines().filter(|line| is_id(line)).map(str::to_owned).collect())
    }

    /// Takes a pack as it would a stranger's.
    pub(super) fn take(&self, git: &Git, pack: File) -> Result<(), CommitsError> {
        let what = "take the commits made inside";
        let arguments = ["index-pack", "--stdin", "--fix-thin", "--strict"];
        let call = Call { what, folder: &self.common, arguments: &arguments };
        let nowhere = File::options().write(true).open("/dev/null");
        let nowhere = nowhere.map_err(|source| CommitsError::Start { what, source })?;
        git.pipe(call, pack, nowhere)?.ok(what).map(drop)
    }

    /// Is all there that these need?
    pub(super) fn is_connected<'a>(
        &self,
        git: &Git,
        tips: impl Iterator<Item = &'a str>,
    ) -> Result<(), CommitsError> {
        let what = "find all that belongs to the commits made inside";
        let arguments = ["rev-list", "--objects", "--stdin", "--not", "--all", "--quiet"];
        let input: String = tips.flat_map(|tip| [tip, "\n"]).collect();
        let call = Call { what, folder: &self.common, arguments: &arguments };
        git.ask(call, input.as_bytes()).map(drop)
    }
}
