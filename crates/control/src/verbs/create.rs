//! `create`, and `run`, which is create with a first command.

use std::pin::pin;
use std::sync::Arc;

use backends::native::{Provision, Provisioned, Saved};
use model::caveat::CaveatKind;
use model::exec::{ExecRequest, Progress, RunRequest};
use model::sandbox::CreateRequest;
use model::{Caveat, Code, Problem, Sandbox, SandboxId, SnapshotId, State};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::control::{Control, Processes};
use crate::hindsight::{Conversation, Hindsight};
use crate::slots::{Seat, Slot};
use crate::store::{Facts, Move, NewRecord};
use crate::{lifetime, refusal, secrets, store};

impl Control {
    /// Makes a sandbox. If whoever asked is gone when it is there, it is removed again: nobody knows its id.
    pub async fn create(
        &self,
        request: CreateRequest,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Sandbox, Problem> {
        secrets::refuse_foreign(&request.net)?;
        let order = Order { request, first: None, throwaway: false, from: None, heir_of: None };
        Ok(self.make(order, progress).await?.sandbox)
    }

    /// The same of a snapshot.
    pub(super) async fn make_from(&self, order: Order) -> Result<Sandbox, Problem> {
        Ok(self.make(order, &|_progress| ()).await?.sandbox)
    }

    /// Makes a sandbox that runs this command. Unless `keep`, the caller destroys it when the command has ended; if the
    /// daemon ends before, the next one does.
    pub async fn run(
        &self,
        request: RunRequest,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(Sandbox, Conversation), Problem> {
        if request.exec.argv.is_empty() {
            return Err(refusal::no_command());
        }
        secrets::refuse_foreign(&request.create.net)?;
        let order = Order {
            request: request.create,
            first: Some(request.exec),
            throwaway: !request.keep,
            from: None,
            heir_of: None,
        };
        self.run_order(order, progress).await
    }

    /// The same, of whatever the order says.
    pub(super) async fn run_order(
        &self,
        order: Order,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(Sandbox, Conversation), Problem> {
        let Made { sandbox, first, seat } = self.make(order, progress).await?;
        let stream =
            first.ok_or_else(|| Problem::new(Code::Internal, "the command's conversation is missing"))?;
        let hindsight = Hindsight::since_birth(&self.inner.native, &seat);
        Ok((sandbox, Conversation { stream, hindsight }))
    }

    async fn make(&self, order: Order, progress: &(dyn Fn(Progress) + Sync)) -> Result<Made, Problem> {
        if let Some(name) = order.request.limits.zero() {
            return Err(refusal::zero_limit(name));
        }
        let (report, mut reports) = mpsc::channel(REPORTS);
        let control = self.clone();
        let mut work = pin!(self.to_the_end(async move {
            let made = control.provision(order, &report).await?;
            Ok(Unclaimed { control, runtime: Handle::current(), made: Some(made) })
        }));
        loop {
            tokio::select! {
                Some(step) = reports.recv() => progress(step),
                made = &mut work => return Ok(made?.claim()),
            }
        }
    }

    async fn provision(&self, order: Order, report: &mpsc::Sender<Progress>) -> Result<Made, Problem> {
        let Order { mut request, mut first, throwaway, from, heir_of } = order;
        let mut secrets = secrets::keep_outside(&mut request, first.as_mut())?;
        if let (Some(policy), Some(other)) =
            (request.net.policy(), heir_of.and_then(|id| self.inner.slots.by_id(id)))
        {
            secrets.extend(other.secrets.of(policy));
            first.iter_mut().for_each(|first| other.secrets.hide(&mut first.env));
        }
        settle(&mut request)?;
        let found = self.complete_registries(&mut request).await?;
        let id = fresh_id()?;
        let slot = self.inner.slots.reserve(id, request.name.clone())?;
        slot.secrets.hold(secrets);
        let _turn = slot.turn.lock().await;
        let span = lifetime::span(&request.limits);
        let deadline = self.inner.native.deadline_after(span);
        let expires = Some(lifetime::expires(store::now(), span));
        let snapshot = from.as_ref().map(|(snapshot, _)| *snapshot);
        let new = NewRecord { id, request: request.clone(), expires, throwaway, snapshot };
        let native =
            Provision { id, request: &request, deadline: Some(deadline), throwaway, first: first.as_ref() };
        let progress = |step| {
            // Someone who does not read the last step will read the next one.
            if report.try_send(step).is_err() {
                tracing::trace!("a progress report was not read");
            }
        };
        let caveats = || [Some(not_cloned()), no_variables(&request)].into_iter().flatten().collect();
        let making = async {
            match &from {
                None => self.inner.native.provision(native, &progress).await,
                Some((_, saved)) => self.inner.native.restore(native, saved, caveats()).await,
            }
        };
        // Both at once. Should the daemon die in between, the next one removes what has no record.
        let (written, made) = tokio::join!(self.inner.store.insert(new), making);
        let made = match (written, made) {
            (Ok(_), Ok(made)) => made,
            (Ok(_), Err(problem)) => {
                self.bury(&slot, &problem).await;
                return Err(problem);
            }
            (Err(error), made) => {
                if made.is_ok() {
                    self.sweep(id).await;
                }
                self.inner.slots.remove(&slot);
                return Err(refusal::store(&error));
            }
        };
        let made = Provisioned { caveats: [made.caveats, found].concat(), ..made };
        self.welcome(&slot, request, made, deadline).await
    }

    async fn welcome(
        &self,
        slot: &Arc<Slot>,
        request: CreateRequest,
        made: Provisioned,
        deadline: u64,
    ) -> Result<Made, Problem> {
        let Provisioned { running, workspace, caveats, first } = made;
        let facts = Facts { workspace: workspace.map(Into::into), caveats: Some(caveats), expires: None };
        let ready = Move::to(State::Ready).with(facts);
        let change = if first.is_some() { ready.then(State::Active) } else { ready };
        let moved = match self.transition(slot, change).await {
            Ok(moved) => moved,
            Err(problem) => {
                // The record still says `provisioning`, from where it can be destroyed.
                self.sweep(slot.id).await;
                return Err(problem);
            }
        };
        let CreateRequest { context, limits, net, .. } = request;
        let seat =
            self.seat(slot, Processes { running, context, limits: &limits, wiring: net.wiring(), deadline });
        seat.set_active(first.is_some());
        Ok(Made { sandbox: moved.sandbox, first, seat })
    }

    /// Nothing was made, so nothing stays but the history, and the name is free again.
    async fn bury(&self, slot: &Slot, problem: &Problem) {
        let change = Move::to(State::Failed).then(State::Destroying).then(State::Destroyed);
        match self.transition(slot, change.because(&problem.detail)).await {
            Ok(_) => self.inner.slots.remove(slot),
            Err(unrecorded) => {
                tracing::error!(sandbox = %slot.id, error = %unrecorded, "failed to record a failure");
            }
        }
    }
}

pub(super) struct Order {
    pub(super) request: CreateRequest,
    pub(super) first: Option<ExecRequest>,
    pub(super) throwaway: bool,
    /// What it is made from, where that is not the machine as it is.
    pub(super) from: Option<(SnapshotId, Saved)>,
    /// Whose secrets it has as well, as long as their values are known.
    pub(super) heir_of: Option<SandboxId>,
}

/// A sandbox that is somebody's runs its commands as them, in their home.
fn settle(request: &mut CreateRequest) -> Result<(), Problem> {
    let Some(account) = &request.account else { return Ok(()) };
    if let Some(fault) = account.fault() {
        return Err(Problem::new(Code::BadRequest, fault));
    }
    let context = &mut request.context;
    context.user.get_or_insert_with(|| account.name.clone());
    if context.cwd.0.is_empty() {
        context.cwd = account.home.clone();
    }
    Ok(())
}

fn not_cloned() -> Caveat {
    let text = "it has the files, the environment and the limits of the sandbox it was made from, but not its processes";
    Caveat::new(CaveatKind::Processes, text)
}

/// Those of a throwaway are known only to its daemon, and it may have been the next one that kept what it wrote.
fn no_variables(request: &CreateRequest) -> Option<Caveat> {
    let text = "no environment variables are known of the sandbox it was made from: give a command those that it needs, \
                with `zeno exec -e NAME=VALUE`";
    request.context.env.is_empty().then(|| Caveat::new(CaveatKind::Durability, text))
}

struct Made {
    sandbox: Sandbox,
    first: Option<UnixStream>,
    seat: Arc<Seat>,
}

/// A sandbox on its way to whoever asked for it. Dropped before it is claimed, it is destroyed.
struct Unclaimed {
    control: Control,
    runtime: Handle,
    made: Option<Made>,
}

impl Unclaimed {
    fn claim(mut self) -> Made {
        self.made.take().expect("claimed once, by value")
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        let Some(made) = self.made.take() else { return };
        let control = self.control.clone();
        self.runtime.spawn(async move {
            let id = made.sandbox.id;
            if let Err(problem) = control.destroy(&id.to_string()).await {
                tracing::warn!(sandbox = %id, error = %problem, "failed to remove a sandbox nobody waits for");
            }
        });
    }
}

fn fresh_id() -> Result<SandboxId, Problem> {
    let bits = getrandom::u64().map_err(|error| Problem::from_error(Code::Internal, &error))?;
    Ok(SandboxId::from_bits(bits))
}

/// Progress that may wait to be read.
const REPORTS: usize = 16;
