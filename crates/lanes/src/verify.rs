//! `verify`: what the checks say of a sandbox's state.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use control::{Verdicts, config};
use jiff::Timestamp;
use model::caveat::CaveatKind;
use model::config::{Check, Config, FILE};
use model::diff::{Detail, Diff};
use model::exec::Text;
use model::sandbox::Actor;
use model::snapshot::SnapshotReason;
use model::verdict::{Excluded, Judgement, VerifyRequest, VerifyStep};
use model::{Caveat, Code, Name, Problem, Sandbox, Snapshot, Verdict, VerdictId};
use tokio::sync::Semaphore;

use crate::suite::{self, Note, Notes, Suite};
use crate::{Lanes, Steps};

impl Lanes {
    /// Seals the state of a sandbox and runs the checks on copies of it. Ends when nobody hears the steps any more.
    pub async fn verify(
        &self,
        which: &str,
        request: VerifyRequest,
        steps: &Steps<VerifyStep>,
    ) -> Result<Verdict, Problem> {
        tokio::select! {
            verdict = self.verify_heard(which, request, steps) => verdict,
            () = steps.closed() => Err(nobody_waits()),
        }
    }

    async fn verify_heard(
        &self,
        which: &str,
        request: VerifyRequest,
        steps: &Steps<VerifyStep>,
    ) -> Result<Verdict, Problem> {
        let sandbox = self.control.get(which).await?;
        let checks = self.checks(sandbox.workspace.as_ref(), &request).await?;
        let steps = steps.clone();
        let notes: Notes = Arc::new(move |note| tell(&steps, step(note)));
        self.judge(&sandbox, &checks, Judging { actor: request.actor, room: room(None), notes }).await
    }

    /// Seals the state of a sandbox and judges it.
    pub(crate) async fn judge(
        &self,
        sandbox: &Sandbox,
        checks: &[Check],
        judging: Judging,
    ) -> Result<Verdict, Problem> {
        let which = sandbox.id.to_string();
        let snapshot = self.control.seal_for(&which, SnapshotReason::Verify, judging.actor).await?;
        self.judge_snapshot(sandbox, snapshot, checks, judging).await
    }

    /// Judges what was made of a sandbox.
    pub(crate) async fn judge_snapshot(
        &self,
        sandbox: &Sandbox,
        snapshot: Snapshot,
        checks: &[Check],
        judging: Judging,
    ) -> Result<Verdict, Problem> {
        let Judging { actor, room, notes } = judging;
        let began = Instant::now();
        let state = self.control.sealed_state(snapshot.id, Detail::Paths).await?;
        let names = checks.iter().map(|check| check.name.clone()).collect();
        notes(Note::Sealed { snapshot: snapshot.id, digest: state.digest, checks: names });
        let id = VerdictId::from_bits(random()?);
        let Snapshot { id: snapshot_id, workspace, .. } = snapshot;
        let suite = Suite {
            control: self.control.clone(),
            snapshot: snapshot_id,
            workspace,
            actor,
            logs: self.logs.folder(id),
            room,
        };
        let results = suite::run(Arc::new(suite), checks, notes).await;
        let unread = state.unread.into_iter().map(|path| Excluded::Unread { path });
        let verdict = Verdict {
            id,
            outcome: Judgement::of_all(results.iter().map(|result| result.outcome)),
            sandbox: sandbox.id,
            sandbox_name: sandbox.name.clone(),
            snapshot: snapshot_id,
            digest: state.digest,
            excluded: [Excluded::Times, Excluded::GitFolders, Excluded::Live]
                .into_iter()
                .chain(unread)
                .collect(),
            checks: results,
            caveats: caveats(&state.diff),
            actor,
            created: Timestamp::now(),
            duration_ms: began.elapsed().as_millis() as u64,
        };
        self.keep(verdict.clone()).await?;
        Ok(verdict)
    }

    /// Oldest first; all, or those on states of one sandbox, which may be gone.
    pub async fn verdicts(&self, of: Option<&str>) -> Result<Vec<Verdict>, Problem> {
        match of {
            Some(which) => self.control.verdicts_of(which).await,
            None => self.control.verdicts(Verdicts::All).await,
        }
    }

    /// Writes it down, and drops the logs of those that are forgotten in its place.
    async fn keep(&self, verdict: Verdict) -> Result<(), Problem> {
        self.logs.clear(self.control.record_verdict(verdict, KEPT).await?).await;
        Ok(())
    }

