//! What sandboxes may reach, and what they tried to: the record. Who decides about a connection is the gateway.

use backends::native::Outlet;
use model::exec::{Context, Text, Variable};
use model::given::Trusted;
use model::net::{BadRule, Ecosystem, Net, Policy, Rule, SecretValue};
use model::request::{End, NetChange, Request};
use model::sandbox::CreateRequest;
use model::{Caveat, Code, Problem, Sandbox, SandboxId};
use tokio::sync::broadcast;

use crate::control::Control;
use crate::registries::{self, Completed, Machine};
use crate::slots::Slot;
use crate::store::Requests;
use crate::{refusal, secrets};

impl Control {
    /// Every sandbox that leads to a gateway and whose processes are there from now on, anew or again. A slow reader misses some and is told so.
    #[must_use]
    pub fn seated(&self) -> broadcast::Receiver<SandboxId> {
        self.inner.seated.subscribe()
    }

    /// All whose processes are there now.
    #[must_use]
    pub fn seated_now(&self) -> Vec<SandboxId> {
        self.inner.slots.all().iter().filter(|slot| slot.seat().is_some()).map(|slot| slot.id).collect()
    }

    /// The sockets at which what a sandbox tries to reach arrives. None: it has no gateway, or does not run.
    pub async fn outlet(&self, id: SandboxId) -> Result<Option<(Sandbox, Outlet)>, Problem> {
        let Some(slot) = self.inner.slots.by_id(id) else { return Ok(None) };
        let sandbox = self.record(&slot).await?.sandbox;
        let Some(seat) = slot.seat().filter(|_seat| sandbox.net.policy().is_some()) else { return Ok(None) };
        let outlet = self.inner.native.outlet(&seat.running).await?;
        Ok(Some((sandbox, outlet)))
    }

    /// A sandbox that runs, and the environment of its commands.
    pub async fn environment(&self, which: &str) -> Result<(Sandbox, Vec<Variable>), Problem> {
        let slot = self.find(which, "look into").await?;
        let (record, seat) = self.running(&slot, "look into").await?;
        Ok((record.sandbox, seat.context.env.clone()))
    }

    /// Whom a sandbox trusts of ours.
    pub fn trusted(&self, id: SandboxId) -> Result<Option<Trusted>, Problem> {
        self.inner.native.trusted(id)
    }

    /// The names that a sandbox was given addresses for, in the order in which it was.
    pub async fn given_names(&self, id: SandboxId) -> Result<Vec<String>, Problem> {
        self.inner.store.given_names(id).await.map_err(|error| refusal::store(&error))
    }

    pub async fn give_name(&self, id: SandboxId, number: u32, name: &str) -> Result<(), Problem> {
        let given = self.inner.store.give_name(id, number, name.to_owned()).await;
        given.map_err(|error| refusal::store(&error))
    }

    /// Changes what a sandbox may reach. The last rule that is given comes first.
    pub async fn change_net(&self, which: &str, change: &NetChange) -> Result<Sandbox, Problem> {
        let slot = self.find(which, "open the network of").await?;
        let _turn = slot.turn.lock().await;
        let mut sandbox = self.record(&slot).await?.sandbox;
        let Net::Gateway(policy) = &mut sandbox.net else {
            return Err(without_gateway(&sandbox));
        };
        let could_inspect = policy.may_inspect();
        let bad = |error: BadRule| Problem::from_error(Code::BadRequest, &error);
        for text in &change.allow {
            policy.put_first(Rule::allowing(text).map_err(bad)?);
        }
        for text in &change.deny {
            policy.put_first(Rule::denying(text).map_err(bad)?);
        }
        if registries::are_in(policy) {
            let seat = slot.seat().ok_or_else(|| refusal::just_ended(&slot.label()))?;
            // Variables are given to a sandbox when it is made, and not to what runs in it already.
            let (completed, found) = completed(policy.clone(), seat.context.clone()).await?;
            if let Some(ecosystem) = found.unknown.first() {
                return Err(unknown_registry(*ecosystem));
            }
            *policy = completed;
        }
        if policy.may_inspect() && !could_inspect {
            return Err(without_authority(&slot));
        }
        secrets::change_hosts(policy, &change.secrets)?;
        let values = secrets::again(policy, &change.secrets);
        let (net, labels) = (sandbox.net.clone(), sandbox.labels.clone());
        let written = self.inner.store.set_net(slot.id, net, labels).await;
        written.map_err(|error| refusal::store(&error))?;
        slot.secrets.hold(values);
        Ok(sandbox)
    }

