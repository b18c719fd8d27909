//! `diff`: what a sandbox changed.

use std::path::PathBuf;

use model::Problem;
use model::diff::Diff;

use crate::control::Control;
use crate::refusal;
use crate::verbs::show::has_layers;

impl Control {
    /// What the sandbox changed at or below these absolute paths, or anywhere if there are none.
    pub async fn diff(&self, which: &str, paths: Vec<PathBuf>) -> Result<Diff, Problem> {
        let slot = self.find(which, VERB).await?;
        let sandbox = self.record(&slot).await?.sandbox;
        if !has_layers(sandbox.state) {
            return Err(refusal::not_ready(&sandbox, VERB));
        }
        self.inner.native.diff(slot.id, paths).await
    }
}

const VERB: &str = "compare";
