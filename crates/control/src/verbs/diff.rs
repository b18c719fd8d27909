//! `diff`: what a sandbox changed.

use std::path::PathBuf;

use backends::native::{Other, Saved};
use model::diff::{Between, Detail, Diff};
use model::{Code, Problem, SandboxId};
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

    /// What differs between a sandbox and another, or a snapshot; with `from`, what each changed is counted from there.
    pub async fn between(
        &self,
        which: &str,
        with: &str,
        from: Option<&str>,
        paths: Vec<PathBuf>,
        detail: Detail,
    ) -> Result<Between, Problem> {
        let (one, other) = (self.comparable(which).await?, self.other(with).await?);
        let from = self.saved(from).await?;
        self.inner.native.between(one, other, from, paths, detail).await
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

    /// What makes of its workspace that of the other, as pieces of a patch for `git apply`.
    pub async fn patch_between(
        &self,
        which: &str,
        with: &str,
        paths: Vec<PathBuf>,
    ) -> Result<Receiver<Result<Vec<u8>, Problem>>, Problem> {
        let (one, other) = (self.comparable(which).await?, self.other(with).await?);
        Ok(self.inner.native.patch_between(one, other, paths))
    }

    /// A sandbox, or a snapshot if no sandbox is called that.
    async fn other(&self, which: &str) -> Result<Other, Problem> {
        let problem = match self.comparable(which).await {
            Ok(id) => return Ok(Other::Sandbox(id)),
            Err(problem) if problem.code == Code::NotFound => problem,
            Err(problem) => return Err(problem),
        };
        match self.find_snapshot(which).await {
            Ok(record) => Ok(Other::Snapshot(Box::new(record.saved))),
            Err(other) if other.code == Code::NotFound => {
                Err(problem.hint("or which snapshots there are: `zeno snapshots`"))
            }
            Err(other) => Err(other),
        }
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
