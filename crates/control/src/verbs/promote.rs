//! `promote` and `undo`: what a sandbox changed, brought into reality and taken back.

use std::path::Path;

use backends::native::{Candidate, Passage, Summary};
use model::diff::Detail;
use model::promotion::{
    Agreed, Assessment, PromoteRequest, Promoted, Promotion, PromotionState, UndoRequest,
};
use model::sandbox::Actor;
use model::{Code, Digest, Problem, PromotionId, SnapshotId, VerdictId};

use super::snapshot::Sealed;
use crate::config::elsewhere;
use crate::control::Control;
use crate::names::{self, Known, Noun};
use crate::recovery::logged;
use crate::{refusal, store};

/// What has to be true of a state before it is promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing is asked of it where the sandbox was made. What another worktree asks is looked at before anything is applied.
    None,
    /// Something is asked of it, and whoever promotes wants it all the same.
    Forced,
    /// Checks passed on the state with this digest, and only that may go through.
    Passed { digest: Digest, verdict: VerdictId },
    /// Checks passed on this snapshot, in which what the sandbox changed was laid over the present. Exactly that goes
    /// through.
    Previewed { snapshot: SnapshotId, verdict: VerdictId },
}

/// What is looked at right before anything is touched.
#[derive(Debug)]
struct Guard {
    gate: Gate,
    agreed: Option<Agreed>,
}

impl Guard {
    fn ask(&self, assessment: &Assessment) -> Result<(), Problem> {
        if self.agreed.as_ref().is_some_and(|agreed| agreed.outline != assessment.outline()) {
            return Err(refusal::agreed_to_another());
        }
        match self.gate {
            Gate::Forced => Ok(()),
            Gate::None | Gate::Passed { .. } | Gate::Previewed { .. } => match elsewhere(assessment)? {
                Some(elsewhere) => Err(elsewhere.problem()),
                None => Ok(()),
            },
        }
    }
}

/// What a promotion would do, and with which state.
#[derive(Clone, Debug)]
pub struct Look {
    pub assessment: Assessment,
    /// Of what the sandbox has now.
    pub digest: Digest,
}

