//! All checks of a state: what needs nothing first, the rest as what it needs has passed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use control::Control;
use model::config::Check;
use model::exec::Text;
use model::sandbox::Actor;
use model::verdict::{CheckResult, CheckRun, Judgement, Reason};
use model::{Digest, Name, Problem, SnapshotId};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::command::{Ran, hear, shell};
use crate::definition;
use crate::judge::{Said, judge, not_run};

/// The state, and how it is judged.
#[derive(Debug)]
pub(crate) struct Suite {
    pub(crate) control: Control,
    pub(crate) snapshot: SnapshotId,
    pub(crate) workspace: Option<Text>,
    pub(crate) actor: Actor,
    /// Where what the checks write goes.
    pub(crate) logs: PathBuf,
    /// Whoever runs a command holds a permit.
    pub(crate) room: Arc<Semaphore>,
}

/// What is told of a check while it is run.
#[derive(Clone, Debug)]
pub(crate) enum Note {
    Sealed { snapshot: SnapshotId, digest: Digest, checks: Vec<Name> },
    Started { check: Name, again: bool },
    Ended(CheckResult),
}

/// Where it is told.
pub(crate) type Notes = Arc<dyn Fn(Note) + Send + Sync>;

/// Runs all of them. Dropped, it ends what it runs.
pub(crate) async fn run(suite: Arc<Suite>, checks: &[Check], notes: Notes) -> Vec<CheckResult> {
    let mut done: BTreeMap<Name, CheckResult> = BTreeMap::new();
    let mut waiting: Vec<Check> = checks.to_vec();
    let mut running = JoinSet::new();
    loop {
        // Those that need what will never pass are done, too, and others may need those.
        while let Some(at) = waiting.iter().position(|check| is_decided(check, &done)) {
            let check = waiting.remove(at);
            match blocked_by(&check, &done) {
                Some(need) => {
                    let result =
                        result(&check, (Judgement::Inconclusive, Some(need)), Vec::new(), Vec::new());
                    notes(Note::Ended(result.clone()));
                    done.insert(check.name, result);
                }
                None => {
                    let (suite, notes) = (Arc::clone(&suite), Arc::clone(&notes));
                    running.spawn(async move { suite.one(check, notes).await });
                }
            }
        }
        match running.join_next().await {
            Some(Ok(result)) => {
                notes(Note::Ended(result.clone()));
                done.insert(result.name.clone(), result);
            }
            Some(Err(error)) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a check panicked");
            }
            None => break,
        }
    }
    let lost =
        |check: &Check| result(check, not_run("zeno lost track of it".to_owned()), Vec::new(), Vec::new());
    checks.iter().map(|check| done.remove(&check.name).unwrap_or_else(|| lost(check))).collect()
}

impl Suite {
    /// Once, and once more if it fails: a check that cannot make up its mind says nothing.
    async fn one(&self, check: Check, notes: Notes) -> CheckResult {
        let first = self.attempt(&check, false, &notes).await;
        if first.said.0 != Judgement::Fail {
            return result(&check, first.said, vec![first.run], first.tail);
        }
        let second = self.attempt(&check, true, &notes).await;
        let said = match second.said.0 {
            Judgement::Fail => first.said,
            Judgement::Pass | Judgement::Inconclusive => (Judgement::Inconclusive, Some(Reason::Flaky)),
        };
        result(&check, said, vec![first.run, second.run], first.tail)
    }

    async fn attempt(&self, check: &Check, again: bool, notes: &Notes) -> Attempt {
        let _permit = self.room.acquire().await.expect("never closed");
        notes(Note::Started { check: check.name.clone(), again });
        match self.ran(check, again).await {
            Ok(ran) => {
                let said = judge(check, &ran);
                let Ran { exit, duration, written } = ran;
                let duration_ms = duration.as_millis() as u64;
                let run = CheckRun { exit: Some(exit), duration_ms, log: written.log.map(Text::from) };
                Attempt { said, run, tail: written.tail }
            }
            Err(problem) => {
                let why =
                    std::iter::once(problem.detail).chain(problem.causes).collect::<Vec<_>>().join(": ");
                let run = CheckRun { exit: None, duration_ms: 0, log: None };
                Attempt { said: not_run(why), run, tail: Vec::new() }
            }
        }
    }

    async fn ran(&self, check: &Check, again: bool) -> Result<Ran, Problem> {
        let exec = shell(&check.run, self.workspace.as_ref(), check.timeout);
        let log = self.logs.join(format!("{}{}.log", check.name, if again { ".again" } else { "" }));
        let (throwaway, conversation) = self.control.run_on(self.snapshot, exec, self.actor).await?;
        let ran = hear(conversation, None, check.timeout.unwrap_or(Check::TIMEOUT), &log).await?;
        if let Err(problem) = throwaway.dismiss().await {
            tracing::warn!(error = %problem, "failed to remove the sandbox of a check");
        }
        Ok(ran)
    }
}

struct Attempt {
    said: Said,
    run: CheckRun,
    tail: Vec<String>,
}

/// Is all known that decides whether it is run?
fn is_decided(check: &Check, done: &BTreeMap<Name, CheckResult>) -> bool {
    check.needs.iter().all(|need| done.contains_key(need)) || blocked_by(check, done).is_some()
}

fn blocked_by(check: &Check, done: &BTreeMap<Name, CheckResult>) -> Option<Reason> {
    let did_not_pass = |need: &&Name| done.get(*need).is_some_and(|need| need.outcome != Judgement::Pass);
    check.needs.iter().find(did_not_pass).map(|need| Reason::Needs { check: need.clone() })
}

fn result(check: &Check, said: Said, runs: Vec<CheckRun>, tail: Vec<String>) -> CheckResult {
    let (outcome, reason) = said;
    CheckResult {
        name: check.name.clone(),
        run: check.run.clone(),
        definition: definition(check),
        outcome,
        reason,
        runs,
        tail: if outcome == Judgement::Pass { Vec::new() } else { tail },
    }
}
