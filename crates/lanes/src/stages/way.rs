//! Which stages come next, who may enter them, and what undoing has to take back. Decides and does nothing.

use std::collections::BTreeSet;

use control::config;
use model::Name;
use model::config::{Approval, Check, Checks, Config, Stage};
use model::promotion::{Plan, VisitState, Walk};
use model::sandbox::Actor;

/// The stages between here and there: from the first that has not passed to the one that is asked for, `local` if none is.
pub(super) fn ahead(walk: &Walk, to: Option<&Name>) -> Result<Vec<Stage>, NoStage> {
    let stages = &walk.plan.stages;
    let last = match to {
        Some(to) => {
            stages.iter().position(|stage| stage.name == *to).ok_or_else(|| NoStage::of(to, stages))?
        }
        None => 0,
    };
    let passed = |stage: &&Stage| state(walk, &stage.name) == Some(VisitState::Passed);
    let first = stages.iter().take_while(passed).count();
    Ok(stages.get(first..=last).map(<[Stage]>::to_vec).unwrap_or_default())
}

/// What became of a stage when it was last entered.
pub(super) fn state(walk: &Walk, stage: &Name) -> Option<VisitState> {
    walk.visits.iter().rfind(|visit| visit.stage == *stage).map(|visit| visit.state)
}

/// Only a person agrees to what asks for one.
pub(super) fn may_enter(stage: &Stage, actor: Actor, approved: &BTreeSet<Name>) -> bool {
    match stage.approval {
        None => true,
        Some(Approval::Human) => actor == Actor::Adm && approved.contains(&stage.name),
    }
}

/// What a stage has checked, in an order in which whatever is needed comes first.
pub(super) fn checks(plan: &Plan, stage: &Stage) -> Vec<Check> {
    if stage.checks.is_empty() {
        return Vec::new();
    }
    let names: Vec<_> = stage.checks.iter().cloned().collect();
    let config = Config { checks: Checks(plan.checks.clone()), ..Config::default() };
    let mut waiting = config::choose(&config, &names).expect("looked at when the file was read");
    let mut ordered: Vec<Check> = Vec::new();
    let has = |ordered: &[Check], need: &Name| ordered.iter().any(|check| check.name == *need);
    while let Some(at) = waiting.iter().position(|check| check.needs.iter().all(|need| has(&ordered, need))) {
        ordered.push(waiting.remove(at));
    }
    ordered
}

/// The stages that have to be taken back before what is applied here is undone, the last one first.
pub(super) fn to_take_back(walk: &Walk, leave: &BTreeSet<Name>) -> Result<Vec<Stage>, NoWayBack> {
    let is_out = |stage: &&Stage| {
        !stage.is_local()
            && !leave.contains(&stage.name)
            && state(walk, &stage.name).is_some_and(VisitState::is_out)
    };
    let out: Vec<_> = walk.plan.stages.iter().filter(is_out).rev().cloned().collect();
    let without: Vec<_> =
        out.iter().filter(|stage| stage.rollback.is_none()).map(|stage| stage.name.clone()).collect();
    if without.is_empty() { Ok(out) } else { Err(NoWayBack { stages: without }) }
}

/// Takes note of what the daemon before this one did not bring to its end. `false`: there was nothing.
pub(super) fn interrupt(walk: &mut Walk) -> bool {
    let running = walk.visits.iter_mut().filter(|visit| visit.state == VisitState::Running);
    let interrupted = running.map(|visit| {
        visit.state = VisitState::Interrupted;
        visit.why = Some("zeno's daemon ended in the middle of it".to_owned());
    });
    interrupted.count() > 0
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no stage `{name}`")]
pub(super) struct NoStage {
    name: Name,
    pub(super) known: Vec<Name>,
}

impl NoStage {
    fn of(name: &Name, stages: &[Stage]) -> Self {
        Self { name: name.clone(), known: stages.iter().map(|stage| stage.name.clone()).collect() }
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it went out to {}, and nothing is declared that takes it back", listed(.stages))]
pub(super) struct NoWayBack {
    pub(super) stages: Vec<Name>,
}

fn listed(names: &[Name]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
