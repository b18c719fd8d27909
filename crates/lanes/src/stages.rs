//! Graduated promotion: `local`, and from there one stage after the other, as far as is asked for.
//!
//! The stages are those of the real workspace's `zeno.yaml` as it was before anything was applied; going on later goes by
//! the same. A stage that does not pass takes itself back and touches no later one. Its commands run on this machine as it
//! is, not in a sandbox. Never decides for a person.

mod errand;
mod undo;
mod visit;
mod way;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::config::Stage;
use model::diff::Detail;
use model::exec::{Context, Text};
use model::promotion::{
    AdvanceRequest, Journey, Plan, PromoteRequest, PromoteStep, Promoted, Promotion, PromotionState, Stopped,
    Visit, Walk, Walked,
};
use model::sandbox::Actor;
use model::snapshot::SnapshotReason;
use model::{Code, Name, Problem, PromotionId, Sandbox};
use tokio::sync::OwnedMutexGuard;

use crate::verify::{nobody_waits, random, tell};
use crate::{Lanes, Steps};
use visit::Walking;

impl Lanes {
    /// Brings what a sandbox changed into reality and on to a stage, or goes on where this state stopped before. Who no
    /// longer hears the steps has the stage that is under way ended and taken back.
    pub async fn walk(
        &self,
        which: &str,
        request: PromoteRequest,
        steps: &Steps<PromoteStep>,
    ) -> Result<Walked, Problem> {
        let sandbox = self.control.get(which).await?;
        let onward =
            Onward::of(request.to.clone(), request.approved.clone(), &request.context, request.actor)?;
        let _turn = self.turn(sandbox.workspace.as_ref(), steps).await?;
        if let Some((promotion, walk)) = self.standing_promotion(&sandbox, &request).await? {
            let ahead = on_from(&promotion, &walk, &onward)?;
            if onward.to.is_some() || !ahead.is_empty() {
                let promoted = Promoted::Already { promotion: Box::new(promotion.clone()) };
                if request.dry_run {
                    return Ok(Walked { promoted, stages: Vec::new(), ahead, stopped: None });
                }
                return Walking { lanes: self, promotion, walk, onward: &onward, steps }.go(promoted).await;
            }
        }
        self.set_out(&sandbox, request, &onward, steps).await
    }

    /// Goes on with a promotion, whether its sandbox is still there or not.
    pub async fn advance(
        &self,
        which: &str,
        request: AdvanceRequest,
        steps: &Steps<PromoteStep>,
    ) -> Result<Walked, Problem> {
        let AdvanceRequest { to, approved, context, dry_run, actor } = request;
        let onward = Onward::of(to, approved, &context, actor)?;
        let promotion = self.control.find_promotion(which).await?;
        let _turn = self.turn(promotion.root.as_ref(), steps).await?;
        // Others may have had their turn meanwhile.
        let promotion = self.control.find_promotion(&promotion.id.to_string()).await?;
        if promotion.state != PromotionState::Applied {
            let detail = format!("promotion {} is not applied, so it cannot go on", promotion.id);
            return Err(Problem::new(Code::NotReady, detail)
                .hint("see what became of it: `zeno promotions`, and promote its sandbox again"));
        }
        let walk = self.control.walk(promotion.id).await?.ok_or_else(|| no_walk(&promotion))?;
        let ahead = on_from(&promotion, &walk, &onward)?;
        let promoted = Promoted::Already { promotion: Box::new(promotion.clone()) };
        if dry_run {
            return Ok(Walked { promoted, stages: Vec::new(), ahead, stopped: None });
        }
        Walking { lanes: self, promotion, walk, onward: &onward, steps }.go(promoted).await
    }

    /// What was brought into reality and how it went out, oldest first.
    pub async fn promotions(&self) -> Result<Vec<Journey>, Problem> {
        let walks = self.control.walks().await?.into_iter();
        let mut visits: BTreeMap<PromotionId, Vec<Visit>> =
            walks.map(|walk| (walk.promotion, walk.visits)).collect();
        let promotions = self.control.promotions().await?.into_iter();
        Ok(promotions
            .map(|promotion| {
                let stages = visits.remove(&promotion.id).unwrap_or_default();
                Journey { promotion, stages }
            })
            .collect())
    }

    /// Takes note of the stages that the daemon before this one did not bring to their end. Their commands ended with it.
    /// They are not taken back here: that takes the environment of whoever goes on, or undoes.
    pub async fn settle(&self) {
        self.clear_shelves();
        let settled = async {
            for mut walk in self.control.walks().await? {
                if way::interrupt(&mut walk) {
                    self.control.write_walk(&walk).await?;
                }
            }
            Ok::<_, Problem>(())
        };
        if let Err(problem) = settled.await {
            tracing::error!(error = %problem, causes = ?problem.causes, "failed to look for interrupted stages");
        }
    }

