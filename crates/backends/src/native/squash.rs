//! Deep stacks made shallow: the lowest layers of a stack become one, and everyone who stands on them stands on that one.
//!
//! Both show the same, so it does not matter who changes over when, nor whether anybody is ended in between.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::layers::Layers;
use model::{LayerId, Problem, SandboxId};

use super::problem::NativeError;
use super::snapshot::Saved;
use super::store::{self, Folder, Stored};
use super::{Inner, Native};

/// How deep a stack may be. Looking for a name costs a look in every layer that has its folder: the first look at each of
/// 10,000 files takes 1.7 times as long on 8 layers as on one if all of them changed all folders, 2.2 times on 16, 3.3 times
/// on 32; the next look 1.1, 1.3 and 1.4 times.
pub const DEEPEST: usize = 8;

/// What was made one of what. A sandbox that runs changes over at its next start.
#[derive(Debug, Default)]
pub(super) struct Squashed {
    changes: Mutex<Vec<Change>>,
    /// What could not be made one, and is not tried again by this daemon.
    failed: Mutex<BTreeSet<Vec<LayerId>>>,
}

/// Layers, top first, and the one that stands for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    run: Vec<LayerId>,
    into: LayerId,
}

impl Change {
    /// Changes a stack over, if it has these layers at its bottom.
    fn apply(&self, stack: &mut Vec<LayerId>) -> bool {
        let found = stack.ends_with(&self.run);
        if found {
            stack.truncate(stack.len() - self.run.len());
            stack.push(self.into);
        }
        found
    }
}

impl Saved {
    /// The same on fewer layers, if the change is about them.
    #[must_use]
    pub fn changed(&self, change: &Change) -> Option<Self> {
        let mut changed = self.clone();
        change.apply(&mut changed.0.layers).then_some(changed)
    }
}

impl Native {
    /// Makes the lowest layers of a stack one, if any of these stacks is too deep. Whoever calls has the snapshots changed
    /// over, and then the sandboxes. Nobody may collect garbage meanwhile.
    pub async fn squash(&self, snapshots: Vec<Saved>, into: LayerId) -> Result<Option<Change>, Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.squash(snapshots, into));
        Ok(work.await.map_err(NativeError::from)??)
    }

    /// Changes over a sandbox without processes.
    pub async fn change_over(&self, id: SandboxId) -> Result<(), Problem> {
        let native = self.clone();
        let work = tokio::task::spawn_blocking(move || native.0.change_over(id).map(drop));
        Ok(work.await.map_err(NativeError::from)??)
    }
}

impl Inner {
    fn squash(&self, snapshots: Vec<Saved>, into: LayerId) -> Result<Option<Change>, NativeError> {
        let mut snapshots: Vec<Stored> = snapshots.into_iter().map(|saved| saved.0).collect();
        snapshots.retain(|stored| stored.layers.len() > DEEPEST);
        // One that was written down while the others were changed over still stands on what was made one.
        let known =
            snapshots.iter().find_map(|stored| self.squashed.change_for(&stored.layers, &self.layers));
        if known.is_some() {
            return Ok(known);
        }
        let sandboxes = self.stored_sandboxes()?;
        for mut stored in snapshots.into_iter().chain(sandboxes) {
            // A sandbox that runs may still stand on what was made one long ago.
            self.squashed.apply(&mut stored.layers, &self.layers);
            if stored.layers.len() > DEEPEST {
                let run = stored.layers.split_off(stored.layers.len() - DEEPEST);
                if self.squashed.failed().contains(&run) {
                    continue;
                }
                if let Err(error) = self.layers.squash(&run, into, &stored.plan) {
                    // A folder that not even its owner may read, for example. It works as it is.
                    self.squashed.failed().insert(run);
                    return Err(error.into());
                }
                let change = Change { run, into };
                self.squashed.lock().push(change.clone());
                return Ok(Some(change));
            }
        }
        Ok(None)
    }

    /// What a sandbox stands on, changed over to fewer layers where that is possible by now.
    pub(super) fn change_over(&self, id: SandboxId) -> Result<Stored, NativeError> {
        let folder = Folder::of(&self.home, id);
        let mut stored = folder.settle(&self.layers)?;
        if self.squashed.apply(&mut stored.layers, &self.layers) {
            folder.replace(&stored)?;
        }
        Ok(stored)
    }

    /// Layers that somebody who runs will change over to.
    pub(super) fn awaited_layers(&self) -> Result<BTreeSet<LayerId>, NativeError> {
        let mut awaited = BTreeSet::new();
        for stored in self.stored_sandboxes()? {
            let mut stack = stored.layers;
            if self.squashed.apply(&mut stack, &self.layers) {
                awaited.extend(stack);
            }
        }
        Ok(awaited)
    }

    fn stored_sandboxes(&self) -> Result<Vec<Stored>, NativeError> {
        let ids = store::inventory(&self.home)?;
        // One that is being made or removed is not there; its layers are no deeper than others.
        Ok(ids.into_iter().filter_map(|id| Folder::of(&self.home, id).read().ok()).collect())
    }
}

impl Squashed {
    /// What earlier daemons made.
    pub(super) fn read(layers: &Layers) -> Result<Self, NativeError> {
        let mut changes = Vec::new();
        for into in layers.list()? {
            let run = layers.made_of(into)?;
            if !run.is_empty() {
                changes.push(Change { run, into });
            }
        }
        Ok(Self { changes: Mutex::new(changes), failed: Mutex::default() })
    }

    /// What can be changed about a stack.
    fn change_for(&self, stack: &[LayerId], layers: &Layers) -> Option<Change> {
        let changes = self.lock();
        changes.iter().find(|change| layers.has(change.into) && stack.ends_with(&change.run)).cloned()
    }

    /// Puts a stack on as few layers as there are for it.
    pub(super) fn apply(&self, stack: &mut Vec<LayerId>, layers: &Layers) -> bool {
        let changes = self.lock();
        let mut is_changed = false;
        // One change may make way for the next.
        while changes.iter().any(|change| layers.has(change.into) && change.apply(stack)) {
            is_changed = true;
        }
        is_changed
    }

    fn failed(&self) -> MutexGuard<'_, BTreeSet<Vec<LayerId>>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_that_came_too_late_is_changed_over_too() {
        let home = tempfile::tempdir().unwrap();
        let layers = Layers::open(home.path()).unwrap();
        let [top, middle, bottom, into, other] = [1, 2, 3, 4, 5].map(LayerId::from_bits);
        let change = Change { run: vec![middle, bottom], into };
        let squashed = Squashed { changes: Mutex::new(vec![change.clone()]), failed: Mutex::default() };
        let stack = vec![top, middle, bottom];
        assert_eq!(squashed.change_for(&stack, &layers), None, "what stands for them is not there");
        std::fs::create_dir(layers.path(into)).unwrap();
        assert_eq!(squashed.change_for(&stack, &layers), Some(change));
        assert_eq!(
            squashed.change_for(&[middle, bottom, other], &layers),
            None,
            "they are not at its bottom"
        );
        let mut changed = stack;
        assert!(squashed.apply(&mut changed, &layers));
        assert_eq!(changed, [top, into]);
        assert_eq!(squashed.change_for(&changed, &layers), None, "there is an end to it");
    }
}
