//! One candidate: its own command, the checks on what it made of the state, and its measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::diff::{Detail, Lines};
use model::exec::{ExecRequest, Outcome, Text};
use model::race::{Attempt, Candidate, Entry, Phase};
use model::snapshot::RestoreRequest;
use model::units::{Size, Span};
use model::verdict::{CheckResult, Judgement};
use model::{Code, Name, Problem, Sandbox, SnapshotId};

use super::Field;
use crate::command::{Ran, hear, shell};
use crate::suite::{Note, Notes};
use crate::verify::Judging;

/// Runs it to its end. Whatever goes wrong is its own.
pub(super) async fn run(field: &Arc<Field>, candidate: &Candidate) -> Entry {
    let mut entry = lost(&candidate.name, "it was not run");
    if let Err(problem) = compete(field, candidate, &mut entry).await {
        let why = std::iter::once(problem.detail).chain(problem.causes).collect::<Vec<_>>().join(": ");
        entry.outcome = Judgement::Inconclusive;
        entry.lost = Some(why);
    }
    entry
}

/// One of which nothing is known.
pub(super) fn lost(name: &Name, why: &str) -> Entry {
    Entry {
        name: name.clone(),
        outcome: Judgement::Inconclusive,
        lost: Some(why.to_owned()),
        sandbox: None,
        exit: None,
        verdict: None,
        checks_passed: 0,
        duration_ms: 0,
        files: None,
        lines: None,
        score: None,
        peak_memory: None,
        log: None,
        tail: Vec::new(),
    }
}

async fn compete(field: &Arc<Field>, candidate: &Candidate, entry: &mut Entry) -> Result<(), Problem> {
    field.moved(&candidate.name, Phase::Waiting);
    let Some(sandbox) = attempt(field, candidate, entry).await? else { return Ok(()) };
    field.moved(&candidate.name, Phase::Checking { ended: 0, failed: 0 });
    let judging =
        Judging { actor: field.actor, room: Arc::clone(&field.room), notes: notes(field, candidate) };
    let verdict = field.lanes.judge(&sandbox, &field.checks, judging).await?;
    entry.outcome = verdict.outcome;
    entry.verdict = Some(verdict.id);
    let took = verdict.checks.iter().flat_map(|check| &check.runs).map(|run| run.duration_ms);
    entry.duration_ms += took.sum::<u64>();
    let passed = |check: &&CheckResult| check.outcome == Judgement::Pass;
    entry.checks_passed = verdict.checks.iter().filter(passed).count() as u64;
    let worst = verdict.checks.iter().filter(|check| check.outcome != Judgement::Pass);
    entry.lost = None;
    if let Some(check) = worst.min_by_key(|check| check.outcome != Judgement::Fail) {
        entry.lost = Some(explain(check));
        entry.tail.clone_from(&check.tail);
        let log = check.runs.first().and_then(|run| run.log.clone());
        entry.log = log.or(entry.log.take());
    }
    measure(field, &sandbox, entry).await?;
    if verdict.outcome == Judgement::Pass
        && let Some(line) = &field.score
    {
        field.moved(&candidate.name, Phase::Scoring);
        score(field, line, verdict.snapshot, entry).await?;
    }
    Ok(())
}

/// Does what the candidate does, in a copy of the state. `None`: it failed, and the entry says why.
async fn attempt(
    field: &Arc<Field>,
    candidate: &Candidate,
    entry: &mut Entry,
) -> Result<Option<Sandbox>, Problem> {
    let (exec, input) = match &candidate.attempt {
        Attempt::Sandbox { sandbox } => {
            let sandbox = field.lanes.control.get(sandbox).await?;
            entry.sandbox = Some(sandbox.id);
            return Ok(Some(sandbox));
        }
        Attempt::Command { run } => (line(field, run), None),
        Attempt::Patch { patch } => {
            let exec = line(field, "exec git apply --whitespace=nowarn -");
            (ExecRequest { stdin: true, ..exec }, Some(patch.0.as_slice()))
        }
        // The branch stays where it is: only what is tracked becomes what it is there.
        Attempt::Ref { commit } => {
            let git = ["git", "read-tree", "-u", "--reset"].map(Text::from);
            let argv = git.into_iter().chain([Text::from(format!("{commit}^{{tree}}").as_str())]);
            (ExecRequest { argv: argv.collect(), ..line(field, "") }, None)
        }
    };
    let snapshot =
        field.snapshot.ok_or_else(|| Problem::new(Code::Internal, "there is no state to start from"))?;
    let permit = field.room.acquire().await.expect("never closed");
    let labels = [("race", field.id.to_string()), ("candidate", candidate.name.to_string())];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let (limits, net) = (field.limits.clone(), field.net.clone());
    let request =
        RestoreRequest { name: None, labels, limits, net, actor: field.actor, ..RestoreRequest::default() };
    let sandbox = field.lanes.control.restore(&snapshot.to_string(), request).await?;
    field.made(&sandbox);
    entry.sandbox = Some(sandbox.id);
    field.moved(&candidate.name, Phase::Running);
    let conversation = field.lanes.control.exec(&sandbox.id.to_string(), exec).await?;
    let log = field.logs.join(format!("{}.log", candidate.name));
    let Ran { exit, duration, written } = hear(conversation, input, field.timeout, &log).await?;
    drop(permit);
    entry.peak_memory = peak_memory(field, &sandbox).await;
    entry.duration_ms = duration.as_millis() as u64;
    entry.log = written.log.map(Text::from);
    entry.outcome = command_judgement(&exit);
    entry.exit = Some(exit.clone());
    if entry.outcome == Judgement::Pass {
        return Ok(Some(sandbox));
    }
    entry.lost = Some(format!("its command {}{}", ended(&exit, field.timeout), last(&written.tail)));
    entry.tail = written.tail;
    Ok(None)
}

