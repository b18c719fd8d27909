//! `exec` and what else is asked of a sandbox that runs: its commands and its files.

use std::sync::Arc;

use model::exec::{Exec, ExecRequest, Variable};
use model::files::FileOp;
use model::{ExecId, Problem, State};
use tokio::net::UnixStream;

use crate::control::Control;
use crate::hindsight::{Conversation, Hindsight};
use crate::refusal;
use crate::slots::{Seat, Slot};
use crate::store::Move;

impl Control {
    /// Starts a command.
    pub async fn exec(&self, which: &str, mut request: ExecRequest) -> Result<Conversation, Problem> {
        if request.argv.is_empty() {
            return Err(refusal::no_command());
        }
        let slot = self.find(which, RUN).await?;
        slot.secrets.hide(&mut request.env);
        let door = slot.door.read().await;
        // The common case: used before, so there is nothing to record.
        if let Some(seat) = slot.active_seat() {
            let hindsight = self.hindsight(&seat);
            let stream = self.inner.native.exec(&seat.running, &seat.context, &request).await?;
            return Ok(Conversation { stream, hindsight });
        }
        drop(door);
        let control = self.clone();
        self.to_the_end(async move { control.first_exec(&slot, &request).await }).await
    }

    async fn first_exec(&self, slot: &Slot, request: &ExecRequest) -> Result<Conversation, Problem> {
        let _turn = slot.turn.lock().await;
        let (record, seat) = self.running(slot, RUN).await?;
        let hindsight = self.hindsight(&seat);
        let started = self.inner.native.exec(&seat.running, &seat.context, request);
        // Another command may have been quicker.
        if record.sandbox.state == State::Active {
            return Ok(Conversation { stream: started.await?, hindsight });
        }
        let change = self.inner.store.transition(slot.id, Move::to(State::Active));
        let (stream, moved) = tokio::join!(started, change);
        moved.map_err(|error| refusal::store(&error))?;
        seat.set_active(true);
        Ok(Conversation { stream: stream?, hindsight })
    }

    fn hindsight(&self, seat: &Seat) -> Hindsight {
        Hindsight::begin(&self.inner.native, seat)
    }

    /// Joins a command that runs.
    pub async fn attach(&self, which: &str, exec: ExecId) -> Result<Conversation, Problem> {
        let seat = self.live(which, "attach to").await?;
        let hindsight = self.hindsight(&seat);
        Ok(Conversation { stream: self.inner.native.attach(&seat.running, exec).await?, hindsight })
    }

    /// The commands of a sandbox, those that ended too.
    pub async fn execs(&self, which: &str) -> Result<Vec<Exec>, Problem> {
        let seat = self.live(which, "list the commands of").await?;
        self.inner.native.execs(&seat.running).await
    }

    pub async fn signal(&self, which: &str, exec: ExecId, signal: i32) -> Result<(), Problem> {
        let seat = self.live(which, "signal").await?;
        self.inner.native.signal(&seat.running, exec, signal).await
    }

    /// Does something with a file inside, as this user or else as the sandbox's own.
    pub async fn file(&self, which: &str, user: Option<&str>, op: &FileOp) -> Result<UnixStream, Problem> {
        let slot = self.find(which, FILES).await?;
        let _door = slot.door.read().await;
        let seat = self.live_seat(&slot, FILES).await?;
        self.inner.native.file(&seat.running, &seat.context, user, op).await
    }

    /// What the commands of a sandbox find in their environment, unless they are given something else.
    pub async fn variables(&self, which: &str) -> Result<Vec<Variable>, Problem> {
        let seat = self.live(which, "tell the environment of").await?;
        Ok(seat.context.env.clone())
    }

    async fn live(&self, which: &str, verb: &str) -> Result<Arc<Seat>, Problem> {
        let slot = self.find(which, verb).await?;
        self.live_seat(&slot, verb).await
    }

    async fn live_seat(&self, slot: &Slot, verb: &str) -> Result<Arc<Seat>, Problem> {
        match slot.active_seat() {
            Some(seat) => Ok(seat),
            None => Ok(self.running(slot, verb).await?.1),
        }
    }
}

const FILES: &str = "reach the files of";
const RUN: &str = "run a command in";
