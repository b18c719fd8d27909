//! `diff`: what a sandbox changed.

use std::path::PathBuf;

use model::diff::{Detail, Diff};
use model::{Problem, SandboxId};
use tokio::sync::mpsc::Receiver;

use crate::control::Control;
use crate::refusal;
use crate::verbs::show::has_layers;

impl Control {
    /// What the sandbox changed at or below these absolute paths, or anywhere if there are none.
    pub async fn diff(&self, which: &str, paths: Vec<PathBuf>, detail: Detail) -> Result<Diff, Problem> {
        let id = self.comparable(which).await?;
        self.inner.native.diff(id, paths, detail).await
    }

    /// What it changed in its workspace, as pieces of a patch for `git apply`. The last piece is a problem if the patch is
    /// not whole.
    pub async fn patch(
        &self,
        which: &str,
        paths: Vec<PathBuf>,
    ) -> Result<Receiver<Result<Vec<u8>, Problem>>, Problem> {
        let id = self.comparable(which).await?;
        Ok(self.inner.native.patch(id, paths))
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
