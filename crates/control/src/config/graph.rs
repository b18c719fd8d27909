//! What holds between the parts of the file: names, and who needs whom.

use std::collections::{BTreeMap, BTreeSet};

use model::Name;
use model::config::{Check, Config, Stage};

/// What makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum BadGraph {
    #[error("two checks are called `{name}`")]
    SameCheck { name: Name },
    #[error("the check `{check}` needs `{name}`, which is none of the checks")]
    UnknownNeed { check: Name, name: Name, known: Vec<Name> },
    #[error("checks need each other in a circle: {}", circle(.path))]
    Circle { path: Vec<Name> },
    #[error("`matches` of the check `{check}` is not a regular expression")]
    Pattern { check: Name, source: regex::Error },
    #[error("the check `{check}` has nothing to run")]
    Empty { check: Name },
    #[error("two stages are called `{name}`")]
    SameStage { name: Name },
    #[error("the stage `{stage}` asks for the check `{name}`, which is none of the checks")]
    UnknownCheck { stage: Name, name: Name, known: Vec<Name> },
    #[error("the stage `{stage}` has no `run`: only `local` goes without")]
    NoRun { stage: Name },
    #[error("the stage `local` has a `run`: it applies the change to the worktree and nothing else")]
    LocalRuns { stage: Name },
    #[error("the stage `local` has a `rollback`: what it applied is undone by itself")]
    LocalRollsBack { stage: Name },
    #[error("the stage `local` comes after another: it is always the first")]
    LocalLate { stage: Name },
    #[error("there is no check `{name}` in the workspace's zeno.yaml")]
    NotDeclared { name: Name, known: Vec<Name> },
}

impl BadGraph {
    /// The name to look for in the file.
    pub(super) fn word(&self) -> &Name {
        match self {
            Self::SameCheck { name } | Self::SameStage { name } | Self::NotDeclared { name, .. } => name,
            Self::UnknownNeed { name, .. } | Self::UnknownCheck { name, .. } => name,
            Self::Circle { path } => &path[0],
            Self::Pattern { check, .. } | Self::Empty { check } => check,
            Self::NoRun { stage }
            | Self::LocalRuns { stage }
            | Self::LocalRollsBack { stage }
            | Self::LocalLate { stage } => stage,
        }
    }

    /// What would have been accepted.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownNeed { known, .. }
            | Self::UnknownCheck { known, .. }
            | Self::NotDeclared { known, .. } => {
                let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
                Some(if known.is_empty() {
                    "no checks are declared".to_owned()
                } else {
                    format!("the checks are {}", known.join(", "))
                })
            }
            Self::Circle { .. } => Some("leave out one of these `needs`".to_owned()),
            Self::SameCheck { .. }
            | Self::Pattern { .. }
            | Self::Empty { .. }
            | Self::SameStage { .. }
            | Self::NoRun { .. }
            | Self::LocalRuns { .. }
            | Self::LocalRollsBack { .. }
            | Self::LocalLate { .. } => None,
        }
    }
}

pub(super) fn check(config: &Config) -> Result<(), BadGraph> {
    let mut by_name: BTreeMap<&Name, &Check> = BTreeMap::new();
    for check in &config.checks.0 {
        if by_name.insert(&check.name, check).is_some() {
            return Err(BadGraph::SameCheck { name: check.name.clone() });
        }
    }
    let known = || config.checks.0.iter().map(|check| check.name.clone()).collect();
    for check in &config.checks.0 {
        if check.run.trim().is_empty() {
            return Err(BadGraph::Empty { check: check.name.clone() });
        }
        for pattern in [&check.expects.stdout, &check.expects.stderr] {
            if let Some(matches) = &pattern.matches {
                regex::bytes::Regex::new(matches)
                    .map_err(|source| BadGraph::Pattern { check: check.name.clone(), source })?;
            }
        }
        if let Some(name) = check.needs.iter().find(|name| !by_name.contains_key(name)) {
            let (check, name) = (check.name.clone(), name.clone());
            return Err(BadGraph::UnknownNeed { check, name, known: known() });
        }
    }
    no_circle(&by_name)?;
    stages(&config.promotion.stages, &by_name, known)
}

fn stages(
    stages: &[Stage],
    checks: &BTreeMap<&Name, &Check>,
    known: impl Fn() -> Vec<Name>,
) -> Result<(), BadGraph> {
    let mut names = BTreeSet::new();
    for (at, stage) in stages.iter().enumerate() {
        let name = || stage.name.clone();
        if !names.insert(&stage.name) {
            return Err(BadGraph::SameStage { name: name() });
        }
        let runs = stage.run.as_ref().is_some_and(|run| !run.trim().is_empty());
        match stage.is_local() {
            true if runs => return Err(BadGraph::LocalRuns { stage: name() }),
            true if stage.rollback.is_some() => return Err(BadGraph::LocalRollsBack { stage: name() }),
            true if at > 0 => return Err(BadGraph::LocalLate { stage: name() }),
            false if !runs => return Err(BadGraph::NoRun { stage: name() }),
            true | false => {}
        }
        if let Some(unknown) = stage.checks.iter().find(|check| !checks.contains_key(check)) {
            return Err(BadGraph::UnknownCheck { stage: name(), name: unknown.clone(), known: known() });
        }
    }
    Ok(())
}

/// Walks the needs. What is on the way when it is met again is a circle.
fn no_circle(checks: &BTreeMap<&Name, &Check>) -> Result<(), BadGraph> {
    fn visit<'a>(
        check: &'a Check,
        checks: &BTreeMap<&'a Name, &'a Check>,
        done: &mut BTreeSet<&'a Name>,
        way: &mut Vec<&'a Name>,
    ) -> Result<(), BadGraph> {
        if done.contains(&check.name) {
            return Ok(());
        }
        if let Some(at) = way.iter().position(|name| **name == check.name) {
            let circle = way[at..].iter().copied().chain([&check.name]);
            return Err(BadGraph::Circle { path: circle.cloned().collect() });
        }
        way.push(&check.name);
        for need in &check.needs {
            visit(checks[need], checks, done, way)?;
        }
        way.pop();
        done.insert(&check.name);
        Ok(())
    }
    let mut done = BTreeSet::new();
    checks.values().try_for_each(|check| visit(check, checks, &mut done, &mut Vec::new()))
}

/// The checks of these names with all that they need, in the order of the file. No names: all.
pub fn choose(config: &Config, names: &[Name]) -> Result<Vec<Check>, BadGraph> {
    let all = &config.checks.0;
    if names.is_empty() {
        return Ok(all.clone());
    }
    let mut chosen = BTreeSet::new();
    let mut pending: Vec<&Name> = names.iter().collect();
    while let Some(name) = pending.pop() {
        let Some(check) = all.iter().find(|check| check.name == *name) else {
            let known = all.iter().map(|check| check.name.clone()).collect();
            return Err(BadGraph::NotDeclared { name: name.clone(), known });
        };
        if chosen.insert(&check.name) {
            pending.extend(&check.needs);
        }
    }
    Ok(all.iter().filter(|check| chosen.contains(&check.name)).cloned().collect())
}

fn circle(path: &[Name]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" -> ")
}
