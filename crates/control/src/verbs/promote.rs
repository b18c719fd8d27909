//! `promote` and `undo`: what a sandbox changed, brought into reality and taken back.

use std::path::Path;

use backends::native::Candidate;
use model::diff::Detail;
use model::promotion::{PromoteRequest, Promoted, Promotion, PromotionState, UndoRequest};
use model::{Code, Digest, Problem, PromotionId, VerdictId};

use crate::control::Control;
use crate::names::{self, Known, Noun};
use crate::recovery::logged;
use crate::{refusal, store};

/// What has to be true of a state before it is promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing is asked of it.
    None,
    /// Checks are declared, and whoever asks wants it all the same.
    Forced,
    /// Checks passed on the state with this digest, and only that may go through.
    Passed { digest: Digest, verdict: VerdictId },
}

impl Control {
    /// Seals what a sandbox has written and brings exactly that into reality, all or nothing. The caller gives the id, to
    /// have written down by then what else is to become of it.
    pub async fn promote(
        &self,
        id: PromotionId,
        which: &str,
        request: PromoteRequest,
        gate: Gate,
    ) -> Result<Promoted, Problem> {
        if let Some(path) = request.paths.iter().find(|path| !Path::new(path.as_os_str()).is_absolute()) {
            return Err(refusal::relative_path(path));
        }
        let slot = self.find(which, VERB).await?;
        let control = self.clone();
        self.to_the_end(async move {
            let _turn = slot.turn.lock().await;
            // Until the end: what was sealed may be nobody else's.
            let _layers = control.inner.layers.read().await;
            let record = control.record(&slot).await?;
            let sealed = control.seal(&slot, &record).await?;
            let state = control.inner.native.sealed_state(&sealed.saved, Detail::Paths).await?;
            let (verdict, forced) = match &gate {
                Gate::None => (None, false),
                Gate::Forced => (None, true),
                Gate::Passed { digest, .. } if *digest != state.digest => {
                    return Err(refusal::judged_before(&slot.label()));
                }
                Gate::Passed { verdict, .. } => (Some(*verdict), false),
            };
            let (actor, dry_run) = (request.actor, request.dry_run);
            let root = sealed.saved.workspace().map(Into::into);
            let home = sealed.request.context.home().map(Path::to_owned);
            let made = record.sandbox.created;
            let exactly = verdict.is_some();
            let candidate = Candidate { saved: sealed.saved, request, made, home, exactly };
            if dry_run {
                let assessment = control.inner.native.assess(candidate).await?;
                return Ok(Promoted::Planned { assessment });
            }
            let promotion = Promotion {
                id,
                sandbox: slot.id,
                digest: Some(state.digest.to_string()),
                when: store::now(),
                actor,
                root,
                counts: Default::default(),
                state: PromotionState::Applying,
                verdict,
                forced,
            };
            control.apply_promotion(promotion, candidate).await
        })
        .await
    }

    async fn apply_promotion(
        &self,
        mut promotion: Promotion,
        candidate: Candidate,
    ) -> Result<Promoted, Problem> {
        // Written before anything is touched, so that whoever comes after a crash knows where to look.
        self.write_promotion(&promotion).await?;
        let applied = self.inner.native.promote(promotion.id, candidate).await;
        let assessment = match applied {
            Ok(assessment) => assessment,
            Err(problem) => {
                self.recover_promotion(promotion).await;
                return Err(problem);
            }
        };
        let counts = assessment.counts();
        let is_applied = assessment.is_clear() && !counts.is_nothing();
        if is_applied {
            promotion.state = PromotionState::Applied;
            promotion.counts = counts;
        } else {
            promotion.state = PromotionState::Failed;
        }
        self.write_promotion(&promotion).await?;
        Ok(if is_applied {
            Promoted::Done { promotion: Box::new(promotion), assessment }
        } else if assessment.is_clear() {
            Promoted::Planned { assessment }
        } else {
            Promoted::Blocked { assessment }
        })
    }

    /// What was brought into reality, oldest first.
    pub async fn promotions(&self) -> Result<Vec<Promotion>, Problem> {
        let mut all = self.inner.store.promotions().await.map_err(|error| refusal::store(&error))?;
        all.retain(|promotion| promotion.state != PromotionState::Failed);
        Ok(all)
    }

    /// What undoing would take back: this promotion, or the last one that was not.
    pub async fn undoable(&self, which: Option<&str>) -> Result<Promotion, Problem> {
        let known = self.promotions().await?;
        let applied = |promotion: &&Promotion| promotion.state == PromotionState::Applied;
        let chosen = match which {
            Some(which) => {
                let ids: Vec<_> = known.iter().map(|known| Known { id: known.id, name: None }).collect();
                let id = names::resolve(Noun::Promotion, which, &ids)?;
                known.iter().find(|known| known.id == id)
            }
            None => known.iter().rfind(applied),
        };
        chosen.filter(applied).cloned().ok_or_else(|| {
            Problem::new(Code::NotFound, "there is nothing to undo")
                .hint("see what was promoted, and taken back: zeno promotions")
        })
    }

    /// Takes a promotion back, or the last one that was not. Refused if something has changed since.
    pub async fn undo(&self, which: Option<&str>, request: UndoRequest) -> Result<Promotion, Problem> {
        let promotion = self.undoable(which).await?;
        let control = self.clone();
        self.to_the_end(async move {
            if let Err(problem) = control.inner.native.undo(promotion.id, &request.leave).await {
                control.recover_promotion(promotion).await;
                return Err(problem);
            }
            let undone = Promotion { state: PromotionState::Undone, ..promotion };
            control.write_promotion(&undone).await?;
            Ok(undone)
        })
        .await
    }

    /// Brings everything that a daemon before this one had begun to its end, forwards or backwards.
    pub(crate) async fn recover_promotions(&self) {
        match self.promotions().await {
            Ok(promotions) => {
                let open = promotions.into_iter().filter(|promotion| match promotion.state {
                    PromotionState::Applying | PromotionState::Applied => true,
                    PromotionState::Failed | PromotionState::Undone => false,
                });
                for promotion in open {
                    self.recover_promotion(promotion).await;
                }
            }
            Err(problem) => logged(None, "read which promotions there are", Err(problem)),
        }
    }

    async fn recover_promotion(&self, promotion: Promotion) {
        let recovered = match self.inner.native.recover_promotion(promotion.id).await {
            Ok(recovered) => recovered,
            Err(problem) => return logged(None, "finish a promotion", Err(problem)),
        };
        if recovered != promotion.state {
            let written = self.write_promotion(&Promotion { state: recovered, ..promotion }).await;
            logged(None, "record what became of a promotion", written);
        }
    }

    async fn write_promotion(&self, promotion: &Promotion) -> Result<(), Problem> {
        let written = self.inner.store.write_promotion(promotion.clone()).await;
        written.map_err(|error| refusal::store(&error))
    }
}

const VERB: &str = "promote";
