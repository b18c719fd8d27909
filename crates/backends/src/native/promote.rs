//! Bringing what was sealed into reality, and taking that back.
//!
//! One at a time: two promotions to the same paths would each take the other's work for reality's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::diff::Comparison;
use engine::promote::{Ask, Left, Purpose, Recovered, apply, assess, recover, undo};
use jiff::Timestamp;
use model::exec::Text;
use model::promotion::{Assessment, PromoteRequest, PromotionState};
use model::{Problem, PromotionId};

use super::problem::NativeError;
use super::{Inner, Native, Saved};

/// What is to be promoted.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub saved: Saved,
    pub request: PromoteRequest,
    /// When its sandbox was made.
    pub made: Timestamp,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Only as it was sealed: neither merged with what reality changed, nor in part.
    pub exactly: bool,
}

impl Native {
    /// What a promotion would do. Changes nothing.
    pub async fn assess(&self, candidate: Candidate) -> Result<Assessment, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.weigh(&candidate, None));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Promotes, all or nothing, if nothing stands in the way and anything is to be done.
    pub async fn promote(&self, id: PromotionId, candidate: Candidate) -> Result<Assessment, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.weigh(&candidate, Some(id)));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Takes a promotion back, unless something it touched has changed since.
    pub async fn undo(&self, id: PromotionId, leave: &[Text]) -> Result<(), Problem> {
        let leave: Vec<PathBuf> = leave.iter().map(|path| PathBuf::from(path.as_os_str())).collect();
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _turn = native.0.promoting();
            undo(&native.0.promotion(id), &leave, &mut |_step| ()).map_err(NativeError::from)
        });
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Finishes what a daemon that is gone had begun.
    pub async fn recover_promotion(&self, id: PromotionId) -> Result<PromotionState, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _turn = native.0.promoting();
            recover(&native.0.promotion(id), &mut |_step| ()).map_err(NativeError::from)
        });
        Ok(match work.await.map_err(NativeError::from)?? {
            Recovered::Old { left } => {
                for Left { path, kept } in left {
                    let (path, kept) = (path.display(), kept.display());
                    tracing::warn!(%path, %kept, "changed while a promotion was taken back");
                }
                PromotionState::Failed
            }
            Recovered::New => PromotionState::Applied,
            Recovered::Undone => PromotionState::Undone,
        })
    }
}

impl Inner {
    fn weigh(
        &self,
        candidate: &Candidate,
        promotion: Option<PromotionId>,
    ) -> Result<Assessment, NativeError> {
        let _turn = self.promoting();
        let comparison = self.sealed_comparison(&candidate.saved.0)?;
        let wish = Wish::of(candidate);
        let assessed = assess(&wish.ask(&comparison, Purpose::Apply))?;
        let changes = assessed.report.counts();
        if let Some(id) = promotion
            && assessed.report.is_clear()
            && !changes.is_nothing()
        {
            let unnamed = assessed.report.left_out.unnamed;
            if candidate.exactly && (changes.merged + changes.kept + unnamed > 0) {
                return Err(NativeError::Unjudged { merged: changes.merged, left: changes.kept + unnamed });
            }
            let folder = self.promotion(id);
            apply(&assessed, &folder, &mut |_step| ())?;
        }
        Ok(assessed.report)
    }

    fn promotion(&self, id: PromotionId) -> PathBuf {
        promotions(&self.home).join(id.to_string())
    }

    pub(super) fn promoting(&self) -> std::sync::MutexGuard<'_, ()> {
        self.promoting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

pub(super) fn promotions(home: &Path) -> PathBuf {
    home.join("promotions")
}

/// A candidate, in the engine's words.
pub(super) struct Wish<'a> {
    candidate: &'a Candidate,
    paths: Vec<PathBuf>,
    masked: Vec<PathBuf>,
    since: Timestamp,
}

impl<'a> Wish<'a> {
    pub(super) fn of(candidate: &'a Candidate) -> Self {
        let stored = &candidate.saved.0;
        let frozen = stored.frozen.as_ref();
        let hidden = stored.masked.iter().chain(frozen.iter().flat_map(|frozen| &frozen.masked));
        let path = |text: &Text| PathBuf::from(text.as_os_str());
        let taken = frozen.map_or(candidate.made, |frozen| frozen.taken);
        Self {
            candidate,
            paths: candidate.request.paths.iter().map(path).collect(),
            masked: hidden.map(|masked| path(&masked.path)).collect(),
            since: taken.checked_sub(TICK).unwrap_or(taken),
        }
    }

    pub(super) fn ask<'b>(&'b self, comparison: &'b Comparison, purpose: Purpose) -> Ask<'b> {
        let Candidate { request, home, .. } = self.candidate;
        Ask {
            comparison,
            paths: &self.paths,
            masked: &self.masked,
            since: self.since,
            resolutions: &request.resolutions,
            allow_executes: request.allow_executes,
            home: home.as_deref(),
            purpose,
        }
    }
}

/// The clock may be this far ahead of the times that file systems write.
const TICK: Duration = Duration::from_millis(10);