    /// What the real workspace declares now.
    pub async fn declared(&self, workspace: Option<&Text>) -> Result<Config, Problem> {
        let Some(workspace) = workspace else { return Ok(Config::default()) };
        let folder: PathBuf = Path::new(workspace.as_os_str()).to_owned();
        let read = tokio::task::spawn_blocking(move || config::load(&folder));
        let config = read.await.map_err(|error| Problem::from_error(Code::Internal, &error))??;
        Ok(config.unwrap_or_default())
    }

    /// Which checks are meant.
    pub(crate) async fn checks(
        &self,
        workspace: Option<&Text>,
        request: &VerifyRequest,
    ) -> Result<Vec<Check>, Problem> {
        let VerifyRequest { checks, commands, actor: _ } = request;
        let mut chosen = Vec::new();
        if !checks.is_empty() || commands.is_empty() {
            let config = self.declared(workspace).await?;
            chosen = config::choose(&config, checks).map_err(|bad| {
                let problem = Problem::from_error(Code::NotFound, &bad);
                bad.hint().into_iter().fold(problem, Problem::hint)
            })?;
        }
        for (at, command) in commands.iter().enumerate() {
            let name: Name = format!("check-{}", at + 1).parse().expect("letters, a dash and digits");
            if chosen.iter().any(|check| check.name == name) {
                return Err(Problem::new(
                    Code::BadRequest,
                    format!("there is a check `{name}` in {FILE} already"),
                ));
            }
            chosen.push(Check::new(name, command));
        }
        if chosen.is_empty() { Err(no_checks(workspace)) } else { Ok(chosen) }
    }
}

/// How a state is judged.
pub(crate) struct Judging {
    pub(crate) actor: Actor,
    pub(crate) room: Arc<Semaphore>,
    pub(crate) notes: Notes,
}

/// Commands that run at the same time, over all that share it.
pub(crate) fn room(asked: Option<u32>) -> Arc<Semaphore> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(asked.map_or(cores, |asked| asked as usize).clamp(1, MOST)))
}

/// Told without waiting: a reader who is slow misses a step, not the verdict.
pub(crate) fn tell<T>(steps: &Steps<T>, step: T) {
    if steps.try_send(step).is_err() {
        tracing::debug!("a step was not heard");
    }
}

pub(crate) fn step(note: Note) -> VerifyStep {
    match note {
        Note::Sealed { snapshot, digest, checks } => VerifyStep::Sealed { snapshot, digest, checks },
        Note::Started { check, again } => VerifyStep::Started { check, again },
        Note::Ended(result) => VerifyStep::Ended { result },
    }
}

/// A sandbox that changed its own checks is judged by those of the host all the same, and one that changed the machine with
/// these changes; whoever reads the verdict should know.
fn caveats(diff: &Diff) -> Vec<Caveat> {
    let is_changed = diff.workspace.iter().any(|change| change.path == FILE.into());
    let text = "the sandbox changed zeno.yaml; it was judged by the checks of the real workspace";
    let changed = is_changed.then(|| Caveat::at(CaveatKind::Checks, FILE, text));
    let machine = diff.machine.first().map(|first| {
        let more = match diff.machine.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        let what = format!("`{}`{more} outside of the workspace", first.path.display());
        let text = format!(
            "the checks ran with changes to {what}; what is promoted without them is judged without them"
        );
        Caveat::new(CaveatKind::Checks, text)
    });
    changed.into_iter().chain(machine).collect()
}

fn no_checks(workspace: Option<&Text>) -> Problem {
    let place = workspace.map_or_else(
        || "the sandbox has no workspace".to_owned(),
        |workspace| format!("`{}/{FILE}` declares none", workspace.display()),
    );
    let problem = Problem::new(Code::NotFound, format!("there are no checks: {place}"));
    problem
        .hint("give one: `zeno verify SANDBOX --check 'make test'`")
        .hint(format!("or declare them in {FILE}: `checks: {{test: make test}}`"))
}

pub(crate) fn nobody_waits() -> Problem {
    Problem::new(Code::NotReady, "nobody waits for the answer any more")
}

pub(crate) fn random() -> Result<u64, Problem> {
    getrandom::u64().map_err(|error| Problem::from_error(Code::Internal, &error))
}

/// Verdicts that are remembered.
const KEPT: usize = 1000;
/// Commands at once, whatever is asked for.
const MOST: usize = 64;