impl Control {
    /// What a promotion would do. Seals what a sandbox has written, and changes nothing.
    pub async fn look(&self, which: &str, request: PromoteRequest) -> Result<Look, Problem> {
        absolute(&request)?;
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            let _layers = control.inner.layers.read().await;
            let record = control.record(&slot).await?;
            let Sealed { saved, request: made_with, .. } = control.seal(&slot, &record).await?;
            let digest = control.inner.native.sealed_state(&saved, Detail::Paths).await?.digest;
            let home = made_with.context.home().map(Path::to_owned);
            let sandbox = slot.id;
            let candidate = Candidate { sandbox, saved, committed: None, request, home, exactly: false };
            let assessment = control.inner.native.assess(candidate).await?;
            Ok(Look { assessment, digest })
        })
        .await
    }

    /// Seals what a sandbox has written and brings exactly that into reality, all or nothing. The caller gives the id, to
    /// have written down by then what else is to become of it.
    pub async fn promote(
        &self,
        id: PromotionId,
        which: &str,
        request: PromoteRequest,
        gate: Gate,
    ) -> Result<Passage<Promoted>, Problem> {
        absolute(&request)?;
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            // Until the end: what was sealed may be nobody else's.
            let _layers = control.inner.layers.read().await;
            let record = control.record(&slot).await?;
            let (saved, committed, made_with) = match &gate {
                Gate::Previewed { snapshot, .. } => {
                    let previewed = control.find_snapshot(&snapshot.to_string()).await?;
                    let committed = match previewed.snapshot.parent {
                        Some(sealed) => Some(control.find_snapshot(&sealed.to_string()).await?.saved),
                        None => None,
                    };
                    (previewed.saved, committed, previewed.request)
                }
                Gate::None | Gate::Forced | Gate::Passed { .. } => {
                    let sealed = control.seal(&slot, &record).await?;
                    (sealed.saved, None, sealed.request)
                }
            };
            let state = control.inner.native.sealed_state(&saved, Detail::Paths).await?;
            let made_of = match &committed {
                Some(sealed) => Some(control.inner.native.sealed_state(sealed, Detail::Paths).await?.digest),
                None => None,
            };
            let agreed = request.agreed.clone();
            if agreed.as_ref().is_some_and(|agreed| agreed.state != made_of.unwrap_or(state.digest)) {
                return Err(refusal::agreed_before(&slot.label()));
            }
            let (verdict, forced) = match &gate {
                Gate::None => (None, false),
                Gate::Forced => (None, true),
                Gate::Passed { digest, .. } if *digest != state.digest => {
                    return Err(refusal::judged_before(&slot.label()));
                }
                Gate::Passed { verdict, .. } | Gate::Previewed { verdict, .. } => (Some(*verdict), false),
            };
            let PromoteRequest { actor, allow_executes: allowed_executes, .. } = request;
            let resolutions = request.resolutions.clone();
            let root = saved.workspace().map(Into::into);
            let home = made_with.context.home().map(Path::to_owned);
            let exactly = verdict.is_some();
            let sandbox = slot.id;
            let candidate = Candidate { sandbox, saved, committed, request, home, exactly };
            let promotion = Promotion {
                id,
                sandbox,
                digest: Some(state.digest.to_string()),
                made_of: made_of.map(|digest| digest.to_string()),
                when: store::now(),
                actor,
                root,
                counts: Default::default(),
                commits: Vec::new(),
                state: PromotionState::Applying,
                verdict,
                forced,
                allowed_executes,
                resolutions,
                forgotten: false,
            };
            control.apply_promotion(promotion, candidate, Guard { gate, agreed }).await
        })
        .await
    }

    async fn apply_promotion(
        &self,
        mut promotion: Promotion,
        candidate: Candidate,
        guard: Guard,
    ) -> Result<Passage<Promoted>, Problem> {
        // Written before anything is touched, so that whoever comes after a crash knows where to look.
        self.write_promotion(&promotion, promotion.actor).await?;
        let applied =
            self.inner.native.promote(promotion.id, candidate, move |assessment| guard.ask(assessment)).await;
        let assessment = match applied {
            Ok(Passage::Through(assessment)) => assessment,
            Ok(Passage::MovedOn(why)) => {
                promotion.state = PromotionState::Failed;
                self.write_promotion(&promotion, promotion.actor).await?;
                return Ok(Passage::MovedOn(why));
            }
            Err(problem) => {
                self.recover_promotion(promotion).await;
                return Err(problem);
            }
        };
        let is_applied = assessment.is_clear() && !assessment.is_nothing();
        if is_applied {
            promotion.state = PromotionState::Applied;
            promotion.counts = assessment.counts();
            promotion.commits.clone_from(&assessment.commits);
        } else {
            promotion.state = PromotionState::Failed;
        }
        self.write_promotion(&promotion, promotion.actor).await?;
        Ok(Passage::Through(if is_applied {
            Promoted::Done { promotion: Box::new(promotion), assessment }
        } else if assessment.is_clear() {
            Promoted::Planned { assessment, gate: None }
        } else {
            Promoted::Blocked { assessment }
        }))
    }

    /// What was brought into reality, oldest first.
    pub async fn promotions(&self) -> Result<Vec<Promotion>, Problem> {
        let mut all = self.inner.store.promotions().await.map_err(|error| refusal::store(&error))?;
        all.retain(|promotion| promotion.state != PromotionState::Failed);
        Ok(all)
    }

    /// What undoing would take back: this promotion, or the last one that was not.
    pub async fn undoable(&self, which: Option<&str>) -> Result<Promotion, Problem> {
        to_undo(&self.promotions().await?, which)
    }

    /// Takes a promotion back, or the last one that was not. Refused if something has changed since.
    pub async fn undo(&self, which: Option<&str>, request: UndoRequest) -> Result<Promotion, Problem> {
        let (control, which) = (self.clone(), which.map(ToOwned::to_owned));
        self.to_the_end(async move {
            let _turn = control.inner.undoing.lock().await;
            let promotion = to_undo(&control.promotions().await?, which.as_deref())?;
            if let Err(problem) = control.inner.native.undo(promotion.id, &request.leave).await {
                control.recover_promotion(promotion).await;
                return Err(problem);
            }
            let undone = Promotion { state: PromotionState::Undone, ..promotion };
            control.write_promotion(&undone, request.actor).await?;
            Ok(undone)
        })
        .await
    }

    /// Brings everything that a daemon before this one had begun to its end, forwards or backwards.
    pub(crate) async fn recover_promotions(&self) {
        match self.promotions().await {
            Ok(promotions) => {
                let open = promotions.into_iter().filter(|promotion| match promotion.state {
                    // What is forgotten has nothing left to be read.
                    PromotionState::Applying | PromotionState::Applied => !promotion.forgotten,
                    PromotionState::Failed | PromotionState::Undone => false,
                });
                for promotion in open {
                    self.recover_promotion(promotion).await;
                }
            }
            Err(problem) => logged(None, "read which promotions there are", Err(problem)),
        }
    }

    async fn recover_promotion(&self, mut promotion: Promotion) {
        let (state, summary) = match self.inner.native.recover_promotion(promotion.id).await {
            Ok(recovered) => recovered,
            Err(problem) => return logged(None, "finish a promotion", Err(problem)),
        };
        if state != promotion.state {
            if let Some(Summary { counts, commits }) = summary.filter(|_| state == PromotionState::Applied) {
                (promotion.counts, promotion.commits) = (counts, commits);
            }
            let written = self.write_promotion(&Promotion { state, ..promotion }, Actor::Atm).await;
            logged(None, "record what became of a promotion", written);
        }
    }

    pub(crate) async fn write_promotion(&self, promotion: &Promotion, actor: Actor) -> Result<(), Problem> {
        let written = self.inner.store.write_promotion(promotion.clone(), actor).await;
        written.map_err(|error| refusal::store(&error))
    }
}

