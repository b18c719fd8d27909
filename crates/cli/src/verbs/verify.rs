//! `zeno verify`.

use model::Verdict;
use model::problem::Exit;
use model::verdict::{Judgement, VerifyRequest, VerifyStep};
use server::client::ClientError;

use crate::api::Lines;
use crate::args::verify::Verify;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::{Running, Waiting};
use crate::render::verdict as render;

pub(crate) async fn verify(typed: &Verify, invocation: &Invocation) -> Result<u8, Failure> {
    let request = VerifyRequest {
        checks: typed.checks.clone(),
        commands: typed.commands.clone(),
        actor: invocation.actor()?,
    };
    let api = invocation.api().await?;
    let lines = Waiting::begin("sealing the state").watch(api.verify(&typed.sandbox, &request)).await?;
    let verdict = follow(lines, invocation).await?;
    invocation.answer(&verdict, |paint| render::verdict(&verdict, paint))?;
    Ok(exit(verdict.outcome))
}

/// What a judgement is to whoever called.
pub(crate) fn exit(judgement: Judgement) -> u8 {
    match judgement {
        Judgement::Pass => DONE,
        Judgement::Fail | Judgement::Inconclusive => Exit::Failed as u8,
    }
}

/// Shows how far the checks are; what they came to is for whoever asked.
pub(super) fn show(step: &VerifyStep, running: &mut Running, invocation: &Invocation) {
    match step {
        VerifyStep::Sealed { checks, .. } => running.expect(checks.len()),
        VerifyStep::Started { check, .. } => running.started(check.as_str()),
        VerifyStep::Ended { result } => {
            running.ended(result.name.as_str(), &render::line(result, invocation.stderr_paint()));
        }
        VerifyStep::Verdict { .. } | VerifyStep::Problem { .. } => {}
    }
}

async fn follow(mut lines: Lines, invocation: &Invocation) -> Result<Verdict, Failure> {
    let mut running = Running::begin("waiting");
    while let Some(line) = lines.next().await? {
        match serde_json::from_slice(&line).map_err(Failure::Decode)? {
            VerifyStep::Verdict { verdict } => return Ok(*verdict),
            VerifyStep::Problem { problem } => return Err(ClientError::Problem(problem).into()),
            step => show(&step, &mut running, invocation),
        }
    }
    Err(Failure::BrokenOff)
}
