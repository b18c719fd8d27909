//! What promoting means to whoever calls: the steps as they are told, and the questions on the way.

use model::PromotionId;
use model::problem::Exit;
use model::promotion::{
    AdvanceRequest, Assessment, Foretold, PromoteRequest, PromoteStep, Promoted, Stopped, Walked,
};
use model::sandbox::Actor;
use model::verdict::{Judgement, VerifyStep};
use server::client::ClientError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::verify;
use crate::api::{Api, Lines};
use crate::args::which::Which;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::progress::{Running, Waiting};
use crate::prompt;
use crate::render::{verdict as render_verdict, walk as render};
use crate::signal::SignalNumber;

/// What is to be promoted, or to go on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start<'a> {
    Sandbox(&'a Which),
    Promotion(PromotionId),
}

/// Promotes as far as is asked for, and asks a person where one has to agree. `None`: the user left.
pub(super) async fn walk(
    api: &Api,
    start: Start<'_>,
    mut request: PromoteRequest,
    invocation: &Invocation,
) -> Result<Option<Walked>, Failure> {
    let Some(mut walked) = once(api, start, &request, invocation).await? else { return Ok(None) };
    let may_ask = request.actor == Actor::Adm && !request.dry_run && prompt::is_possible(invocation.form);
    while let Some(Stopped::Approval { stage }) = &walked.stopped
        && may_ask
        && prompt::agrees(&format!("Go on to {stage}?")).await?
    {
        request.approved.insert(stage.clone());
        let start = promotion(&walked.promoted).map_or(start, Start::Promotion);
        let Some(next) = once(api, start, &request, invocation).await? else { return Ok(None) };
        walked = joined(walked, next);
    }
    Ok(Some(walked))
}

/// The exit code that tells it.
pub(super) fn exit(walked: &Walked) -> u8 {
    match (&walked.stopped, &walked.promoted) {
        (Some(Stopped::Failed { .. }), _) => Exit::Failed as u8,
        (Some(Stopped::Approval { .. }), _) => Exit::Refused as u8,
        (None, Promoted::Done { .. } | Promoted::Already { .. }) => DONE,
        (None, Promoted::Planned { gate: Some(Foretold::Closed { problem }), .. }) => {
            problem.code.exit() as u8
        }
        (None, Promoted::Planned { assessment, .. } | Promoted::Blocked { assessment }) => {
            exit_of(assessment)
        }
    }
}

/// The same of what was only looked at.
pub(super) fn exit_of(assessment: &Assessment) -> u8 {
    if !assessment.conflicts.is_empty() {
        Exit::Conflict as u8
    } else if !assessment.is_clear() {
        Exit::Refused as u8
    } else {
        DONE
    }
}

/// Of somebody who does not wait for the end.
pub(super) fn left() -> u8 {
    output::note(
        "checks that ran are ended, and a stage that was under way is taken back: zeno promotions\n",
    );
    128 + SignalNumber::INT.0.to_le_bytes()[0]
}

async fn once(
    api: &Api,
    start: Start<'_>,
    request: &PromoteRequest,
    invocation: &Invocation,
) -> Result<Option<Walked>, Failure> {
    // A question that was asked before has taken Ctrl-C from the system.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::Signals)?;
    let mut waiting = Waiting::begin(PROMOTING);
    let asked = async {
        match start {
            Start::Sandbox(which) => api.promote(which, request).await,
            Start::Promotion(id) => {
                let PromoteRequest { to, approved, context, dry_run, actor, .. } = request.clone();
                api.advance(id, &AdvanceRequest { to, approved, context, dry_run, actor }).await
            }
        }
    };
    let lines = tokio::select! {
        lines = waiting.watch(asked) => lines?,
        _ = interrupt.recv() => return Ok(None),
    };
    waiting.end();
    follow(lines, &mut interrupt, invocation).await
}

async fn follow(
    mut lines: Lines,
    interrupt: &mut Signal,
    invocation: &Invocation,
) -> Result<Option<Walked>, Failure> {
    let mut running = Running::begin(PROMOTING);
    loop {
        let line = tokio::select! {
            line = lines.next() => line?.ok_or(Failure::BrokenOff)?,
            _ = interrupt.recv() => return Ok(None),
        };
        match serde_json::from_slice(&line).map_err(Failure::Decode)? {
            PromoteStep::Waiting => running.now("waiting for another promotion of this folder"),
            PromoteStep::Judging { step: VerifyStep::Verdict { verdict } } => {
                running.now(PROMOTING);
                if verdict.outcome != Judgement::Pass && invocation.form == Form::People {
                    let text = render_verdict::verdict(&verdict, invocation.stderr_paint());
                    running.aside(|| output::note(&text));
                }
            }
            PromoteStep::Judging { step } => verify::show(&step, &mut running, invocation),
            PromoteStep::Applied { .. } => running.now("applied"),
            PromoteStep::Entered { stage } => running.now(stage.as_str()),
            PromoteStep::Started { stage, task } => running.now(&format!("{stage}: {task}")),
            PromoteStep::Ended { .. } => {}
            PromoteStep::Left { visit } if render::is_telling(&visit) => {
                running.line(&render::line(&visit, 0, invocation.stderr_paint()));
            }
            PromoteStep::Left { .. } => {}
            PromoteStep::Walked { walked } => return Ok(Some(*walked)),
            PromoteStep::Problem { problem } => return Err(ClientError::Problem(problem).into()),
        }
    }
}

fn promotion(promoted: &Promoted) -> Option<PromotionId> {
    match promoted {
        Promoted::Done { promotion, .. } | Promoted::Already { promotion } => Some(promotion.id),
        Promoted::Planned { .. } | Promoted::Blocked { .. } => None,
    }
}

/// The whole of a way that was walked in two pieces.
fn joined(first: Walked, next: Walked) -> Walked {
    let promoted = match (first.promoted, next.promoted) {
        (Promoted::Done { assessment, .. }, Promoted::Already { promotion }) => {
            Promoted::Done { promotion, assessment }
        }
        (_, next) => next,
    };
    let stages = first.stages.into_iter().chain(next.stages).collect();
    Walked { promoted, stages, ahead: next.ahead, stopped: next.stopped }
}

const PROMOTING: &str = "promoting";
