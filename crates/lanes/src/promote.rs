//! The gate before reality: where checks are declared, only a state on which they passed goes through.

use std::path::Path;
use std::sync::Arc;

use control::config::Elsewhere;
use control::{Gate, Look, Passage, Preview, config};
use model::caveat::CaveatKind;
use model::config::Check;
use model::exec::Text;
use model::promotion::{
    Action, Assessment, Foretold, LeftOut, PromoteRequest, PromoteStep, Promoted, Unjudged,
};
use model::verdict::{Judgement, VerifyRequest, VerifyStep};
use model::{Caveat, Code, Name, Problem, PromotionId, Sandbox, Verdict, VerdictId};

use crate::suite::Notes;
use crate::verify::{Judging, nobody_waits, room, step, tell};
use crate::{Lanes, Standing, Steps};

impl Lanes {
    /// Brings what a sandbox changed into reality, if its gate is open. Where reality moves on while the checks run, what
    /// would come of it now is judged anew, and not without end: somebody may be writing all the time. Who no longer hears the
    /// steps has the checks ended, and nothing promoted.
    pub(crate) async fn promote(
        &self,
        id: PromotionId,
        which: &str,
        request: PromoteRequest,
        steps: &Steps<PromoteStep>,
    ) -> Result<Promoted, Problem> {
        let sandbox = self.control.get(which).await?;
        if request.dry_run {
            return self.foretell(&sandbox, request).await;
        }
        let mut whys = Vec::new();
        while whys.len() < ATTEMPTS {
            let way = tokio::select! {
                way = self.way(&sandbox, &request, steps) => way?,
                () = steps.closed() => return Err(nobody_waits()),
            };
            let (gate, machine) = match way {
                Way::Through { gate, machine } => (gate, machine),
                Way::Ended(promoted) => return Ok(*promoted),
            };
            match self.control.promote(id, which, request.clone(), gate).await? {
                Passage::Through(mut promoted) => {
                    if let Promoted::Done { promotion, assessment } = &mut promoted {
                        assessment.left_out.machine += machine;
                        assessment.caveats.extend(stays_behind(promotion.verdict, &assessment.left_out));
                    }
                    return Ok(promoted);
                }
                Passage::MovedOn(why) => whys.push(why.detail),
            }
        }
        Err(restless(&sandbox, whys))
    }

    /// What would be done, and what the gate would say to it.
    async fn foretell(&self, sandbox: &Sandbox, request: PromoteRequest) -> Result<Promoted, Problem> {
        let checks = self.asked(sandbox, &request).await?;
        let mut look = self.control.look(&sandbox.id.to_string(), request.clone()).await?;
        let mut names: Vec<Name> = checks.iter().map(|check| check.name.clone()).collect();
        let outlook = if look.assessment.is_clear() && !look.assessment.is_nothing() {
            match elsewhere(&look.assessment).await? {
                Some(elsewhere) if request.force => {
                    names.extend(elsewhere.checks);
                    Outlook::Open(Gate::Forced)
                }
                Some(elsewhere) => Outlook::Closed(elsewhere.problem()),
                None => self.outlook(sandbox, &checks, &request, &look).await?,
            }
        } else {
            Outlook::Open(Gate::None)
        };
        let gate = match outlook {
            Outlook::Open(Gate::None) => None,
            Outlook::Open(Gate::Forced) => Some(Foretold::Forced { checks: names }),
            Outlook::Open(Gate::Passed { verdict, .. } | Gate::Previewed { verdict, .. }) => {
                let Assessment { caveats, left_out, .. } = &mut look.assessment;
                caveats.extend(stays_behind(Some(verdict), left_out));
                Some(Foretold::Open { verdict })
            }
            Outlook::Judge | Outlook::Preview => Some(Foretold::Checks { checks: names }),
            Outlook::Closed(problem) => Some(Foretold::Closed { problem }),
        };
        Ok(Promoted::Planned { assessment: look.assessment, gate })
    }

