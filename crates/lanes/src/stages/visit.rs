//! Walking: one stage after the other is entered, runs its commands, and is taken back if it does not pass.
//!
//! All of it is written down as it happens, so that whoever comes after a crash knows how far it was.

use std::path::PathBuf;
use std::time::Instant;

use engine::errand::Order;
use jiff::Timestamp;
use model::Problem;
use model::config::{Check, Stage};
use model::exec::{Text, Variable};
use model::promotion::{
    Errand, PromoteStep, Promoted, Promotion, Stopped, Task, UndoRequest, Visit, VisitState, Walk, Walked,
};
use model::units::Span;
use model::verdict::Judgement;

use super::errand::{self, Heard};
use super::{Onward, way};
use crate::judge::{judge, not_run};
use crate::verify::tell;
use crate::{Lanes, Steps};

/// A promotion on its way. Dropped half-way, the stage it is in counts as interrupted.
pub(super) struct Walking<'a> {
    pub(super) lanes: &'a Lanes,
    pub(super) promotion: Promotion,
    pub(super) walk: Walk,
    pub(super) onward: &'a Onward,
    pub(super) steps: &'a Steps<PromoteStep>,
}

impl Walking<'_> {
    /// Goes on as far as is asked for and as it passes.
    pub(super) async fn go(mut self, promoted: Promoted) -> Result<Walked, Problem> {
        let to = self.onward.to.as_ref();
        let (before, mut stopped) = (self.walk.visits.clone(), None);
        for stage in way::ahead(&self.walk, to)? {
            // What is applied is checked in any case; nothing further is begun for nobody.
            if self.steps.is_closed() && !stage.is_local() {
                break;
            }
            if !way::may_enter(&stage, self.onward.actor, &self.onward.approved) {
                stopped = Some(Stopped::Approval { stage: stage.name });
                break;
            }
            if self.enter(&stage).await? != VisitState::Passed {
                stopped = Some(Stopped::Failed { stage: stage.name });
                break;
            }
        }
        let promoted = match promoted {
            Promoted::Done { promotion: _, assessment } => {
                Promoted::Done { promotion: Box::new(self.promotion), assessment }
            }
            Promoted::Already { promotion: _ } => Promoted::Already { promotion: Box::new(self.promotion) },
            planned @ (Promoted::Planned { .. } | Promoted::Blocked { .. }) => planned,
        };
        let ahead = way::ahead(&self.walk, to)?;
        let visits = self.walk.visits.into_iter().enumerate();
        let touched = visits.filter(|(at, visit)| before.get(*at) != Some(visit));
        Ok(Walked { promoted, stages: touched.map(|(_, visit)| visit).collect(), ahead, stopped })
    }

    async fn enter(&mut self, stage: &Stage) -> Result<VisitState, Problem> {
        if !stage.is_local() && way::state(&self.walk, &stage.name) == Some(VisitState::Interrupted) {
            let taken_back = self.take_back(stage).await?;
            if taken_back == VisitState::RollbackFailed {
                return Ok(taken_back);
            }
        }
        let visit = Visit {
            stage: stage.name.clone(),
            state: VisitState::Running,
            why: None,
            actor: self.onward.actor,
            began: Timestamp::now(),
            duration_ms: 0,
            errands: Vec::new(),
        };
        self.walk.visits.push(visit);
        self.write().await?;
        tell(self.steps, PromoteStep::Entered { stage: stage.name.clone() });
        let at = self.walk.visits.len() - 1;
        match self.perform(stage, at).await? {
            None => self.leave(at, VisitState::Passed).await?,
            Some(why) => {
                self.walk.visits[at].why = Some(why);
                self.write().await?;
                let state = if stage.is_local() {
                    self.undo_local(at).await
                } else {
                    self.roll_back(stage, at).await?
                };
                self.leave(at, state).await?;
            }
        }
        Ok(self.walk.visits[at].state)
    }

    /// What a stage does. `Some`: why it does not pass.
    async fn perform(&mut self, stage: &Stage, at: usize) -> Result<Option<String>, Problem> {
        let mut tasks = Vec::new();
        if let Some(run) = &stage.run {
            let check = Check { timeout: Some(patience(stage)), ..Check::new(stage.name.clone(), run) };
            tasks.push((Task::Run, check));
        }
        let checks = way::checks(&self.walk.plan, stage).into_iter();
        tasks.extend(checks.map(|check| (Task::Check { check: check.name.clone() }, check)));
        for (task, check) in tasks {
            if self.steps.is_closed() {
                return Ok(Some(LEFT.to_owned()));
            }
            let (outcome, why) = self.errand(stage, at, task.clone(), &check).await?;
            match outcome {
                Judgement::Pass => {}
                Judgement::Fail => return Ok(Some(format!("`{task}` failed: {}", why.unwrap_or_default()))),
                Judgement::Inconclusive => {
                    return Ok(Some(format!("`{task}` did not pass: {}", why.unwrap_or_default())));
                }
            }
        }
        Ok(None)
    }

    /// Takes a stage back that was entered before.
    pub(super) async fn take_back(&mut self, stage: &Stage) -> Result<VisitState, Problem> {
        let at = self.walk.visits.iter().rposition(|visit| visit.stage == stage.name);
        let Some(at) = at else { return Ok(VisitState::RolledBack) };
        self.walk.visits[at].state = VisitState::Running;
        self.write().await?;
        let state = self.roll_back(stage, at).await?;
        self.leave(at, state).await?;
        Ok(state)
    }

    async fn roll_back(&mut self, stage: &Stage, at: usize) -> Result<VisitState, Problem> {
        let Some(line) = &stage.rollback else { return Ok(VisitState::Failed) };
        let check = Check { timeout: Some(patience(stage)), ..Check::new(stage.name.clone(), line) };
        let (outcome, _) = self.errand(stage, at, Task::Rollback, &check).await?;
        Ok(match outcome {
            Judgement::Pass => VisitState::RolledBack,
            Judgement::Fail | Judgement::Inconclusive => VisitState::RollbackFailed,
        })
    }

    /// What the checks of `local` did not like is taken out of the worktree again.
    async fn undo_local(&mut self, at: usize) -> VisitState {
        let id = self.promotion.id.to_string();
        match self.lanes.control.undo(Some(&id), UndoRequest::default()).await {
            Ok(undone) => {
                self.promotion = undone;
                VisitState::RolledBack
            }
            Err(problem) => {
                let said =
                    std::iter::once(problem.detail).chain(problem.causes).collect::<Vec<_>>().join(": ");
                let why = self.walk.visits[at].why.take().unwrap_or_default();
                self.walk.visits[at].why = Some(format!("{why}; it could not be undone: {said}"));
                VisitState::RollbackFailed
            }
        }
    }

    /// Runs one command and writes down how it ended.
    async fn errand(
        &mut self,
        stage: &Stage,
        at: usize,
        task: Task,
        check: &Check,
    ) -> Result<(Judgement, Option<String>), Problem> {
        tell(self.steps, PromoteStep::Started { stage: stage.name.clone(), task: task.clone() });
        let began = Instant::now();
        let left = async {
            match task {
                Task::Run | Task::Check { .. } => self.steps.closed().await,
                // Whoever leaves wants it to be over, not half taken back.
                Task::Rollback => std::future::pending().await,
            }
        };
        let timeout = check.timeout.unwrap_or(Check::TIMEOUT);
        let log = self.log(stage, at, &task);
        let ran = errand::run(self.order(stage, &check.run), timeout, &log, left).await;
        let errand = match ran {
            Ok((ran, heard)) => {
                let (outcome, reason) = judge(check, &ran);
                let why = match heard {
                    Heard::Left => Some(LEFT.to_owned()),
                    Heard::Out => reason.map(|reason| reason.told(Some(&ran.exit))),
                };
                let passed = outcome == Judgement::Pass;
                Errand {
                    task,
                    line: check.run.clone(),
                    outcome,
                    why,
                    exit: Some(ran.exit),
                    duration_ms: ran.duration.as_millis() as u64,
                    log: ran.written.log.map(Text::from),
                    tail: if passed { Vec::new() } else { ran.written.tail },
                }
            }
            Err(error) => {
                let problem = Problem::from(error);
                let said =
                    std::iter::once(problem.detail).chain(problem.causes).collect::<Vec<_>>().join(": ");
                let (outcome, reason) = not_run(said);
                Errand {
                    task,
                    line: check.run.clone(),
                    outcome,
                    why: reason.map(|reason| reason.told(None)),
                    exit: None,
                    duration_ms: began.elapsed().as_millis() as u64,
                    log: None,
                    tail: Vec::new(),
                }
            }
        };
        let said = (errand.outcome, errand.why.clone());
        let visit = &mut self.walk.visits[at];
        visit.duration_ms += errand.duration_ms;
        visit.errands.push(errand.clone());
        self.write().await?;
        tell(self.steps, PromoteStep::Ended { stage: stage.name.clone(), errand: Box::new(errand) });
        Ok(said)
    }

    async fn leave(&mut self, at: usize, state: VisitState) -> Result<(), Problem> {
        self.walk.visits[at].state = state;
        self.write().await?;
        tell(self.steps, PromoteStep::Left { visit: Box::new(self.walk.visits[at].clone()) });
        Ok(())
    }

    async fn write(&self) -> Result<(), Problem> {
        self.lanes.control.write_walk(&self.walk).await
    }

    fn order(&self, stage: &Stage, line: &str) -> Order {
        let context = &self.onward.context;
        let variable = |name: &str, value: &str| Variable { name: name.into(), value: value.into() };
        let own = [
            variable("ZENO_STAGE", stage.name.as_str()),
            variable("ZENO_PROMOTION", &self.promotion.id.to_string()),
            variable("ZENO_SANDBOX", &self.promotion.sandbox.to_string()),
        ];
        Order {
            line: line.to_owned(),
            cwd: self.promotion.root.clone().unwrap_or_else(|| "/".into()),
            env: context.env.iter().cloned().chain(own).collect(),
            umask: context.umask,
        }
    }

    fn log(&self, stage: &Stage, at: usize, task: &Task) -> PathBuf {
        let folder = self.lanes.stages.folder(self.promotion.id);
        let again = self.walk.visits[at].errands.iter().filter(|errand| errand.task == *task).count();
        let again = if again == 0 { String::new() } else { format!(".{}", again + 1) };
        let task = match task {
            Task::Run | Task::Rollback => task.to_string(),
            Task::Check { check } => format!("check.{check}"),
        };
        folder.join(format!("{}-{}.{task}{again}.log", at + 1, stage.name))
    }
}

fn patience(stage: &Stage) -> Span {
    stage.timeout.unwrap_or(Stage::TIMEOUT)
}

const LEFT: &str = "nobody waited for it any more";
