//! The gate before reality: where checks are declared, only a state on which they passed goes through.

use std::sync::Arc;

use control::{Gate, config};
use model::config::Check;
use model::promotion::{PromoteRequest, Promoted};
use model::snapshot::SnapshotReason;
use model::verdict::{Judgement, VerifyRequest};
use model::{Code, Problem, PromotionId, Sandbox, Verdict};

use crate::verify::{Judging, room};
use crate::{Lanes, Standing};

impl Lanes {
    /// Brings what a sandbox changed into reality, if its gate is open.
    pub(crate) async fn promote(
        &self,
        id: PromotionId,
        which: &str,
        request: PromoteRequest,
    ) -> Result<Promoted, Problem> {
        let gate = if request.dry_run { Gate::None } else { self.gate(which, &request).await? };
        self.control.promote(id, which, request, gate).await
    }

    async fn gate(&self, which: &str, request: &PromoteRequest) -> Result<Gate, Problem> {
        let sandbox = self.control.get(which).await?;
        let checks = self.asked(&sandbox, request).await?;
        if checks.is_empty() {
            return Ok(Gate::None);
        }
        if request.force {
            return Ok(Gate::Forced);
        }
        if !request.commands.is_empty() {
            let judging = Judging { actor: request.actor, room: room(None), notes: Arc::new(|_note| ()) };
            return passed(&self.judge(&sandbox, &checks, judging).await?, &sandbox);
        }
        let snapshot = self.control.seal_for(which, SnapshotReason::Verify, request.actor).await?;
        match self.standing(snapshot.id, &checks).await? {
            Standing::NoChecksDeclared => Ok(Gate::None),
            Standing::Passed(verdict) | Standing::Failed(verdict) => passed(&verdict, &sandbox),
            Standing::Missing => Err(closed(&sandbox, "its checks have not been run")),
            Standing::Void(_) => {
                Err(closed(&sandbox, "it, or what its checks ask, has changed since they were run"))
            }
        }
    }

    /// All that the workspace declares, and what is asked besides.
    async fn asked(&self, sandbox: &Sandbox, request: &PromoteRequest) -> Result<Vec<Check>, Problem> {
        let config = self.declared(sandbox.workspace.as_ref()).await?;
        let all = config::choose(&config, &[]).map_err(|bad| Problem::from_error(Code::BadRequest, &bad))?;
        if request.commands.is_empty() {
            return Ok(all);
        }
        let checks = all.into_iter().map(|check| check.name).collect();
        let wanted = VerifyRequest { checks, commands: request.commands.clone(), actor: request.actor };
        self.checks(sandbox.workspace.as_ref(), &wanted).await
    }
}

fn passed(verdict: &Verdict, sandbox: &Sandbox) -> Result<Gate, Problem> {
    let Verdict { id, digest, outcome, checks, .. } = verdict;
    match outcome {
        Judgement::Pass => Ok(Gate::Passed { digest: *digest, verdict: *id }),
        Judgement::Fail | Judgement::Inconclusive => {
            let bad = checks.iter().filter(|check| check.outcome != Judgement::Pass);
            let names: Vec<_> = bad.map(|check| format!("`{}`", check.name)).collect();
            Err(closed(sandbox, &format!("it did not pass {}", names.join(", "))))
        }
    }
}

fn closed(sandbox: &Sandbox, why: &str) -> Problem {
    let label = sandbox.name.as_ref().map_or_else(|| sandbox.id.to_string(), ToString::to_string);
    Problem::new(Code::Refused, format!("sandbox `{label}` cannot be promoted: {why}"))
        .hint(format!("run them: zeno verify {label}"))
        .hint("or promote it all the same, which is recorded: --force")
}