    /// Puts another policy in place of the one a sandbox has. What is secret in it stays. A label can say how whoever asked put it.
    pub async fn replace_net(
        &self,
        which: &str,
        mut policy: Policy,
        label: Option<(String, String)>,
    ) -> Result<Sandbox, Problem> {
        let slot = self.find(which, "change the network of").await?;
        let _turn = slot.turn.lock().await;
        let mut sandbox = self.record(&slot).await?.sandbox;
        let Net::Gateway(before) = &mut sandbox.net else {
            return Err(without_gateway(&sandbox));
        };
        policy.secrets = std::mem::take(&mut before.secrets);
        if policy.may_inspect() && !before.may_inspect() {
            return Err(without_authority(&slot));
        }
        *before = policy;
        sandbox.labels.extend(label);
        let (net, labels) = (sandbox.net.clone(), sandbox.labels.clone());
        let written = self.inner.store.set_net(slot.id, net, labels).await;
        written.map_err(|error| refusal::store(&error))?;
        Ok(sandbox)
    }

    /// The value of a secret that a sandbox may have put in. None: it was given to an earlier daemon, or to the sandbox that
    /// this one was made of, which is gone.
    #[must_use]
    pub fn secret(&self, id: SandboxId, name: &str) -> Option<SecretValue> {
        self.inner.slots.by_id(id)?.secrets.value(name)
    }

    /// Makes rules of the set `registries`, where a request names it. Says what it cannot do for its tools.
    pub(super) async fn complete_registries(
        &self,
        request: &mut CreateRequest,
    ) -> Result<Vec<Caveat>, Problem> {
        let Net::Gateway(policy) = &mut request.net else { return Ok(Vec::new()) };
        if !registries::are_in(policy) {
            return Ok(Vec::new());
        }
        let (complete, found) = completed(policy.clone(), request.context.clone()).await?;
        *policy = complete;
        let env = &mut request.context.env;
        let replaced = |name: &Text| found.variables.iter().any(|variable| variable.name == *name);
        let dropped = |name: &Text| found.without.iter().any(|without| without.as_bytes() == name.0);
        env.retain(|variable| !replaced(&variable.name) && !dropped(&variable.name));
        env.extend(found.variables);
        Ok(found.caveats)
    }

    pub async fn record_request(&self, request: &Request) -> Result<u64, Problem> {
        self.inner.store.insert_request(request).await.map_err(|error| refusal::store(&error))
    }

    pub async fn rewrite_request(&self, request: &Request) -> Result<(), Problem> {
        self.inner.store.write_request(request).await.map_err(|error| refusal::store(&error))
    }

    /// Writes down of all that go on that they ended so: nobody is there any more who could.
    pub async fn end_requests(&self, end: End) -> Result<usize, Problem> {
        self.inner.store.end_requests(end).await.map_err(|error| refusal::store(&error))
    }

    /// Oldest first, without the texts of bodies.
    pub async fn requests(&self, which: Requests) -> Result<Vec<Request>, Problem> {
        self.inner.store.requests(which).await.map_err(|error| refusal::store(&error))
    }

    pub async fn request(&self, id: u64) -> Result<Request, Problem> {
        let found = self.inner.store.request_of_sandbox(id).await.map_err(|error| refusal::store(&error))?;
        found.ok_or_else(|| {
            Problem::new(Code::NotFound, format!("there is no request {id}")).hint("zeno requests lists them")
        })
    }
}

fn unknown_registry(ecosystem: Ecosystem) -> Problem {
    let detail = format!("{ecosystem} says nowhere on this machine where its registry is");
    Problem::new(Code::NotReady, detail).hint("zeno net SANDBOX --allow HOST:443 opens one by its name")
}

/// Whom a sandbox trusts is decided when its processes are made.
fn without_authority(slot: &Slot) -> Problem {
    let detail = format!(
        "`{}` was made without a rule that inspects, so it would not trust what we sign",
        slot.label()
    );
    Problem::new(Code::NotReady, detail)
        .hint("zeno create --net 'allow:NAME+inspect' makes one whose rules can be changed so while it runs")
}

/// Reads files, so it is done where waiting harms nobody.
async fn completed(mut policy: Policy, context: Context) -> Result<(Policy, Completed), Problem> {
    let work = tokio::task::spawn_blocking(move || {
        let found = registries::complete(&mut policy, &Machine::of(&context));
        (policy, found)
    });
    work.await.map_err(|error| Problem::from_error(Code::Internal, &error))
}

fn without_gateway(sandbox: &Sandbox) -> Problem {
    let label = sandbox.name.as_ref().map_or_else(|| sandbox.id.to_string(), ToString::to_string);
    let detail = match sandbox.net {
        Net::Host => format!("`{label}` has the host's network: there is nothing to allow or deny"),
        Net::None | Net::Gateway(_) => format!("`{label}` was made without a network"),
    };
    Problem::new(Code::NotReady, detail)
        .hint("zeno create --net deny makes one that can be opened while it runs")
}
