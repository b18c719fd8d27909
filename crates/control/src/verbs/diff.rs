//! `diff`: what a sandbox changed.

use std::path::PathBuf;

use backends::native::Saved;
use model::diff::{Between, Detail, Diff};
use model::{Problem, SandboxId};
use tokio::sync::mpsc::Receiver;

use crate::control::Control;
use crate::refusal;
use crate::verbs::show::has_layers;

impl Control {
    /// What the sandbox changed at or below these absolute paths, or anywhere if there are none; with `from`, since that
    /// snapshot.
    pub async fn diff(
        &self,
        which: &str,
        from: Option<&str>,
        paths: Vec<PathBuf>,
        detail: Detail,
    ) -> Result<Diff, Problem> {
        let id = self.comparable(which).await?;
        let from = self.saved(from).await?;
        self.inner.native.diff(id, from, paths, detail).await
    }

    /// What two sandboxes changed differently in their workspaces.
    pub async fn between(
        &self,
        which: &str,
        with: &str,
        from: Option<&str>,
        paths: Vec<PathBuf>,
    ) -> Result<Between, Problem> {
        let (one, other) = (self.comparable(which).await?, self.comparable(with).await?);
        let from = self.saved(from).await?;
        self.inner.native.between(one, other, from, paths).await
    }

    /// What it changed in its workspace, as pieces of a patch for `git apply`. The last piece is a problem if the patch is
    /// not whole.
    pub async fn patch(
        &self,
        which: &str,
        from: Option<&str>,
        paths: Vec<PathBuf>,
    ) -> Result<Receiver<Result<Vec<u8>, Problem>>, Problem> {
        let id = self.comparable(which).await?;
        let from = self.saved(from).await?;
        Ok(self.inner.native.patch(id, from, paths))
    }

    async fn saved(&self, from: Option<&str>) -> Result<Option<Saved>, Problem> {
        match from {
            Some(which) => Ok(Some(self.find_snapshot(which).await?.saved)),
            None => Ok(None),
        }
    }

    async fn comparable(&self, which: &str) -> Result<SandboxId, Problem> {
        let slot = self.find(which, VERB).await?;
        let sandbox = self.record(&slot).await?.sandbox;
        if !has_layers(sandbox.state) {
            return Err(refusal::not_ready(&sandbox, VERB));
        }
        Ok(slot.id)
    }
}

const VERB: &str = "compare";
