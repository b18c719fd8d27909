//! What a sandbox changed, laid over the present: the same changes on a workspace that is frozen anew.
//!
//! Changes nothing in reality, and nothing of the sandbox.

use std::path::Path;

use engine::capture::{Frozen, Step};
use engine::promote::assess;
use engine::view::Ask;
use model::promotion::Assessment;
use model::sandbox::CreateRequest;
use model::{Caveat, LayerId, Problem, SnapshotId};

use super::problem::NativeError;
use super::promote::{Candidate, Wish};
use super::store::{FIRST_TURN, Stored};
use super::{Inner, Native, Purpose, Saved};

/// What is to be laid over the present.
#[derive(Clone, Debug)]
pub struct Rebase {
    pub purpose: Purpose,
    /// Its paths are laid, and decided as its resolutions say. What git ignores comes along, and so does what was changed on
    /// the machine: all of it to be worked on, what is named to be judged.
    pub candidate: Candidate,
    /// What the sandbox was made with.
    pub made_with: CreateRequest,
    /// Holds the workspace as it is frozen now.
    pub holder: SnapshotId,
    /// Holds it for a moment, to see whether it changed.
    pub probe: SnapshotId,
    /// The layer to make. None: only say what would come of it.
    pub layer: Option<LayerId>,
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Rebased {
    pub assessment: Assessment,
    /// None if something stands in the way, or it was only asked.
    pub saved: Option<Saved>,
}

impl Native {
    /// Lays what was sealed over the present. If anything stands in the way, nothing is made and nothing held.
    pub async fn rebase(&self, order: Rebase) -> Result<Rebased, Problem> {
        let (native, holder) = (self.clone(), order.holder);
        let work = tokio::task::spawn_blocking(move || {
            let rebased = native.0.rebase(&order);
            if !matches!(&rebased, Ok(Rebased { saved: Some(_), .. })) {
                native.0.captures.release(holder);
            }
            rebased
        });
        Ok(work.await.map_err(NativeError::from)??)
    }
}

impl Inner {
    fn rebase(&self, order: &Rebase) -> Result<Rebased, NativeError> {
        let Rebase { purpose, candidate, made_with, holder, probe, layer } = order;
        let old = &candidate.saved.0;
        let was = old.frozen.as_ref();
        // What would come of a promotion to the machine alone can be shown all the same.
        if was.is_none() && *purpose == Purpose::Refresh {
            return Err(NativeError::NotFrozen);
        }
        let _turn = self.promoting();
        let comparison = self.sealed_comparison(old)?;
        for _ in 0..ATTEMPTS {
            let freeze = |was: &Frozen| self.freeze_anew(&was.workspace, *holder, made_with);
            let frozen = was.map(freeze).transpose()?;
            let ask = Ask { request: made_with, frozen: frozen.as_ref(), disk_kind: old.plan.disk_kind };
            let (plan, mut masked, planned) = self.planner.plan(&ask)?;
            masked.extend(frozen.iter().flat_map(|frozen| frozen.masked.iter().cloned()));
            let wish = Wish::of(candidate).hiding(masked.iter());
            let assessed = assess(&wish.ask(&comparison, *purpose)).map_err(NativeError::Lay)?;
            let (Some(layer), true) = (layer, assessed.report.is_clear()) else {
                return Ok(Rebased { assessment: assessed.report, saved: None });
            };
            let mut layers = Vec::new();
            if !old.layers.is_empty() {
                let mut stack = old.layers.clone();
                self.squashed.apply(&mut stack, &self.layers);
                let machine = wish.of_machine(*purpose);
                self.layers.rebase(&stack, *layer, (&old.plan, &plan), machine, |half| {
                    assessed.lay(&plan, half).map_err(NativeError::Lay)
                })?;
                layers.push(*layer);
            }
            // What was merged was read after the workspace was frozen: it must not have changed in between.
            let is_as_frozen = match &frozen {
                None => true,
                // Git's own came along.
                Some(frozen) if *purpose == Purpose::Refresh => {
                    let now = self.freeze_anew(&frozen.workspace, *probe, made_with);
                    self.captures.release(*probe);
                    now?.generation == frozen.generation
                }
                Some(frozen) => self.captures.behind(frozen, 1)?.1 == 0,
            };
            if !is_as_frozen {
                layers.iter().try_for_each(|layer| self.layers.remove(*layer))?;
                continue;
            }
            let about_frozen = frozen.iter().flat_map(|frozen| frozen.caveats.iter().cloned());
            let caveats = caveats(old, planned.into_iter().chain(about_frozen));
            let since = old.since.or(was.map(|was| was.taken));
            let disputed = old.disputed.iter().chain(&assessed.disputed).cloned().collect();
            let turn = FIRST_TURN;
            let stored =
                Stored { plan, frozen, masked, caveats, layers, since, disputed, turn, ran_in: None };
            return Ok(Rebased { assessment: assessed.report, saved: Some(Saved(stored)) });
        }
        Err(NativeError::Restless)
    }

    fn freeze_anew(
        &self,
        workspace: &Path,
        holder: SnapshotId,
        made_with: &CreateRequest,
    ) -> Result<Frozen, NativeError> {
        Ok(self.captures.freeze(workspace, holder, &made_with.unmask, &|step| {
            if let Step::Changing = step {
                self.clear_stock_of(workspace);
            }
        })?)
    }
}

/// Those that were not about the old base stay.
fn caveats(old: &Stored, new: impl Iterator<Item = Caveat>) -> Vec<Caveat> {
    let frozen = old.frozen.iter().flat_map(|frozen| &frozen.caveats);
    let about_base: Vec<&Caveat> = frozen.collect();
    let mut caveats: Vec<Caveat> = new.collect();
    for caveat in old.caveats.iter().filter(|caveat| !about_base.contains(caveat)) {
        if !caveats.contains(caveat) {
            caveats.push(caveat.clone());
        }
    }
    caveats
}

/// How often a workspace may change under our eyes.
const ATTEMPTS: usize = 5;