    /// From the sandbox to the worktree, and on from there.
    async fn set_out(
        &self,
        sandbox: &Sandbox,
        request: PromoteRequest,
        onward: &Onward,
        steps: &Steps<PromoteStep>,
    ) -> Result<Walked, Problem> {
        // Before anything is applied: what is promoted cannot choose its stages.
        let plan = Plan::of(self.declared(sandbox.workspace.as_ref()).await?);
        let promotion = PromotionId::from_bits(random()?);
        let walk = Walk { promotion, plan, whole: request.paths.is_empty(), visits: Vec::new() };
        let ahead = way::ahead(&walk, onward.to.as_ref())?;
        let nowhere = |promoted, ahead, stopped| Walked { promoted, stages: Vec::new(), ahead, stopped };
        let local = walk.plan.stages.first().filter(|_| !request.dry_run);
        let may_apply = local.is_none_or(|local| way::may_enter(local, onward.actor, &onward.approved));
        let which = sandbox.id.to_string();
        if !may_apply {
            let look = PromoteRequest { dry_run: true, ..request };
            let looked = self.promote(promotion, &which, look, steps).await?;
            let stage = ahead[0].name.clone();
            return Ok(nowhere(looked, ahead, Some(Stopped::Approval { stage })));
        }
        // Written down before, so that whoever comes after a crash knows what was to become of it.
        self.control.write_walk(&walk).await?;
        let promoted = self.promote(promotion, &which, request, steps).await;
        if !matches!(promoted, Ok(Promoted::Done { .. })) {
            self.forget_unless_applied(promotion).await?;
        }
        match promoted? {
            Promoted::Done { promotion, assessment } => {
                tell(steps, PromoteStep::Applied { promotion: promotion.id });
                let walking = Walking { lanes: self, promotion: *promotion.clone(), walk, onward, steps };
                walking.go(Promoted::Done { promotion, assessment }).await
            }
            promoted => Ok(nowhere(promoted, ahead, None)),
        }
    }

    /// It may have been applied all the same, where only telling so failed.
    async fn forget_unless_applied(&self, id: PromotionId) -> Result<(), Problem> {
        let applied = self.control.promotions().await?.iter().any(|promotion| promotion.id == id);
        if applied { Ok(()) } else { self.control.remove_walk(id).await }
    }

    /// The promotion that brought exactly this state of the sandbox into reality, if it is still there.
    async fn standing_promotion(
        &self,
        sandbox: &Sandbox,
        request: &PromoteRequest,
    ) -> Result<Option<(Promotion, Walk)>, Problem> {
        if !request.paths.is_empty() {
            return Ok(None);
        }
        let of_sandbox = |promotion: &Promotion| {
            promotion.sandbox == sandbox.id && promotion.state == PromotionState::Applied
        };
        let last = self.control.promotions().await?.into_iter().rfind(of_sandbox);
        let Some(promotion) = last else { return Ok(None) };
        let Some(walk) = self.control.walk(promotion.id).await?.filter(|walk| walk.whole) else {
            return Ok(None);
        };
        let which = sandbox.id.to_string();
        let snapshot = self.control.seal_for(&which, SnapshotReason::Verify, request.actor).await?;
        let digest = self.control.sealed_state(snapshot.id, Detail::Paths).await?.digest.to_string();
        let promoted = promotion.made_of.as_ref().or(promotion.digest.as_ref());
        Ok((promoted == Some(&digest)).then_some((promotion, walk)))
    }

    /// Promotions of one folder walk one after the other: each leaves the worktree to its stages as it applied it.
    async fn turn(
        &self,
        root: Option<&Text>,
        steps: &Steps<PromoteStep>,
    ) -> Result<OwnedMutexGuard<()>, Problem> {
        let turn = self.turn_of(root);
        if let Ok(turn) = Arc::clone(&turn).try_lock_owned() {
            return Ok(turn);
        }
        tell(steps, PromoteStep::Waiting);
        tokio::select! {
            turn = turn.lock_owned() => Ok(turn),
            () = steps.closed() => Err(nobody_waits()),
        }
    }

    fn turn_of(&self, root: Option<&Text>) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().expect("no panic while it is held");
        Arc::clone(turns.entry(root.cloned().unwrap_or_default()).or_default())
    }
}

/// How far it is to go, and for whom.
#[derive(Debug)]
struct Onward {
    to: Option<Name>,
    approved: BTreeSet<Name>,
    context: Context,
    actor: Actor,
}

impl Onward {
    fn of(
        to: Option<Name>,
        approved: BTreeSet<Name>,
        context: &Context,
        actor: Actor,
    ) -> Result<Self, Problem> {
        match &context.user {
            Some(user) => Err(Problem::new(
                Code::BadRequest,
                format!("stages run as the daemon's own user and cannot become `{user}`"),
            )),
            None => Ok(Self { to, approved, context: context.clone(), actor }),
        }
    }
}

/// What is ahead of a promotion that goes on. Its stages are those of then.
fn on_from(promotion: &Promotion, walk: &Walk, onward: &Onward) -> Result<Vec<Stage>, Problem> {
    way::ahead(walk, onward.to.as_ref()).map_err(|error| {
        let id = promotion.id;
        Problem::from(error).hint(format!(
            "zeno.yaml counts as it was before; for what it says now: `zeno undo {id}`, then promote"
        ))
    })
}

impl From<way::NoStage> for Problem {
    fn from(error: way::NoStage) -> Self {
        let known: Vec<_> = error.known.iter().map(|name| format!("`{name}`")).collect();
        Self::from_error(Code::NotFound, &error).hint(match known.as_slice() {
            [_local] => "declare them in zeno.yaml: `promotion: {stages: [{name: staging, run: ./deploy}]}`"
                .to_owned(),
            _ => format!("there are {}", known.join(", ")),
        })
    }
}

fn no_walk(promotion: &Promotion) -> Problem {
    let id = promotion.id;
    Problem::new(Code::NotReady, format!("it is not known which stages there were for promotion {id}"))
        .hint(format!("take it back and promote it again: `zeno undo {id}`"))
}