fn absolute(request: &PromoteRequest) -> Result<(), Problem> {
    let relative = request.paths.iter().find(|path| !Path::new(path.as_os_str()).is_absolute());
    relative.map_or(Ok(()), |path| Err(refusal::relative_path(path)))
}

/// The promotion that is meant, if it can be taken back.
fn to_undo(known: &[Promotion], which: Option<&str>) -> Result<Promotion, Problem> {
    let applied = |promotion: &&Promotion| promotion.state == PromotionState::Applied;
    let chosen = match which {
        Some(which) => {
            let ids: Vec<_> = known.iter().map(|known| Known { id: known.id, name: None }).collect();
            let id = names::resolve(Noun::Promotion, which, &ids)?;
            known.iter().find(|known| known.id == id).filter(applied)
        }
        None => known.iter().rfind(applied),
    };
    match chosen {
        Some(promotion) if promotion.forgotten => Err(refusal::forgotten(promotion.id)),
        Some(promotion) => Ok(promotion.clone()),
        None => Err(Problem::new(Code::NotFound, "there is nothing to undo")
            .hint("see what was promoted, and taken back: zeno promotions")),
    }
}

const VERB: &str = "promote";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_forgotten_is_refused_in_words_and_not_passed_over() {
        let promotion = |bits: u64, state: &str, forgotten: bool| -> Promotion {
            serde_json::from_value(json!({
                "id": PromotionId::from_bits(bits), "sandbox": model::SandboxId::from_bits(1), "when": store::now(),
                "actor": "adm", "state": state, "forgotten": forgotten,
                "counts": { "deleted": 0, "created": 1, "modified": 0, "merged": 0, "kept": 0, "same": 0 },
            }))
            .unwrap()
        };
        let known =
            [promotion(1, "applied", true), promotion(2, "applied", false), promotion(3, "undone", false)];
        assert_eq!(to_undo(&known, None).unwrap().id, known[1].id);
        let refused = |which: usize| to_undo(&known, Some(&known[which].id.to_string())).unwrap_err();
        assert_eq!((refused(0).code, refused(2).code), (Code::Refused, Code::NotFound));
        assert!(refused(0).detail.contains("was kept for 7 days"), "{:?}", refused(0));
        assert_eq!(to_undo(&known[..1], None).unwrap_err().code, Code::Refused);
    }
}