    async fn way(
        &self,
        sandbox: &Sandbox,
        request: &PromoteRequest,
        steps: &Steps<PromoteStep>,
    ) -> Result<Way, Problem> {
        // Each time: what changed here may be what is asked.
        let checks = self.asked(sandbox, request).await?;
        if checks.is_empty() && !request.force {
            return Ok(Way::through(Gate::None));
        }
        if request.force && !checks.is_empty() {
            return Ok(Way::through(Gate::Forced));
        }
        let look = self.control.look(&sandbox.id.to_string(), request.clone()).await?;
        // No need to ask the checks.
        if !look.assessment.is_clear() {
            return Ok(Way::ended(Promoted::Blocked { assessment: look.assessment }));
        }
        if look.assessment.is_nothing() {
            return Ok(Way::ended(Promoted::Planned { assessment: look.assessment, gate: None }));
        }
        match elsewhere(&look.assessment).await? {
            Some(_) if request.force => return Ok(Way::through(Gate::Forced)),
            // No need to ask the checks here.
            Some(elsewhere) => return Err(elsewhere.problem()),
            None => {}
        }
        match self.outlook(sandbox, &checks, request, &look).await? {
            Outlook::Open(gate) => Ok(Way::through(gate)),
            Outlook::Judge => {
                let verdict = self.judge(sandbox, &checks, judging(request, steps)).await?;
                tell_verdict(steps, &verdict);
                passed(&verdict, sandbox).map(Way::through)
            }
            Outlook::Preview => {
                let machine = look.assessment.left_out.machine;
                Ok(match self.preview(sandbox, &checks, request, steps).await? {
                    Way::Through { gate, machine: _ } => Way::Through { gate, machine },
                    ended @ Way::Ended(_) => ended,
                })
            }
            Outlook::Closed(problem) => Err(problem),
        }
    }

    /// What is known before anything is run.
    async fn outlook(
        &self,
        sandbox: &Sandbox,
        checks: &[Check],
        request: &PromoteRequest,
        look: &Look,
    ) -> Result<Outlook, Problem> {
        if checks.is_empty() {
            return Ok(Outlook::Open(Gate::None));
        }
        if request.force {
            return Ok(Outlook::Open(Gate::Forced));
        }
        if !is_as_sealed(&look.assessment) || self.control.is_behind(&sandbox.id.to_string()).await? {
            return Ok(match unseeable(&look.assessment) {
                Some(path) => Outlook::Closed(undecidable(sandbox, path)),
                None => Outlook::Preview,
            });
        }
        let runs_them = !request.commands.is_empty() || request.unjudged == Unjudged::Verify;
        Ok(match self.standing(sandbox.id, look.digest, checks).await? {
            Standing::NoChecksDeclared => Outlook::Open(Gate::None),
            Standing::Passed(verdict) => {
                Outlook::Open(Gate::Passed { digest: verdict.digest, verdict: verdict.id })
            }
            Standing::Failed(_) | Standing::Missing | Standing::Void(_) if runs_them => Outlook::Judge,
            Standing::Failed(verdict) => Outlook::Closed(not_passed(sandbox, &verdict)),
            Standing::Missing => Outlook::Closed(closed(sandbox, "its checks have not been run")),
            Standing::Void(_) => {
                let why = "it, or what its checks ask, has changed since they were run";
                Outlook::Closed(closed(sandbox, why))
            }
        })
    }

