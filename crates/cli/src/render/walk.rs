//! `zeno promote`, `zeno promotions`, `zeno undo`: how far something went out.

use jiff::Timestamp;
use model::Name;
use model::config::{Approval, Stage};
use model::promotion::{Errand, Journey, Promoted, PromotionState, Stopped, Task, Visit, VisitState, Walked};
use model::verdict::Judgement;

use super::paint::Paint;
use super::promotion::{promoted, row, summary};
use super::table::table;
use super::words::{age, clean, took};
use crate::args::which::Which;

/// All that promoting did, and what is left to do.
pub(crate) fn walked(walked: &Walked, sandbox: &Which, to: Option<&Name>, paint: Paint) -> String {
    let Walked { promoted: done, stages, ahead, stopped } = walked;
    let mut text = promoted(done, sandbox, paint);
    let telling: Vec<_> = stages.iter().filter(|visit| is_telling(visit)).collect();
    let width = telling.iter().map(|visit| visit.stage.as_str().len()).max().unwrap_or(0);
    for visit in &telling {
        text += &format!("{}\n", line(visit, width, paint));
    }
    for visit in &telling {
        text += &last_words(visit, paint);
    }
    let target = target(done, sandbox);
    let to = to.map(|to| format!(" --to {to}")).unwrap_or_default();
    text + &match stopped {
        Some(Stopped::Failed { stage }) => {
            let state = stages.iter().rfind(|visit| visit.stage == *stage).map(|visit| visit.state);
            format!("{}\n", fate(stage, state))
                + &format!("  try: mend it, then zeno promote {sandbox}{to}\n")
        }
        Some(Stopped::Approval { stage }) => format!(
            "stopped before {stage}: a person has to agree\n  try: at a terminal: zeno promote {target}{to}\n"
        ),
        None if !ahead.is_empty() && !to.is_empty() => way(ahead, done),
        None => String::new(),
    }
}

/// Whether there is more to say of it than that it is there.
pub(crate) fn is_telling(visit: &Visit) -> bool {
    visit.stage.as_str() != Stage::LOCAL || visit.state != VisitState::Passed || !visit.errands.is_empty()
}

/// One stage, as soon as it is through.
pub(crate) fn line(visit: &Visit, width: usize, paint: Paint) -> String {
    let why = visit.why.as_deref().map(|why| format!("  {}", clean(why))).unwrap_or_default();
    let state = painted(visit.state, &format!("{:15}", visit.state), paint);
    let time = took(visit.duration_ms);
    format!("{:width$}  {state}  {time:>5}{why}", visit.stage.as_str()).trim_end().to_owned()
}

/// Every promotion, and below it the stages that it went out to.
pub(crate) fn list(journeys: &[Journey], now: Timestamp, paint: Paint) -> String {
    let rows: Vec<_> = journeys.iter().map(|journey| row(&journey.promotion, now)).collect();
    let lines = table(["PROMOTION", "STATE", "AGE", "BY", "SANDBOX", "WHAT"], &rows, paint);
    let mut lines = lines.lines();
    let mut text = lines.next().map(|header| format!("{header}\n")).unwrap_or_default();
    for (journey, line) in journeys.iter().zip(lines) {
        text += &format!("{line}\n{}", below(journey, now, paint));
    }
    text
}

pub(crate) fn undone(journey: &Journey, paint: Paint) -> String {
    let Journey { promotion, stages } = journey;
    let id = promotion.id;
    if promotion.state == PromotionState::Undone {
        // One that did not pass was taken back at once.
        let back = stages.iter().filter(|visit| visit.stage.as_str() != Stage::LOCAL && visit.why.is_none());
        let back = back.filter(|visit| visit.state == VisitState::RolledBack);
        let names: Vec<_> = back.map(|visit| visit.stage.to_string()).collect();
        let names =
            if names.is_empty() { String::new() } else { format!(", taken back: {}", names.join(", ")) };
        return format!("undone: {id} ({}){names}\n", summary(promotion.counts, &promotion.commits));
    }
    let failed = stages.iter().filter(|visit| visit.state == VisitState::RollbackFailed);
    let mut text = String::new();
    for visit in failed {
        let rollback = visit.errands.iter().rfind(|errand| errand.task == Task::Rollback);
        text += &rollback.map(|rollback| tail(rollback, paint)).unwrap_or_default();
        text += &format!("{} could not be taken back, so nothing was undone here\n", visit.stage);
        text += &format!(
            "  try: take it back there yourself, then zeno undo {id} --leave-stage {}\n",
            visit.stage
        );
    }
    text
}

