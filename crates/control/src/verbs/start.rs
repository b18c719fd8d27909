//! `start`: processes again, on the layers that were kept.

use std::path::Path;
use std::sync::Arc;

use backends::native::{Provision, Provisioned};
use model::sandbox::CreateRequest;
use model::{Problem, Sandbox, State};

use crate::control::{Control, Processes};
use crate::slots::Slot;
use crate::store::{Facts, Move};
use crate::{lifetime, refusal, store};

impl Control {
    /// Starts a sandbox that was stopped, expired or failed. Its time begins anew.
    pub async fn start(&self, which: &str) -> Result<Sandbox, Problem> {
        let slot = self.find(which, START).await?;
        let control = self.clone();
        self.to_the_end(async move { control.start_again(&slot).await }).await
    }

    async fn start_again(&self, slot: &Arc<Slot>) -> Result<Sandbox, Problem> {
        let _turn = slot.turn.lock().await;
        let sandbox = self.record(slot).await?.sandbox;
        if !sandbox.state.can_become(State::Provisioning) || sandbox.state == State::Requested {
            return Err(refusal::not_ready(&sandbox, START));
        }
        if let Some(workspace) = &sandbox.workspace
            && !Path::new(workspace.as_os_str()).exists()
        {
            return Err(refusal::workspace_gone(workspace));
        }
        let request = self.kept_request(slot).await?;
        let span = lifetime::span(&request.limits);
        let deadline = self.inner.native.deadline_after(span);
        let facts = Facts { expires: Some(lifetime::expires(store::now(), span)), ..Facts::default() };
        self.transition(slot, Move::to(State::Provisioning).with(facts)).await?;
        let order = Provision {
            id: slot.id,
            request: &request,
            deadline: Some(deadline),
            throwaway: false,
            first: None,
        };
        let Provisioned { running, workspace, caveats, first: _ } = match self.inner.native.start(order).await
        {
            Ok(started) => started,
            Err(problem) => {
                self.transition(slot, Move::to(State::Failed).because(&problem.detail)).await?;
                return Err(problem);
            }
        };
        let facts = Facts { workspace: workspace.map(Into::into), caveats: Some(caveats), expires: None };
        let moved = self.transition(slot, Move::to(State::Ready).with(facts)).await?;
        let CreateRequest { context, limits, net, .. } = request;
        self.seat(slot, Processes { running, context, limits: &limits, wiring: net.wiring(), deadline });
        Ok(moved.sandbox)
    }
}

const START: &str = "start";