    /// Merged with what changed here, beside it, or only a part of it, as it is where something stays behind on the machine:
    /// nobody has seen that yet, so it is made and judged now.
    async fn preview(
        &self,
        sandbox: &Sandbox,
        checks: &[Check],
        request: &PromoteRequest,
        steps: &Steps<PromoteStep>,
    ) -> Result<Way, Problem> {
        let snapshot = match self.control.preview(&sandbox.id.to_string(), request.clone()).await? {
            Preview::Made(snapshot) => snapshot,
            Preview::Blocked(assessment) => return Ok(Way::ended(Promoted::Blocked { assessment })),
        };
        let id = snapshot.id;
        let verdict = self.judge_snapshot(sandbox, snapshot, checks, judging(request, steps)).await?;
        tell_verdict(steps, &verdict);
        match verdict.outcome {
            Judgement::Pass => Ok(Way::through(Gate::Previewed { snapshot: id, verdict: verdict.id })),
            Judgement::Fail | Judgement::Inconclusive => Err(unfit(sandbox, &verdict)),
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

/// Where a promotion goes.
enum Way {
    Through {
        gate: Gate,
        /// Changes of the machine that stay behind, and are not in what was judged any more.
        machine: u64,
    },
    /// There is nothing to do, or something stands in the way.
    Ended(Box<Promoted>),
}

impl Way {
    fn through(gate: Gate) -> Self {
        Self::Through { gate, machine: 0 }
    }

    fn ended(promoted: Promoted) -> Self {
        Self::Ended(Box::new(promoted))
    }
}

/// How the gate stands.
enum Outlook {
    Open(Gate),
    /// The checks have to be run on the state as it was sealed.
    Judge,
    /// The checks have to be run on what would come of it.
    Preview,
    Closed(Problem),
}

/// Is what would be promoted what the sandbox has, all of it and nothing else?
fn is_as_sealed(assessment: &Assessment) -> bool {
    let (counts, left_out) = (assessment.counts(), &assessment.left_out);
    counts.merged + counts.kept + left_out.unnamed + left_out.machine == 0
}

/// What another worktree asks of what would be promoted into it.
async fn elsewhere(assessment: &Assessment) -> Result<Option<Elsewhere>, Problem> {
    let assessment = assessment.clone();
    let read = tokio::task::spawn_blocking(move || config::elsewhere(&assessment));
    Ok(read.await.map_err(|error| Problem::from_error(Code::Internal, &error))??)
}

/// The checks ran with what git ignores as the sandbox has it: without its build folders few would. Whoever relies on the
/// verdict should know that it is promoted only where it is named.
fn stays_behind(verdict: Option<VerdictId>, left_out: &LeftOut) -> Option<Caveat> {
    let (verdict, ignored) = (verdict?, left_out.ignored);
    let what = if ignored == 1 { "change that stays" } else { "changes that stay" };
    let text = format!("the checks of {verdict} ran with {ignored} ignored {what} behind");
    (ignored > 0).then(|| Caveat::new(CaveatKind::Verdict, text))
}

/// A path outside the workspace that would be neither as the sandbox has it nor left out.
fn unseeable(assessment: &Assessment) -> Option<&Text> {
    let mixed =
        assessment.actions.iter().filter(|planned| matches!(planned.action, Action::Merge | Action::Keep));
    let mut paths = mixed.map(|planned| &planned.path);
    paths.find(|path| Path::new(path.as_os_str()).is_absolute())
}

fn judging(request: &PromoteRequest, steps: &Steps<PromoteStep>) -> Judging {
    let steps = steps.clone();
    let notes: Notes = Arc::new(move |note| tell(&steps, PromoteStep::Judging { step: step(note) }));
    Judging { actor: request.actor, room: room(None), notes }
}

fn tell_verdict(steps: &Steps<PromoteStep>, verdict: &Verdict) {
    let step = VerifyStep::Verdict { verdict: Box::new(verdict.clone()) };
    tell(steps, PromoteStep::Judging { step });
}

fn passed(verdict: &Verdict, sandbox: &Sandbox) -> Result<Gate, Problem> {
    match verdict.outcome {
        Judgement::Pass => Ok(Gate::Passed { digest: verdict.digest, verdict: verdict.id }),
        Judgement::Fail | Judgement::Inconclusive => Err(not_passed(sandbox, verdict)),
    }
}

fn not_passed(sandbox: &Sandbox, verdict: &Verdict) -> Problem {
    closed(sandbox, &format!("it did not pass {}", failed(verdict)))
}

fn failed(verdict: &Verdict) -> String {
    let bad = verdict.checks.iter().filter(|check| check.outcome != Judgement::Pass);
    bad.map(|check| format!("`{}`", check.name)).collect::<Vec<_>>().join(", ")
}

fn closed(sandbox: &Sandbox, why: &str) -> Problem {
    let label = label(sandbox);
    Problem::new(Code::Refused, format!("sandbox `{label}` cannot be promoted: {why}"))
        .hint(format!("run them: zeno verify {label}"))
        .hint(FORCE)
}

fn unfit(sandbox: &Sandbox, verdict: &Verdict) -> Problem {
    let (label, failed) = (label(sandbox), failed(verdict));
    let what = "together with what changed here, or without what is left out, it did not pass";
    Problem::new(Code::Refused, format!("sandbox `{label}` cannot be promoted: {what} {failed}"))
        .hint(format!("see why: zeno verdicts {label} --json"))
        .hint(format!("look at what would have come of it: zeno restore {} --name preview", verdict.snapshot))
        .hint(format!("bring the sandbox up to date, and mend it there: zeno refresh {label}"))
        .hint(FORCE)
}

fn undecidable(sandbox: &Sandbox, path: &Text) -> Problem {
    let (label, path) = (label(sandbox), path.display());
    let why = "outside the workspace a mixture cannot be judged before it is real";
    Problem::new(Code::Refused, format!("sandbox `{label}` cannot be promoted with `{path}`: {why}"))
        .hint("leave it out of --paths, or let the sandbox's version win: --on-conflict PATH=ours")
        .hint(FORCE)
}

fn restless(sandbox: &Sandbox, whys: Vec<String>) -> Problem {
    let (label, times) = (label(sandbox), whys.len());
    let what = format!("{times} times something changed here while its checks ran");
    let problem = Problem::new(Code::Conflict, format!("sandbox `{label}` cannot be promoted: {what}"));
    Problem { causes: whys, ..problem }
        .hint("promote it again when whatever writes here has come to an end")
        .hint(FORCE)
}

fn label(sandbox: &Sandbox) -> String {
    sandbox.name.as_ref().map_or_else(|| sandbox.id.to_string(), ToString::to_string)
}

/// How often reality may change while the checks run.
const ATTEMPTS: usize = 3;
const FORCE: &str = "or promote it all the same, which is recorded: --force";
