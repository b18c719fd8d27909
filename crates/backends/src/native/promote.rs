//! Bringing what was sealed into reality, and taking that back.
//!
//! One at a time: two promotions to the same paths would each take the other's work for reality's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::promote::{
    Ask, AskCommits, Left, Recovered, Summary, apply, assess, find_commits, forget, kept, recover, summary,
    undo,
};
use jiff::Timestamp;
use model::exec::Text;
use model::promotion::{Assessment, Commits, PromoteRequest, PromotionState};
use model::units::Size;
use model::{Problem, PromotionId, SandboxId};

use super::problem::NativeError;
use super::{Inner, Native, Saved, disk};

/// What is to be promoted.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub sandbox: SandboxId,
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

    /// Bytes that are kept of what a promotion displaced; `None` if nothing of it is there any more.
    pub async fn kept_by(&self, id: PromotionId) -> Result<Option<Size>, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let folder = native.0.promotion(id);
            if !folder.is_dir() {
                return Ok(None);
            }
            let sizes = kept(&folder)?.into_iter().map(|path| disk::used(&path).map(|size| size.0));
            sizes.sum::<Result<u64, NativeError>>().map(|sum| Some(Size(sum)))
        });
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Removes all that is kept of a promotion.
    pub async fn forget_promotion(&self, id: PromotionId) -> Result<(), Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _turn = native.0.promoting();
            forget(&native.0.promotion(id)).map_err(NativeError::from)
        });
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Finishes what a daemon that is gone had begun. Says what came of it, and what it was about, if it came so far.
    pub async fn recover_promotion(
        &self,
        id: PromotionId,
    ) -> Result<(PromotionState, Option<Summary>), Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let _turn = native.0.promoting();
            let folder = native.0.promotion(id);
            let recovered = recover(&folder, &mut |_step| ())?;
            Ok::<_, NativeError>((recovered, summary(&folder)?))
        });
        let (recovered, summary) = work.await.map_err(NativeError::from)??;
        let state = match recovered {
            Recovered::Old { left } => {
                for Left { path, kept } in left {
                    let (path, kept) = (path.display(), kept.display());
                    tracing::warn!(%path, %kept, "changed while a promotion was taken back");
                }
                PromotionState::Failed
            }
            Recovered::New => PromotionState::Applied,
            Recovered::Undone => PromotionState::Undone,
        };
        Ok((state, summary))
    }
}

impl Inner {
    fn weigh(
        &self,
        candidate: &Candidate,
        promotion: Option<PromotionId>,
    ) -> Result<Assessment, NativeError> {
        let _turn = self.promoting();
        let Candidate { sandbox, saved, request, made, home, exactly } = candidate;
        let stored = &saved.0;
        let comparison = self.sealed_comparison(stored)?;
        let frozen = stored.frozen.as_ref();
        let hidden = stored.masked.iter().chain(frozen.iter().flat_map(|frozen| &frozen.masked));
        let masked: Vec<PathBuf> = hidden.map(|masked| PathBuf::from(masked.path.as_os_str())).collect();
        let paths: Vec<PathBuf> = request.paths.iter().map(|path| PathBuf::from(path.as_os_str())).collect();
        let taken = frozen.map_or(*made, |frozen| frozen.taken);
        let assessed = assess(&Ask {
            comparison: &comparison,
            paths: &paths,
            masked: &masked,
            since: taken.checked_sub(TICK).unwrap_or(taken),
            resolutions: &request.resolutions,
            allow_executes: request.allow_executes,
            home: home.as_deref(),
        })?;
        let assessed = match request.commits {
            Commits::Bring if paths.is_empty() => assessed.with_commits(find_commits(&AskCommits {
                comparison: &comparison,
                sandbox: *sandbox,
                frozen,
                scratch: &scratch(&self.home),
            })?),
            // Whoever names paths wants no more than these.
            Commits::Bring | Commits::Leave => assessed,
        };
        let changes = assessed.report.counts();
        if let Some(id) = promotion
            && assessed.report.is_clear()
            && !assessed.report.is_nothing()
        {
            let unnamed = assessed.report.left_out.unnamed;
            if *exactly && (changes.merged + changes.kept + unnamed > 0) {
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

    fn promoting(&self) -> std::sync::MutexGuard<'_, ()> {
        self.promoting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Where commits are gathered; whoever promotes has it alone.
pub(super) fn scratch(home: &Path) -> PathBuf {
    home.join("scratch")
}

pub(super) fn promotions(home: &Path) -> PathBuf {
    home.join("promotions")
}

/// The clock may be this far ahead of the times that file systems write.
const TICK: Duration = Duration::from_millis(10);
