//! Whether a gate is open: what is known of a state under the checks that are declared now.

use control::Verdicts;
use model::config::Check;
use model::verdict::Judgement;
use model::{Digest, Problem, SandboxId, Verdict};

use crate::{Lanes, definition};

/// How a state stands. Only the first two open a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is asked of it.
    NoChecksDeclared,
    /// All checks passed on exactly this state.
    Passed(Box<Verdict>),
    /// It was never judged.
    Missing,
    /// Judged, and one of the checks failed or could not tell.
    Failed(Box<Verdict>),
    /// An earlier state of the same sandbox was judged, or this one by other checks. This was the last verdict.
    Void(Box<Verdict>),
}

impl Lanes {
    /// How a state of a sandbox stands under these checks.
    pub(crate) async fn standing(
        &self,
        sandbox: SandboxId,
        digest: Digest,
        checks: &[Check],
    ) -> Result<Standing, Problem> {
        let on_state = self.control.verdicts(Verdicts::On(digest)).await?;
        let of_sandbox = self.control.verdicts(Verdicts::Of(sandbox)).await?;
        Ok(stands(&on_state, of_sandbox, checks))
    }
}

/// Of several verdicts the last counts. One on more checks than are asked for counts as a whole.
fn stands(on_state: &[Verdict], mut of_sandbox: Vec<Verdict>, checks: &[Check]) -> Standing {
    if checks.is_empty() {
        return Standing::NoChecksDeclared;
    }
    let wanted: Vec<_> = checks.iter().map(definition).collect();
    let covers = |verdict: &&Verdict| {
        wanted.iter().all(|wanted| verdict.checks.iter().any(|result| result.definition == *wanted))
    };
    match on_state.iter().rfind(covers) {
        Some(verdict) => {
            let verdict = Box::new(verdict.clone());
            match verdict.outcome {
                Judgement::Pass => Standing::Passed(verdict),
                Judgement::Fail | Judgement::Inconclusive => Standing::Failed(verdict),
            }
        }
        None => match on_state.last().cloned().or_else(|| of_sandbox.pop()) {
            Some(verdict) => Standing::Void(Box::new(verdict)),
            None => Standing::Missing,
        },
    }
}

#[cfg(test)]
mod tests {
    use model::verdict::CheckResult;
    use model::{SnapshotId, VerdictId};

    use super::*;

    fn verdict(outcome: Judgement, checks: &[&Check]) -> Verdict {
        let result = |check: &&Check| CheckResult {
            name: check.name.clone(),
            run: check.run.clone(),
            definition: definition(check),
            outcome,
            reason: None,
            runs: Vec::new(),
            tail: Vec::new(),
        };
        Verdict {
            id: VerdictId::from_bits(1),
            outcome,
            sandbox: SandboxId::from_bits(1),
            sandbox_name: None,
            snapshot: SnapshotId::from_bits(1),
            digest: Digest([0; 32]),
            excluded: Vec::new(),
            checks: checks.iter().map(result).collect(),
            caveats: Vec::new(),
            actor: Default::default(),
            created: Default::default(),
            duration_ms: 0,
        }
    }

    #[test]
    fn only_a_pass_of_these_checks_on_this_state_counts() {
        use Judgement::{Fail, Inconclusive, Pass};
        let [unit, lint, other] = [("unit", "a"), ("lint", "b"), ("unit", "c")]
            .map(|(name, run)| Check::new(name.parse().unwrap(), run));
        let check = |on: &[Verdict], of: Vec<Verdict>, checks: &[Check], is: &str| {
            let stands = stands(on, of, checks);
            assert!(format!("{stands:?}").starts_with(is), "{stands:?}");
        };
        let both = [unit.clone(), lint.clone()];
        check(&[], vec![], &[], "NoChecksDeclared");
        check(&[], vec![], &both, "Missing");
        check(&[], vec![verdict(Pass, &[&unit, &lint])], &both, "Void");
        check(&[verdict(Pass, &[&unit, &lint])], vec![], &both, "Passed");
        check(&[verdict(Pass, &[&unit, &lint])], vec![], &both[..1], "Passed");
        check(&[verdict(Pass, &[&unit])], vec![], &both, "Void");
        check(&[verdict(Pass, &[&other, &lint])], vec![], &both, "Void");
        check(&[verdict(Inconclusive, &[&unit])], vec![], &both[..1], "Failed");
        let (good, bad) = (verdict(Pass, &[&unit]), verdict(Fail, &[&unit]));
        check(&[good.clone(), bad.clone()], vec![], &both[..1], "Failed");
        check(&[bad, good], vec![], &both[..1], "Passed");
    }
}
