//! `restore` and `fork`: new sandboxes on the layers of another.

use std::path::Path;
use std::sync::Arc;

use model::sandbox::Actor;
use model::snapshot::{ForkRequest, Forked, Forks, RestoreRequest, SnapshotReason};
use model::{Code, Name, Problem, Sandbox, SandboxId, Snapshot};
use tokio::task::JoinSet;

use super::create::Order;
use super::snapshot::{Asked, Sealed};
use crate::control::Control;
use crate::refusal;
use crate::slots::Slot;
use crate::store::{Record, SnapshotRecord};

impl Control {
    /// Makes a sandbox of a snapshot: its files, its environment, its limits and network, unless others are asked for.
    pub async fn restore(&self, which: &str, request: RestoreRequest) -> Result<Sandbox, Problem> {
        let _layers = self.inner.layers.read().await;
        let record = self.find_snapshot(which).await?;
        let heir_of = record.snapshot.sandbox;
        self.make_of(record, request, heir_of).await
    }

    /// Makes sandboxes on what another has written, all at once. One that fails does not keep the others.
    pub async fn fork(&self, which: &str, request: ForkRequest) -> Result<Forks, Problem> {
        if !(1..=MOST).contains(&request.count) {
            return Err(refusal::fork_count(request.count, MOST));
        }
        let names = names(&request)?;
        // The snapshot may be of another one, which this one was made of.
        let heir_of = self.find(which, SEAL).await?.id;
        let record = self.sealed(which, SnapshotReason::Fork, request.actor).await?;
        let _layers = self.inner.layers.read().await;
        // Dropped when whoever asked is gone: then those that were made already are removed again.
        let mut tasks = JoinSet::new();
        for (at, name) in names.into_iter().enumerate() {
            let labels = request.labels.clone();
            let asked = RestoreRequest { name, labels, actor: request.actor, ..RestoreRequest::default() };
            let (control, record) = (self.clone(), record.clone());
            tasks.spawn(async move { (at, control.make_of(record, asked, heir_of).await) });
        }
        let mut made = tasks.join_all().await;
        made.sort_by_key(|(at, _)| *at);
        let forks = made.into_iter().map(|(_, made)| match made {
            Ok(sandbox) => Forked::Made { sandbox: Box::new(sandbox) },
            Err(problem) => Forked::Failed { problem },
        });
        Ok(Forks { forks: forks.collect(), snapshot: record.snapshot })
    }

    /// The snapshot a sandbox stands on, if it has written nothing since; else a new one.
    pub(super) async fn sealed(
        &self,
        which: &str,
        reason: SnapshotReason,
        actor: Actor,
    ) -> Result<SnapshotRecord, Problem> {
        let slot = self.find(which, SEAL).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            control.sealed_now(&slot, reason, actor).await
        })
        .await
    }

    /// The same. Needs the sandbox's turn, and the layers.
    pub(super) async fn sealed_now(
        &self,
        slot: &Arc<Slot>,
        reason: SnapshotReason,
        actor: Actor,
    ) -> Result<SnapshotRecord, Problem> {
        let record = self.record(slot).await?;
        let sealed = self.seal(slot, &record).await?;
        self.keep_or_last(slot, &record, sealed, reason, actor).await
    }

    /// Records what was sealed, unless that is the snapshot the sandbox stands on already.
    pub(super) async fn keep_or_last(
        &self,
        slot: &Slot,
        record: &Record,
        sealed: Sealed,
        reason: SnapshotReason,
        actor: Actor,
    ) -> Result<SnapshotRecord, Problem> {
        if let Some(last) = record.sandbox.snapshot {
            let last = self.find_snapshot(&last.to_string()).await?;
            // With the same layers over another base it was something else.
            if last.saved.layers() == sealed.saved.layers() && last.saved.base() == sealed.saved.base() {
                return Ok(last);
            }
        }
        let asked = Asked { reason, name: None, labels: Default::default(), actor };
        self.keep(slot, record, sealed, asked).await
    }

    async fn make_of(
        &self,
        record: SnapshotRecord,
        asked: RestoreRequest,
        heir_of: SandboxId,
    ) -> Result<Sandbox, Problem> {
        is_workspace_there(&record)?;
        let SnapshotRecord { snapshot: Snapshot { id, .. }, mut request, saved } = record;
        let RestoreRequest { name, labels, limits, net, env, actor } = asked;
        request.name = name;
        request.labels.extend(labels);
        request.limits = limits.over(&request.limits);
        request.net = net.unwrap_or(request.net);
        request.context.env.extend(env);
        request.actor = actor;
        let order =
            Order { request, first: None, throwaway: false, from: Some((id, saved)), heir_of: Some(heir_of) };
        self.make_from(order).await
    }
}

/// Its frozen copy holds only what changes.
pub(super) fn is_workspace_there(record: &SnapshotRecord) -> Result<(), Problem> {
    match &record.snapshot.workspace {
        Some(workspace) if !Path::new(workspace.as_os_str()).exists() => {
            Err(refusal::workspace_gone(workspace))
        }
        Some(_) | None => Ok(()),
    }
}

fn names(request: &ForkRequest) -> Result<Vec<Option<Name>>, Problem> {
    let numbered = |number: u32| match &request.name {
        Some(name) if request.count > 1 => format!("{name}-{number}").parse().map(Some),
        name => Ok(name.clone()),
    };
    let names: Result<Vec<_>, _> = (1..=request.count).map(numbered).collect();
    names.map_err(|error| Problem::from_error(Code::BadRequest, &error))
}

const SEAL: &str = "seal";
/// Forked at once. Each takes a few milliseconds and a process.
const MOST: u32 = 256;
