//! `list`, `get`, `status`, and where the log lies: looking without touching.

use std::path::PathBuf;

use model::caveat::CaveatKind;
use model::sandbox::{Status, Usage};
use model::units::Size;
use model::{Code, Problem, Sandbox, SandboxId, State};

use crate::control::Control;
use crate::listeners::listeners;
use crate::refusal;
use crate::store::Which;

impl Control {
    /// Oldest first; with `all` also those that are destroyed and still remembered.
    pub async fn list(&self, all: bool) -> Result<Vec<Sandbox>, Problem> {
        let which = if all { Which::All } else { Which::Existing };
        let records = self.inner.store.records(which).await.map_err(|error| refusal::store(&error))?;
        Ok(records.into_iter().map(|record| record.sandbox).collect())
    }

    /// By id, name, or the beginning of an id. A destroyed one by its whole id.
    pub async fn get(&self, which: &str) -> Result<Sandbox, Problem> {
        match self.inner.slots.find(which) {
            Ok(slot) => Ok(self.record(&slot).await?.sandbox),
            Err(problem) => self.destroyed(which).await?.ok_or(problem),
        }
    }

    /// The record, and how the sandbox stands to reality.
    pub async fn status(&self, which: &str) -> Result<Status, Problem> {
        let mut sandbox = self.get(which).await?;
        let host_listeners =
            listeners().await.map_err(|error| Problem::from_error(Code::Internal, &error))?;
        let native = &self.inner.native;
        let id = sandbox.id;
        let live = sandbox.live();
        if !has_layers(sandbox.state) {
            let written = Size(0);
            return Ok(Status {
                sandbox,
                freshness: None,
                live,
                masked: Vec::new(),
                processes: None,
                written,
                memory: None,
                host_listeners,
            });
        }
        let processes = self.processes(&sandbox).await?;
        let memory = if processes.is_some() { native.memory(id)? } else { None };
        let has_disk = sandbox.limits.disk.is_some();
        let written = async { if has_disk { native.disk_use(id).await } else { native.written(id).await } };
        let (freshness, (masked, caveats), written) =
            tokio::try_join!(native.freshness(id), native.told(id), written)?;
        // The end of the machine is written down with its files, and not yet in its record.
        for caveat in caveats.into_iter().filter(|caveat| caveat.kind == CaveatKind::Durability) {
            if !sandbox.caveats.contains(&caveat) {
                sandbox.caveats.push(caveat);
            }
        }
        Ok(Status { sandbox, freshness, live, masked, processes, written, memory, host_listeners })
    }

    /// The file that holds the output of a sandbox's commands; it may not exist yet.
    pub async fn log_path(&self, which: &str) -> Result<PathBuf, Problem> {
        let slot = self.find(which, "read the log of").await?;
        Ok(self.inner.native.log_path(slot.id))
    }

    /// What a sandbox that runs uses, and what it may use.
    pub async fn usage(&self, which: &str) -> Result<Usage, Problem> {
        let slot = self.find(which, "measure").await?;
        let (record, seat) = self.running(&slot, "measure").await?;
        self.inner.native.usage(&seat.running, &record.sandbox.limits).await
    }

    async fn processes(&self, sandbox: &Sandbox) -> Result<Option<u64>, Problem> {
        match self.seat_of(sandbox.id, sandbox.state) {
            Some(seat) => self.inner.native.processes(&seat.running).await.map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn seat_of(&self, id: SandboxId, state: State) -> Option<std::sync::Arc<crate::slots::Seat>> {
        self.inner.slots.by_id(id).filter(|_slot| state.is_running())?.seat()
    }
}

/// Is there anything on disk to ask about?
pub(super) fn has_layers(state: State) -> bool {
    match state {
        State::Ready
        | State::Active
        | State::Paused
        | State::Stopped
        | State::Unreachable
        | State::Expired
        | State::Failed => true,
        State::Requested | State::Provisioning | State::Destroying | State::Destroyed => false,
    }
}
