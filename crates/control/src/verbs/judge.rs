//! What judging a state needs: it is sealed, looked at, and commands are run on copies of it that nobody keeps.

use backends::native::SealedState;
use model::diff::Detail;
use model::exec::ExecRequest;
use model::limits::OnExpire;
use model::sandbox::Actor;
use model::snapshot::SnapshotReason;
use model::units::Size;
use model::{Problem, Sandbox, SandboxId, Snapshot, SnapshotId};
use tokio::runtime::Handle;

use super::create::Order;
use super::destroy::Keep;
use super::restore::is_workspace_there;
use crate::control::Control;
use crate::hindsight::Conversation;
use crate::refusal;
use crate::store::SnapshotRecord;

impl Control {
    /// The snapshot a sandbox stands on, if it has written nothing since; else a new one.
    pub async fn seal_for(
        &self,
        which: &str,
        reason: SnapshotReason,
        actor: Actor,
    ) -> Result<Snapshot, Problem> {
        Ok(self.sealed(which, reason, actor).await?.snapshot)
    }

    /// What a snapshot changed, and the digest that stands for it.
    pub async fn sealed_state(&self, snapshot: SnapshotId, detail: Detail) -> Result<SealedState, Problem> {
        let _layers = self.inner.layers.read().await;
        let record = self.find_snapshot(&snapshot.to_string()).await?;
        self.inner.native.sealed_state(&record.saved, detail).await
    }

    /// The most memory that a sandbox ever used; `None` if it does not run.
    pub async fn peak_memory(&self, sandbox: &Sandbox) -> Result<Option<Size>, Problem> {
        match self.seat_of(sandbox.id, sandbox.state) {
            Some(seat) => self.inner.native.peak_memory(&seat.running).await.map(Some),
            None => Ok(None),
        }
    }

    /// Makes a copy of a snapshot that runs this command, and is gone afterwards.
    pub async fn run_on(
        &self,
        snapshot: SnapshotId,
        exec: ExecRequest,
        actor: Actor,
    ) -> Result<(Throwaway, Conversation), Problem> {
        if exec.argv.is_empty() {
            return Err(refusal::no_command());
        }
        let _layers = self.inner.layers.read().await;
        let record = self.find_snapshot(&snapshot.to_string()).await?;
        is_workspace_there(&record)?;
        let SnapshotRecord { snapshot, mut request, saved } = record;
        request.name = None;
        request.actor = actor;
        request.limits.on_expire = Some(OnExpire::Destroy);
        let from = Some((snapshot.id, saved));
        let heir_of = Some(snapshot.sandbox);
        let order = Order { request, first: Some(exec), throwaway: true, from, heir_of };
        let (Sandbox { id, .. }, conversation) = self.run_order(order, &|_progress| ()).await?;
        Ok((self.unless_kept(id), conversation))
    }

    /// Removes a sandbox when this is dropped before somebody decides to keep it.
    #[must_use]
    pub fn unless_kept(&self, id: SandboxId) -> Throwaway {
        Throwaway { control: self.clone(), runtime: Handle::current(), id: Some(id) }
    }
}

/// A sandbox that goes with whoever holds this. Dropped, whatever runs in it is ended.
#[derive(Debug)]
pub struct Throwaway {
    control: Control,
    runtime: Handle,
    id: Option<SandboxId>,
}

impl Throwaway {
    /// It is to stay after all.
    pub fn keep(mut self) {
        self.id = None;
    }

    /// Removes it, now that its command has ended.
    pub async fn dismiss(mut self) -> Result<(), Problem> {
        match self.id.take() {
            Some(id) => self.control.dismiss(id, Keep::Nothing).await.map(drop),
            None => Ok(()),
        }
    }
}

impl Drop for Throwaway {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let control = self.control.clone();
        self.runtime.spawn(async move {
            if let Err(problem) = control.destroy(&id.to_string()).await {
                tracing::warn!(sandbox = %id, error = %problem, "failed to remove a sandbox nobody waits for");
            }
        });
    }
}
