//! The gateway: one for all sandboxes of the daemon, with one [`outlet`] for each that may reach something.
//!
//! It learns of sandboxes from `control`: of each whose processes are there, anew or again. Until it has asked for a
//! sandbox's sockets, what that sandbox tries to reach waits in the kernel; so no packet is ahead of the policy.

mod ask;
mod book;
mod connection;
mod dns;
mod inspect;
mod names;
mod opening;
mod outlet;
mod pass;
mod proxy;
mod recent;
mod relay;
mod room;
mod turn;
mod way;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use control::{Control, Requests};
use model::given::{Given, GivenName};
use model::net::Policy;
use model::request::{End, NetChange, Request};
use model::{Code, Problem, Sandbox, SandboxId};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::watch;

use crate::follow::Follow;
use crate::ports::Ports;
use crate::recorder::Recorder;
pub(crate) use connection::reset;
use inspect::Trust;
pub use inspect::TrustError;
use names::Names;
use outlet::Outlet;
use room::Room;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Gateway(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    control: Control,
    names: Names,
    recorder: Recorder,
    room: Room,
    /// Whose certificates are good, of hosts outside.
    trust: Trust,
    ports: Ports,
    /// What the sandboxes that are served may reach.
    policies: Mutex<HashMap<SandboxId, watch::Sender<Arc<Policy>>>>,
    /// Held from when a policy is read from the record to when it holds.
    holding: tokio::sync::Mutex<()>,
}

