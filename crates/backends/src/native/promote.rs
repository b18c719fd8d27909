//! Bringing what was sealed into reality, and taking that back.
//!
//! One at a time: two promotions to the same paths would each take the other's work for reality's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine::diff::Comparison;
use engine::layers::OfMachine;
use engine::promote::{
    Ask, AskCommits, Left, Purpose, Recovered, Summary, apply, assess, find_commits, forget, kept, recover,
    summary, undo,
};
use jiff::Timestamp;
use model::exec::Text;
use model::promotion::{Assessment, Commits, PromoteRequest, PromotionState};
use model::sandbox::Masked;
use model::units::Size;
use model::{Problem, PromotionId, SandboxId};

use super::problem::NativeError;
use super::{Inner, Native, Saved, disk};

/// What is to be promoted.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub sandbox: SandboxId,
    pub saved: Saved,
    /// The state whose commits are brought, if that is another one.
    pub committed: Option<Saved>,
    pub request: PromoteRequest,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Only as it was sealed: neither merged with what reality changed, nor in part.
    pub exactly: bool,
}

/// What comes of a promotion through which only exactly what was judged may go.
#[derive(Clone, Debug)]
pub enum Passage<T> {
    Through(T),
    /// Reality has changed since, so nothing was done, and this says why. Judged anew, it may go through.
    MovedOn(Problem),
}

impl Native {
    /// What a promotion would do. Changes nothing.
    pub async fn assess(&self, candidate: Candidate) -> Result<Assessment, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.weigh(&candidate, None));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Promotes, all or nothing, if nothing stands in the way and anything is to be done. `guard` has the last word, on
    /// exactly what is about to be applied.
    pub async fn promote(
        &self,
        id: PromotionId,
        candidate: Candidate,
        guard: impl FnOnce(&Assessment) -> Result<(), Problem> + Send + 'static,
    ) -> Result<Passage<Assessment>, Problem> {
        let native = self.clone();
        let work =
            tokio::task::spawn_blocking(move || native.0.weigh(&candidate, Some((id, Box::new(guard)))));
        match work.await.map_err(NativeError::from)? {
            Ok(assessment) => Ok(Passage::Through(assessment)),
            Err(error @ (NativeError::Unjudged { .. } | NativeError::MovedBeside { .. })) => {
                Ok(Passage::MovedOn(error.into()))
            }
            Err(error) => Err(error.into()),
        }
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
        promotion: Option<(PromotionId, Guard)>,
    ) -> Result<Assessment, NativeError> {
        let _turn = self.promoting();
        let comparison = self.sealed_comparison(&candidate.saved.0)?;
        let wish = Wish::of(candidate);
        let assessed = assess(&wish.ask(&comparison, Purpose::Apply))?;
        let committed = candidate.committed.as_ref().unwrap_or(&candidate.saved);
        let commits = self.sealed_comparison(&committed.0)?;
        let assessed = match candidate.request.commits {
            Commits::Bring if wish.paths.is_empty() => assessed.with_commits(find_commits(&AskCommits {
                comparison: &commits,
                sandbox: candidate.sandbox,
                frozen: committed.0.frozen.as_ref(),
                scratch: &scratch(&self.home),
            })?),
            // Whoever names paths wants no more than these.
            Commits::Bring | Commits::Leave => assessed,
        };
        if let Some((id, guard)) = promotion
            && assessed.report.is_clear()
            && !assessed.report.is_nothing()
        {
            guard(&assessed.report).map_err(|problem| NativeError::Guarded(Box::new(problem)))?;
            if candidate.exactly {
                self.is_as_judged(&candidate.saved, &assessed.report)?;
            }
            let folder = self.promotion(id);
            apply(&assessed, &folder, &mut |_step| ())?;
        }
        Ok(assessed.report)
    }

    /// Would all of the workspace be what was judged? Checks take their time, and what changes beside the promoted paths
    /// meanwhile shows in none of them. Asked in the turn of the promotion, right before it is applied.
    fn is_as_judged(&self, saved: &Saved, report: &Assessment) -> Result<(), NativeError> {
        let (changes, left_out) = (report.counts(), &report.left_out);
        let left = changes.kept + left_out.unnamed + left_out.machine;
        if changes.merged + left > 0 {
            return Err(NativeError::Unjudged { merged: changes.merged, left });
        }
        let Some(frozen) = &saved.0.frozen else { return Ok(()) };
        let (paths, total) = self.captures.behind(frozen, 1)?;
        match paths.into_iter().next() {
            Some(path) => Err(NativeError::MovedBeside { path, more: total - 1 }),
            None => Ok(()),
        }
    }

    fn promotion(&self, id: PromotionId) -> PathBuf {
        promotions(&self.home).join(id.to_string())
    }

    pub(super) fn promoting(&self) -> std::sync::MutexGuard<'_, ()> {
        self.promoting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Says whether what was assessed may be applied.
type Guard = Box<dyn FnOnce(&Assessment) -> Result<(), Problem> + Send>;

/// Where commits are gathered; whoever promotes has it alone.
pub(super) fn scratch(home: &Path) -> PathBuf {
    home.join("scratch")
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
    homes: BTreeSet<PathBuf>,
}

impl<'a> Wish<'a> {
    pub(super) fn of(candidate: &'a Candidate) -> Self {
        let stored = &candidate.saved.0;
        let frozen = stored.frozen.as_ref();
        let hidden = stored.masked.iter().chain(frozen.iter().flat_map(|frozen| &frozen.masked));
        let taken = frozen.map(|frozen| frozen.taken);
        // Of what was sealed without saying it, nobody knows: then everything counts as changed since.
        let since = stored.since.or(taken).unwrap_or(Timestamp::MIN);
        Self {
            candidate,
            paths: candidate.request.paths.iter().map(path).collect(),
            masked: hidden.map(|masked| path(&masked.path)).collect(),
            since: since.checked_sub(TICK).unwrap_or(since),
            homes: engine::homes(candidate.home.as_deref()),
        }
    }

    /// Hides these, too.
    pub(super) fn hiding<'b>(mut self, masked: impl Iterator<Item = &'b Masked>) -> Self {
        self.masked.extend(masked.map(|masked| path(&masked.path)));
        self
    }

    /// What of the machine belongs to what is laid over the present.
    pub(super) fn of_machine(&self, purpose: Purpose) -> OfMachine<'_> {
        match purpose {
            Purpose::Refresh => OfMachine::All,
            // What is judged is what is promoted: of the machine only what is named.
            Purpose::Preview | Purpose::Apply => OfMachine::Named(&self.paths),
        }
    }

    pub(super) fn ask<'b>(&'b self, comparison: &'b Comparison, purpose: Purpose) -> Ask<'b> {
        let Candidate { request, home, .. } = self.candidate;
        Ask {
            comparison,
            paths: &self.paths,
            masked: &self.masked,
            since: self.since,
            disputed: &self.candidate.saved.0.disputed,
            resolutions: &request.resolutions,
            allow_executes: request.allow_executes,
            home: home.as_deref(),
            homes: &self.homes,
            purpose,
        }
    }
}

fn path(text: &Text) -> PathBuf {
    PathBuf::from(text.as_os_str())
}

/// The clock may be this far ahead of the times that file systems write.
const TICK: Duration = Duration::from_millis(10);
