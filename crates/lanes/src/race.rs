//! `race`: several candidates from one state, in copies of their own, checked and compared.
//!
//! Each runs in a task of its own, so that one that crashes harms no other. Losers stay until their time is over.

mod entrant;
mod pick;
mod start;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use control::Throwaway;
use jiff::Timestamp;
use model::config::Check;
use model::limits::Limits;
use model::net::Net;
use model::race::{Attempt, Candidate, Entry, Phase, Race, RaceRequest, RaceStep};
use model::sandbox::Actor;
use model::units::Span;
use model::verdict::VerifyRequest;
use model::{Code, Name, Problem, RaceId, Sandbox, SnapshotId};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::verify::{nobody_waits, random, room, tell};
use crate::{Lanes, Steps};

impl Lanes {
    /// Runs a race to its end. Ends earlier when nobody hears the steps any more.
    pub async fn race(&self, request: RaceRequest, steps: &Steps<RaceStep>) -> Result<Race, Problem> {
        tokio::select! {
            race = self.race_heard(request, steps) => race,
            () = steps.closed() => Err(nobody_waits()),
        }
    }

    /// Oldest first.
    pub async fn races(&self) -> Result<Vec<Race>, Problem> {
        self.control.races().await
    }

    async fn race_heard(&self, request: RaceRequest, steps: &Steps<RaceStep>) -> Result<Race, Problem> {
        let began = Instant::now();
        check_candidates(&request)?;
        let start = self.start(&request).await?;
        let asked = VerifyRequest {
            checks: request.checks.clone(),
            commands: request.commands.clone(),
            actor: request.actor,
        };
        let checks = self.checks(start.workspace.as_ref(), &asked).await?;
        let id = RaceId::from_bits(random()?);
        let names = |checks: &[Check]| checks.iter().map(|check| check.name.clone()).collect();
        let candidates = request.candidates.iter().map(|candidate| candidate.name.clone()).collect();
        tell(steps, RaceStep::Begun { race: id, candidates, checks: names(&checks) });
        let field = Arc::new(Field {
            lanes: self.clone(),
            id,
            snapshot: start.snapshot,
            workspace: start.workspace.clone(),
            score: request.score.clone(),
            timeout: request.timeout.unwrap_or(Check::TIMEOUT),
            actor: request.actor,
            limits: request.create.limits.clone(),
            net: request.net.clone(),
            room: room(request.parallel),
            logs: self.races.folder(id),
            steps: steps.clone(),
            made: Mutex::default(),
            checks,
        });
        let mut entries = run_all(&field, &request.candidates).await;
        let winner = pick::pick(request.pick, &mut entries);
        let race = Race {
            id,
            pick: request.pick,
            winner_sandbox: winner.and_then(|at| entries[at].sandbox),
            winner: winner.map(|at| entries[at].name.clone()),
            snapshot: start.snapshot,
            workspace: start.workspace,
            checks: names(&field.checks),
            entries,
            actor: request.actor,
            created: Timestamp::now(),
            duration_ms: began.elapsed().as_millis() as u64,
        };
        self.races.clear(self.control.record_race(race.clone(), KEPT).await?).await;
        field.keep_made();
        Ok(race)
    }
}

/// What all candidates have in common.
#[derive(Debug)]
struct Field {
    lanes: Lanes,
    id: RaceId,
    /// What those start from that are not there already.
    snapshot: Option<SnapshotId>,
    workspace: Option<model::exec::Text>,
    checks: Vec<Check>,
    score: Option<String>,
    timeout: Span,
    actor: Actor,
    /// In place of those that the state has that they start from.
    limits: Limits,
    net: Option<Net>,
    room: Arc<Semaphore>,
    logs: PathBuf,
    steps: Steps<RaceStep>,
    /// Sandboxes of candidates, which go again if the race does not come to its end.
    made: Mutex<Vec<Throwaway>>,
}

impl Field {
    fn made(&self, sandbox: &Sandbox) {
        let held = self.lanes.control.unless_kept(sandbox.id);
        self.made.lock().expect("no panic while it is held").push(held);
    }

    fn keep_made(&self) {
        let made = std::mem::take(&mut *self.made.lock().expect("no panic while it is held"));
        made.into_iter().for_each(Throwaway::keep);
    }

    fn moved(&self, candidate: &Name, phase: Phase) {
        tell(&self.steps, RaceStep::Moved { candidate: candidate.clone(), phase });
    }
}

async fn run_all(field: &Arc<Field>, candidates: &[Candidate]) -> Vec<Entry> {
    let mut running = JoinSet::new();
    for (at, candidate) in candidates.iter().cloned().enumerate() {
        let field = Arc::clone(field);
        running.spawn(async move {
            let entry = entrant::run(&field, &candidate).await;
            tell(&field.steps, RaceStep::Ended { entry: Box::new(entry.clone()) });
            (at, entry)
        });
    }
    let mut entries: Vec<_> =
        candidates.iter().map(|candidate| entrant::lost(&candidate.name, "zeno lost track of it")).collect();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok((at, entry)) => entries[at] = entry,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a candidate's task panicked");
            }
        }
    }
    entries
}

fn check_candidates(request: &RaceRequest) -> Result<(), Problem> {
    let candidates = &request.candidates;
    if candidates.is_empty() {
        return Err(Problem::new(Code::BadRequest, "nobody takes part in the race")
            .hint("give candidates: `zeno race --try a='make fix' --try b='git revert -n HEAD'`"));
    }
    for (at, candidate) in candidates.iter().enumerate() {
        if candidates[..at].iter().any(|other| other.name == candidate.name) {
            let detail = format!("two candidates are called `{}`", candidate.name);
            return Err(Problem::new(Code::BadRequest, detail).hint("give each a name of its own"));
        }
    }
    let is_there = |candidate: &&Candidate| matches!(candidate.attempt, Attempt::Sandbox { .. });
    if let Some(there) = candidates.iter().find(is_there)
        && (request.create.limits != Limits::default() || request.net.is_some())
    {
        let name = &there.name;
        let detail = format!("`{name}` is there already, and keeps the limits and the network that it has");
        return Err(Problem::new(Code::BadRequest, detail).hint(
            "leave out limits and --net, or start from its state: `zeno race --from SANDBOX --try ...`",
        ));
    }
    if request.pick == model::race::Pick::Score && request.score.is_none() {
        return Err(Problem::new(Code::BadRequest, "the highest score wins, and there is no score")
            .hint("say how it is found: `--score 'CMD'` prints a number"));
    }
    Ok(())
}

/// Races that are remembered.
const KEPT: usize = 200;