#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    #[error("failed to set up the resolver")]
    Resolver {
        #[source]
        source: hickory_resolver::net::NetError,
    },
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl Gateway {
    /// Serves all sandboxes there are and will be. `resolver`: asked instead of the machine's own name servers. `trust`: a
    /// file with authorities that are trusted beside the machine's own.
    pub fn start(
        control: Control,
        resolver: Option<SocketAddr>,
        trust: Option<&Path>,
    ) -> Result<Self, GatewayError> {
        let names = Names::new(resolver)?;
        let recorder = Recorder::new(control.clone());
        let (trust, room, ports) = (Trust::new(trust)?, Room::make(), Ports::new(control.clone()));
        let (policies, holding) = Default::default();
        let inner = Inner { control, names, recorder, ports, room, trust, policies, holding };
        let gateway = Self(Arc::new(inner));
        // Before those that are there already are looked at, so that none falls between.
        let seated = gateway.0.control.seated();
        tokio::spawn(gateway.clone().attend(seated));
        Ok(gateway)
    }

    /// Changes what a sandbox may reach, at once: connections that are not allowed any more are cut.
    pub async fn change(&self, which: &str, change: &NetChange) -> Result<Sandbox, Problem> {
        let (gateway, which, change) = (self.clone(), which.to_owned(), change.clone());
        // Whoever asked may leave in the middle: what is written must hold.
        let changed = tokio::spawn(async move { gateway.change_and_hold(&which, &change).await }).await;
        changed.map_err(|error| Problem::from_error(Code::Internal, &error))?
    }

    async fn change_and_hold(&self, which: &str, change: &NetChange) -> Result<Sandbox, Problem> {
        let sandbox = self.0.control.change_net(which, change).await?;
        self.hold_written(sandbox.id).await?;
        Ok(sandbox)
    }

    /// Puts another policy in place of a sandbox's own, at once, and maybe a label that tells of it.
    pub async fn replace(
        &self,
        which: &str,
        policy: Policy,
        label: Option<(String, String)>,
    ) -> Result<Sandbox, Problem> {
        let (gateway, which) = (self.clone(), which.to_owned());
        // As above.
        let replaced = tokio::spawn(async move {
            let sandbox = gateway.0.control.replace_net(&which, policy, label).await?;
            gateway.hold_written(sandbox.id).await?;
            Ok(sandbox)
        });
        replaced.await.map_err(|error| Problem::from_error(Code::Internal, &error))?
    }

    /// Has what is written hold from now on.
    async fn hold_written(&self, id: SandboxId) -> Result<(), Problem> {
        let _holding = self.0.holding.lock().await;
        // Read again: of two changes at once, the one that is written last is the one that holds.
        let written = self.0.control.get(&id.to_string()).await?;
        if let (Some(policy), Some(live)) = (written.net.policy(), self.policies().get(&id)) {
            live.send_replace(Arc::new(policy.clone()));
        }
        Ok(())
    }

    /// What a sandbox was given.
    pub async fn given(&self, which: &str) -> Result<Given, Problem> {
        let (sandbox, variables) = self.0.control.environment(which).await?;
        let names = self.0.control.given_names(sandbox.id).await?;
        let given = |(name, number)| GivenName { name, ipv4: book::ipv4(number), ipv6: book::ipv6(number) };
        let names = names.into_iter().zip(0..).map(given).collect();
        Ok(Given::new(&sandbox.net, variables, names, self.0.control.trusted(sandbox.id)?))
    }

    pub async fn requests(&self, which: Requests) -> Result<Vec<Request>, Problem> {
        self.0.control.requests(which).await
    }

    pub async fn request(&self, id: u64) -> Result<Request, Problem> {
        self.0.control.request(id).await
    }

    /// The ways into sandboxes.
    #[must_use]
    pub fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// Every request that is one of these, past and to come, and each again when more is known of it. Without a number to
    /// begin after, from now on.
    #[must_use]
    pub fn follow(&self, which: Requests) -> Follow {
        Follow::new(self.0.control.clone(), self.0.recorder.subscribe(), which)
    }

    async fn attend(self, mut seated: broadcast::Receiver<SandboxId>) {
        // Before anything begins anew.
        self.end_earlier().await;
        let mut due = self.0.control.seated_now();
        loop {
            for id in due.drain(..) {
                tokio::spawn(self.clone().serve(id));
            }
            match seated.recv().await {
                Ok(id) => due.push(id),
                Err(RecvError::Lagged(_)) => {
                    let served: Vec<SandboxId> = self.policies().keys().copied().collect();
                    due.extend(self.0.control.seated_now().into_iter().filter(|id| !served.contains(id)));
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// What went on when the daemon before us ended has ended, too: its connections were that daemon's.
    async fn end_earlier(&self) {
        let error = Some("the daemon ended before it did".to_owned());
        let end = End { sent: 0, received: 0, milliseconds: 0, error };
        match self.0.control.end_requests(end).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "requests of an earlier daemon have ended with it"),
            Err(problem) => tracing::warn!(%problem, "requests of an earlier daemon have no end"),
        }
    }

    /// Serves one sandbox for as long as its processes are there.
    async fn serve(self, id: SandboxId) {
        let found = match self.0.control.outlet(id).await {
            Ok(found) => found,
            Err(problem) => {
                // Without its sockets nothing can leave it: it is as closed as one without a network.
                tracing::warn!(sandbox = %id, %problem, "the gateway cannot serve a sandbox");
                return;
            }
        };
        let Some((sandbox, sockets)) = found else { return };
        let policy = match self.hold(id).await {
            Ok(policy) => policy,
            Err(problem) => {
                tracing::warn!(sandbox = %id, %problem, "the gateway cannot serve a sandbox");
                return;
            }
        };
        let served = Outlet::new(&self.0, &sandbox, sockets, policy.subscribe()).await;
        match served {
            Ok((outlet, sockets)) => outlet.serve(sockets).await,
            Err(problem) => tracing::warn!(sandbox = %id, %problem, "the gateway cannot serve a sandbox"),
        }
        // Made anew meanwhile, it has another by now.
        let mut policies = self.policies();
        if policies.get(&id).is_some_and(|current| current.same_channel(&policy)) {
            policies.remove(&id);
        }
    }

    /// What a sandbox may reach, from now on as every change has it.
    async fn hold(&self, id: SandboxId) -> Result<watch::Sender<Arc<Policy>>, Problem> {
        let _holding = self.0.holding.lock().await;
        let sandbox = self.0.control.get(&id.to_string()).await?;
        let policy = sandbox.net.policy().cloned().unwrap_or_default();
        let policy = watch::Sender::new(Arc::new(policy));
        self.policies().insert(id, policy.clone());
        Ok(policy)
    }

    fn policies(&self) -> MutexGuard<'_, HashMap<SandboxId, watch::Sender<Arc<Policy>>>> {
        self.0.policies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