/// A sandbox that ended with its command cannot be asked any more; that alone loses nobody the race.
async fn peak_memory(field: &Field, sandbox: &Sandbox) -> Option<Size> {
    field.lanes.control.peak_memory(sandbox).await.unwrap_or_else(|problem| {
        tracing::debug!(sandbox = %sandbox.id, problem = problem.detail, "nobody knows how much memory it used");
        None
    })
}

fn line(field: &Field, run: &str) -> ExecRequest {
    shell(run, field.workspace.as_ref(), Some(field.timeout))
}

fn command_judgement(exit: &Outcome) -> Judgement {
    match exit {
        Outcome::Exited { code: 0 } => Judgement::Pass,
        Outcome::Exited { .. } | Outcome::Signaled { .. } => Judgement::Fail,
        Outcome::TimedOut
        | Outcome::OutputLimit
        | Outcome::OutOfMemory { .. }
        | Outcome::NotStarted { .. }
        | Outcome::SandboxEnded { .. } => Judgement::Inconclusive,
    }
}

fn ended(exit: &Outcome, timeout: Span) -> String {
    match exit {
        Outcome::Exited { code } => format!("exited with {code}"),
        Outcome::Signaled { signal } => format!("was killed by signal {signal}"),
        Outcome::TimedOut => format!("took longer than {timeout}"),
        Outcome::OutputLimit => "wrote too much".to_owned(),
        Outcome::OutOfMemory { limit, .. } => format!("needed more memory than {limit}"),
        Outcome::NotStarted { reason, .. } => format!("could not be started: {reason}"),
        Outcome::SandboxEnded { reason } => format!("did not end: {reason}"),
    }
}

fn explain(check: &CheckResult) -> String {
    let how = match check.outcome {
        Judgement::Fail => "failed",
        Judgement::Inconclusive | Judgement::Pass => "is inconclusive",
    };
    let reason = check.why().map(|why| format!(": {why}")).unwrap_or_default();
    format!("`{}` {how}{reason}{}", check.name, last(&check.tail))
}

/// The last thing that was said, if anything was.
fn last(tail: &[String]) -> String {
    let last = tail.iter().rev().find(|line| !line.trim().is_empty());
    last.map(|line| format!(" ({})", line.trim())).unwrap_or_default()
}

/// Files and lines of the workspace that are not as they were. What git ignores counts for nothing.
async fn measure(field: &Field, sandbox: &Sandbox, entry: &mut Entry) -> Result<(), Problem> {
    // One that was there already did not start where the others did.
    let from = field.snapshot.filter(|_| entry.exit.is_some()).map(|snapshot| snapshot.to_string());
    let control = &field.lanes.control;
    let diff = control.diff(&sandbox.id.to_string(), from.as_deref(), Vec::new(), Detail::Lines).await?;
    let changed = || diff.workspace.iter().filter(|change| !change.ignored);
    let mut lines = Lines::default();
    for counted in changed().filter_map(|change| change.lines) {
        lines.added += counted.added;
        lines.removed += counted.removed;
    }
    entry.files = Some(changed().count() as u64);
    entry.lines = Some(lines);
    Ok(())
}

/// The number on the last line that the command writes.
async fn score(field: &Field, run: &str, snapshot: SnapshotId, entry: &mut Entry) -> Result<(), Problem> {
    let _permit = field.room.acquire().await.expect("never closed");
    let (throwaway, conversation) =
        field.lanes.control.run_on(snapshot, line(field, run), field.actor).await?;
    let log = field.logs.join(format!("{}.score.log", entry.name));
    let ran = hear(conversation, None, field.timeout, &log).await?;
    if let Err(problem) = throwaway.dismiss().await {
        tracing::warn!(error = %problem, "failed to remove the sandbox of a score");
    }
    let text = String::from_utf8_lossy(&ran.written.stdout).into_owned();
    let number = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let number = number.and_then(|line| line.parse::<f64>().ok()).filter(|number| number.is_finite());
    match (&ran.exit, number) {
        (Outcome::Exited { code: 0 }, Some(number)) => entry.score = Some(number),
        (Outcome::Exited { code: 0 }, None) => {
            entry.lost = Some(format!("its score is not a number{}", last(&ran.written.tail)));
        }
        (exit, _) => {
            let how = ended(exit, field.timeout);
            entry.lost =
                Some(format!("its score is not known: the command {how}{}", last(&ran.written.tail)));
        }
    }
    Ok(())
}

/// Tells how many checks have ended.
fn notes(field: &Arc<Field>, candidate: &Candidate) -> Notes {
    let (field, name) = (Arc::clone(field), candidate.name.clone());
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    Arc::new(move |note| match note {
        Note::Sealed { .. } | Note::Started { .. } => {}
        Note::Ended(result) => {
            let [ended, failed] = &counts;
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            let is_bad = u64::from(result.outcome != Judgement::Pass);
            let failed = failed.fetch_add(is_bad, Ordering::Relaxed) + is_bad;
            field.moved(&name, Phase::Checking { ended, failed });
        }
    })
}