/// The stages of a promotion, under its row; nothing where it only went here.
fn below(journey: &Journey, now: Timestamp, paint: Paint) -> String {
    if !journey.stages.iter().any(is_telling) {
        return String::new();
    }
    let width = journey.stages.iter().map(|visit| visit.stage.as_str().len()).max().unwrap_or(0);
    let lines = journey.stages.iter().map(|visit| {
        let ago = age(visit.began, now);
        let why = visit.why.as_deref().map(|why| format!("  {}", clean(why))).unwrap_or_default();
        let state = painted(visit.state, &format!("{:15}", visit.state), paint);
        let stage = visit.stage.as_str();
        format!("  {stage:width$}  {state}  {ago:>3} ago  {:>5}{why}\n", took(visit.duration_ms))
    });
    let mut text: String = lines.collect();
    if journey.promotion.state == PromotionState::Applied
        && let Some(cut) = journey.stages.iter().rfind(|visit| visit.state == VisitState::Interrupted)
    {
        let (id, stage) = (journey.promotion.id, &cut.stage);
        text += &format!("  try: take {stage} back and enter it again: zeno promote {id} --to {stage}\n");
        text += &format!("  try: take all of it back: zeno undo {id}\n");
    }
    text
}

fn painted(state: VisitState, text: &str, paint: Paint) -> String {
    match state {
        VisitState::Passed => paint.green(text),
        VisitState::Running | VisitState::RolledBack | VisitState::Interrupted => paint.yellow(text),
        VisitState::Failed | VisitState::RollbackFailed => paint.red(text),
    }
}

/// What was written by those that did not pass.
fn last_words(visit: &Visit, paint: Paint) -> String {
    visit
        .errands
        .iter()
        .filter(|errand| errand.outcome != Judgement::Pass)
        .map(|errand| tail(errand, paint))
        .collect()
}

fn tail(errand: &Errand, paint: Paint) -> String {
    let log = errand.log.as_ref().map(|log| format!(" ({})", clean(&log.display()))).unwrap_or_default();
    let mut text = format!("{}\n", paint.dim(&format!("last words of {}{log}", errand.task)));
    for line in &errand.tail {
        text += &format!("  {}\n", clean(line));
    }
    text
}

/// What became of a stage that did not pass.
fn fate(stage: &Name, state: Option<VisitState>) -> String {
    let back = match state {
        Some(VisitState::RolledBack) if stage.as_str() == Stage::LOCAL => "what was applied is undone",
        Some(VisitState::RolledBack) => "its rollback has taken it back",
        Some(VisitState::RollbackFailed) if stage.as_str() == Stage::LOCAL => "and could not be undone",
        Some(VisitState::RollbackFailed) => "and its rollback failed: look at it yourself",
        _ => "and it has no rollback: look at it yourself",
    };
    let further = "nothing after it was touched";
    format!("{stage} did not pass: {back}, {further}")
}

/// What would be walked.
fn way(ahead: &[Stage], done: &Promoted) -> String {
    let names: Vec<_> = ahead
        .iter()
        .map(|stage| match stage.approval {
            Some(Approval::Human) => format!("{} (a person has to agree)", stage.name),
            None => stage.name.to_string(),
        })
        .collect();
    let names = names.join(", ");
    match done {
        Promoted::Planned { assessment, .. } if assessment.counts().is_nothing() => {
            format!("so none of these stages was entered: {names}\n")
        }
        Promoted::Blocked { .. } => format!("none of these stages was entered: {names}\n"),
        Promoted::Planned { .. } | Promoted::Done { .. } | Promoted::Already { .. } => {
            format!("stages ahead: {names}\n")
        }
    }
}

/// What goes on is the promotion, where there is one: its sandbox may be gone by then.
fn target(done: &Promoted, sandbox: &Which) -> String {
    match done {
        Promoted::Done { promotion, .. } | Promoted::Already { promotion } => promotion.id.to_string(),
        Promoted::Planned { .. } | Promoted::Blocked { .. } => sandbox.to_string(),
    }
}

#[cfg(test)]
mod tests;
