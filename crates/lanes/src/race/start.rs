//! The state that all candidates start from.

use model::exec::Text;
use model::race::{Attempt, RaceRequest};
use model::snapshot::SnapshotReason;
use model::{Code, Problem, Snapshot, SnapshotId};

use crate::Lanes;

/// Where a race starts.
pub(super) struct Start {
    /// Absent if every candidate is there already.
    pub(super) snapshot: Option<SnapshotId>,
    pub(super) workspace: Option<Text>,
}

impl From<Snapshot> for Start {
    fn from(snapshot: Snapshot) -> Self {
        Self { snapshot: Some(snapshot.id), workspace: snapshot.workspace }
    }
}

impl Lanes {
    pub(super) async fn start(&self, request: &RaceRequest) -> Result<Start, Problem> {
        let there = request.candidates.iter().map(|candidate| match &candidate.attempt {
            Attempt::Sandbox { sandbox } => Some(sandbox),
            Attempt::Command { .. } | Attempt::Patch { .. } | Attempt::Ref { .. } => None,
        });
        if let (Some(all), None) = (there.collect::<Option<Vec<_>>>(), &request.from) {
            let first = self.control.get(all[0]).await?;
            return Ok(Start { snapshot: None, workspace: first.workspace });
        }
        match &request.from {
            Some(which) => self.from(which, request).await,
            None => self.fresh(request).await,
        }
    }

    /// A sandbox's state as it is now, or a snapshot.
    async fn from(&self, which: &str, request: &RaceRequest) -> Result<Start, Problem> {
        if let Some(snapshot) = which.strip_prefix("snapshot:") {
            return Ok(self.control.get_snapshot(snapshot).await?.into());
        }
        match self.control.get(which).await {
            Ok(sandbox) => {
                let id = sandbox.id.to_string();
                Ok(self.control.seal_for(&id, SnapshotReason::Race, request.actor).await?.into())
            }
            Err(problem) if problem.code == Code::NotFound => {
                let found = self.control.get_snapshot(which).await;
                found.map(Start::from).map_err(|_neither| problem)
            }
            Err(problem) => Err(problem),
        }
    }

    /// The workspace as it is now. The sandbox it is frozen by goes again; its snapshot stays.
    async fn fresh(&self, request: &RaceRequest) -> Result<Start, Problem> {
        let sandbox = self.control.create(request.create.clone(), &|_progress| ()).await?;
        let id = sandbox.id.to_string();
        let sealed = self.control.seal_for(&id, SnapshotReason::Race, request.actor).await;
        self.control.destroy(&id).await?;
        Ok(sealed?.into())
    }
}
