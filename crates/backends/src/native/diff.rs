//! What a sandbox changed.

use std::path::PathBuf;

use engine::diff::{Ask, Comparison, DiffError, compare};
use engine::launcher::Rights;
use model::diff::Diff;
use model::{Problem, SandboxId};

use super::Native;
use super::problem::NativeError;
use super::store::Folder;

impl Native {
    /// Compares what the sandbox wrote with what it started from. It may be running. With `paths`, which are absolute, only
    /// what is at or below one of them.
    pub async fn diff(&self, id: SandboxId, paths: Vec<PathBuf>) -> Result<Diff, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            native.comparison(id, &paths, |comparison| comparison.diff())
        });
        Ok(work.await.map_err(NativeError::from)??)
    }

    fn comparison<T>(
        &self,
        id: SandboxId,
        paths: &[PathBuf],
        answer: impl FnOnce(&Comparison) -> Result<T, DiffError>,
    ) -> Result<T, NativeError> {
        let folder = Folder::of(&self.0.home, id);
        let stored = folder.read()?;
        let comparison = compare(&Ask {
            home: &self.0.home,
            upper: &folder.upper(),
            plan: &stored.plan,
            workspace: stored.frozen.as_ref().map(|frozen| frozen.workspace.as_path()),
            rights: Rights::of_this_process(),
            paths,
        })?;
        Ok(answer(&comparison)?)
    }
}
