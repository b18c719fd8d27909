//! Moving all to one end, and putting away what is left: what applying, recovering and undoing have in common.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use model::exec::Text;
use rustix::fs::Mode;
use serde::{Deserialize, Serialize};

use super::garb::Dress;
use super::journal::Journal;
use super::moves::{End, Move, sync};
use super::reality::Reality;
use super::stage::{FEW, Place, Stage};
use super::{Observe, PromoteError, Step};
use crate::capture::files::DIRECTORY;

/// A path that somebody else changed while everything was being taken back. It stays as they left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    pub path: Text,
    /// What would have been there lies here.
    pub kept: Text,
}

/// An unfinished promotion, with everything open.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) reality: &'a Reality,
    pub(super) stages: &'a [Stage],
    pub(super) moves: &'a [Move],
    pub(super) dresses: &'a [Dress],
}

impl Scene<'_> {
    fn stage(&self, moved: &Move) -> &OwnedFd {
        &self.stages[moved.stage].opened
    }

    /// Moves everything to one end, the last first when it goes back. What somebody else disturbed is left, and told.
    pub(super) fn drive(&self, end: End, observe: &mut Observe<'_>) -> Result<Vec<Left>, PromoteError> {
        let mut left = Vec::new();
        let in_order: Box<dyn Iterator<Item = &Move>> = match end {
            End::Old => Box::new(self.moves.iter().rev()),
            End::New => Box::new(self.moves.iter()),
        };
        for moved in in_order {
            let path = self.reality.absolute(&moved.spot);
            observe(match end {
                End::Old => Step::Returning(&path),
                End::New => Step::Moving(&path),
            });
            let failed = |source| PromoteError::Move { path: path.clone(), source };
            let stage = self.stage(moved);
            let is_there = moved.drive(self.reality, stage, end).map_err(failed)?;
            // What is in the slot now must be what we built, or what was assessed; anything else is somebody's work.
            let is_ours =
                is_there && moved.changed_in_slot(self.reality, stage, end).map_err(failed)?.is_empty();
            if !is_ours {
                let kept = self.stages[moved.stage].path.join(&moved.slot);
                left.push(Left { path: Text::from(path), kept: Text::from(kept) });
            }
        }
        self.dress(end, observe)?;
        self.sync()?;
        Ok(left)
    }

    /// Makes sure that all moves and looks are on disk: every folder in which something moved is one that is dressed.
    pub(super) fn sync(&self) -> Result<(), PromoteError> {
        for stage in self.stages {
            let synced = if self.dresses.len() > FEW { stage.sync_all() } else { sync(&stage.opened) };
            synced.map_err(|source| PromoteError::Sync { path: stage.path.clone(), source })?;
        }
        if self.dresses.len() > FEW && !self.stages.is_empty() {
            return Ok(());
        }
        for dress in self.dresses {
            let failed = |source| PromoteError::Sync { path: self.reality.absolute(&dress.spot), source };
            if let Some((folder, _)) = dress.open(self.reality).map_err(failed)? {
                sync(&folder).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Gives the folders that stay their looks, the deepest first.
    pub(super) fn dress(&self, end: End, observe: &mut Observe<'_>) -> Result<(), PromoteError> {
        for dress in self.dresses.iter().rev() {
            let path = self.reality.absolute(&dress.spot);
            observe(Step::Dressing(&path));
            let done = dress.put_on(self.reality, end);
            done.map_err(|source| PromoteError::Dress { path, source })?;
        }
        Ok(())
    }
}

/// Puts the stages into the promotion's folder. One on another mount stays where it is.
pub(super) fn keep(places: &[Place], folder: &Path, observe: &mut Observe<'_>) -> Result<(), PromoteError> {
    let failed = |source| PromoteError::Keep { path: folder.to_owned(), source };
    let opened = rustix::fs::open(folder, DIRECTORY, Mode::empty()).map_err(|error| failed(error.into()))?;
    for (number, place) in places.iter().enumerate() {
        observe(Step::Keeping(&place.path()));
        if place.open().map_err(failed)?.is_some() {
            place.carry(&opened, &kept_name(number)).map_err(failed)?;
        }
    }
    sync(&opened).map_err(failed)
}

/// Opens the stages, wherever they are by now.
pub(super) fn open_stages(journal: &Journal, folder: &Path) -> Result<Vec<Stage>, PromoteError> {
    let stages = journal.places().iter().enumerate().map(|(number, place)| {
        let path = folder.join(kept_name(number));
        match rustix::fs::open(&path, DIRECTORY, Mode::empty()) {
            Ok(opened) => return Ok(Stage { path, opened }),
            Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(PromoteError::OpenStage { path, source: error.into() }),
        }
        let failed = |source| PromoteError::OpenStage { path: place.path(), source };
        place.open().map_err(failed)?.ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))
    });
    stages.collect()
}

/// Removes the stages with all that is in them, wherever they are.
pub(super) fn remove_stages(
    places: &[Place],
    folder: &Path,
    observe: &mut Observe<'_>,
) -> Result<(), PromoteError> {
    for (number, place) in places.iter().enumerate() {
        let path = place.path();
        let failed = |source| PromoteError::Remove { path: path.clone(), source };
        if place.open().map_err(failed)?.is_some() {
            observe(Step::Removing(&path));
            place.remove().map_err(failed)?;
        }
        let kept = folder.join(kept_name(number));
        if kept.is_dir() {
            observe(Step::Removing(&kept));
            crate::remove::tree(&kept).map_err(|source| PromoteError::Remove { path: kept, source })?;
        }
    }
    Ok(())
}

/// Forgets a promotion that is finished: what it displaced is removed, and it can no longer be undone.
pub fn forget(folder: &Path) -> Result<(), PromoteError> {
    if let Some(journal) = Journal::open(folder)? {
        remove_stages(journal.places(), folder, &mut |_| {})?;
    }
    crate::remove::tree(folder).map_err(|source| PromoteError::Remove { path: PathBuf::from(folder), source })
}

/// Where everything is that is kept of a promotion: its folder, and stages that are on other mounts.
pub fn kept(folder: &Path) -> Result<Vec<PathBuf>, PromoteError> {
    let mut all = vec![folder.to_owned()];
    if let Some(journal) = Journal::open(folder)? {
        for place in journal.places() {
            let failed = |source| PromoteError::OpenStage { path: place.path(), source };
            all.extend(place.open().map_err(failed)?.map(|stage| stage.path));
        }
    }
    Ok(all)
}

fn kept_name(number: usize) -> String {
    format!("kept-{number}")
}
