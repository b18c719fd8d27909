//! Taking a promotion back.

use std::path::{Path, PathBuf};

use super::finish::{Scene, open_stages, remove_stages};
use super::garb::{Dress, Garb};
use super::journal::{Journal, Record};
use super::moves::{End, Move, Position};
use super::reality::Reality;
use super::recover::{Recovered, recover, remaining};
use super::stage::Stage;
use super::{Observe, PromoteError, Step};
use crate::capture::files::remove_tree;

/// Restores what was there before the promotion in `folder`, if nobody has touched it since; otherwise says which paths
/// moved on ([`PromoteError::MovedOn`]) and does nothing. `leave` are absolute paths that stay as they are, changed or not.
pub fn undo(folder: &Path, leave: &[PathBuf], observe: &mut Observe<'_>) -> Result<(), PromoteError> {
    match recover(folder, observe)? {
        Recovered::New => {}
        Recovered::Old { .. } | Recovered::Undone => return Err(PromoteError::NotApplied),
    }
    let mut journal = Journal::open(folder)?.ok_or(PromoteError::NotApplied)?;
    let reality = Reality::open(&journal.roots())?;
    let stages = open_stages(&journal, folder)?;
    let (moves, dresses) = journal.moves();
    let is_left = |path: &Path| leave.iter().any(|left| left.starts_with(path) || path.starts_with(left));
    let left = moves.iter().enumerate().filter(|(_, moved)| is_left(&reality.absolute(&moved.spot)));
    let left: Vec<usize> = left.map(|(number, _)| number).collect();
    let mut moves = remaining(moves, &left);
    let mut moved_on = Vec::new();
    for moved in &mut moves {
        let changed = changed(moved, &reality, &stages)?;
        let failed = |source| PromoteError::looked(reality.absolute(&moved.spot), source);
        if changed.is_empty() {
            continue;
        }
        match moved.adopting(&reality).map_err(failed)? {
            Some(adopting) => *moved = adopting,
            None => moved_on.extend(changed),
        }
    }
    let mut returning = Vec::new();
    for dress in dresses {
        match folder_to_return(dress, &reality)? {
            Some(dress) => returning.push(dress),
            None if !dress.changes_looks() || is_left(&reality.absolute(&dress.spot)) => {}
            None => moved_on.push(reality.absolute(&dress.spot)),
        }
    }
    if !moved_on.is_empty() {
        return Err(PromoteError::MovedOn { paths: moved_on });
    }
    journal.write(Record::Undoing { moves: moves.clone(), dresses: returning.clone() })?;
    let scene = Scene { reality: &reality, stages: &stages, moves: &moves, dresses: &returning };
    match back(&scene, observe).and_then(|()| journal.drive_refs(End::Old, observe)) {
        Ok(()) => {}
        Err(cause) => return Err(give_up(&scene, &mut journal, cause, observe)),
    }
    observe(Step::Committing);
    journal.write(Record::Undone { leave: left.clone() })?;
    if let Err(error) = close(&mut journal, folder, &left, observe) {
        // It is undone; recovering will put away the rest.
        tracing::warn!(folder = %folder.display(), error = &error as &dyn std::error::Error, "not tidy yet");
    }
    Ok(())
}

/// Removes what the undoing displaced: it was exactly what had been promoted. What was left keeps what it displaced.
pub(super) fn close(
    journal: &mut Journal,
    folder: &Path,
    leave: &[usize],
    observe: &mut Observe<'_>,
) -> Result<(), PromoteError> {
    if leave.is_empty() {
        remove_stages(journal.places(), folder, observe)?;
    } else {
        let stages = open_stages(journal, folder)?;
        for moved in remaining(journal.moves().0, leave) {
            let stage = &stages[moved.stage];
            let path = stage.path.join(&moved.slot);
            observe(Step::Removing(&path));
            let removed = remove_tree(&stage.opened, moved.slot.as_bytes());
            removed.map_err(|source| PromoteError::Remove { path, source })?;
        }
    }
    journal.write(Record::Closed)
}

/// The paths of a move that are not as they were promoted.
fn changed(moved: &Move, reality: &Reality, stages: &[Stage]) -> Result<Vec<PathBuf>, PromoteError> {
    let path = reality.absolute(&moved.spot);
    let failed = |source| PromoteError::looked(path.clone(), source);
    let mut changed = moved.changed_at_path(reality, End::New).map_err(failed)?;
    let position = moved.position(reality, &stages[moved.stage].opened).map_err(failed)?;
    if changed.is_empty() && position != Position::At(End::New) {
        changed.push(path);
    }
    Ok(changed)
}

/// A folder as it is now and as it was before. Its time is set again if nothing else moved in it. `None`: somebody has
/// changed how it looks.
fn folder_to_return(dress: &Dress, reality: &Reality) -> Result<Option<Dress>, PromoteError> {
    let failed = |source| PromoteError::looked(reality.absolute(&dress.spot), source);
    let Some((folder, stat)) = dress.open(reality).map_err(failed)? else { return Ok(None) };
    let now = Garb::of_reality(&folder, &stat).map_err(failed)?;
    if !now.is_between(&dress.after, &dress.after) {
        return Ok(None);
    }
    let is_untouched = dress.after.mtime == now.mtime;
    let mtime = dress.before.mtime.filter(|_| is_untouched);
    Ok(Some(Dress { before: Garb { mtime, ..dress.before.clone() }, after: now, ..dress.clone() }))
}

fn back(scene: &Scene<'_>, observe: &mut Observe<'_>) -> Result<(), PromoteError> {
    for moved in scene.moves.iter().rev() {
        let path = scene.reality.absolute(&moved.spot);
        observe(Step::Returning(&path));
        let failed = |source| PromoteError::Move { path: path.clone(), source };
        let stage = &scene.stages[moved.stage].opened;
        let is_there = moved.drive(scene.reality, stage, End::Old).map_err(failed)?;
        let changed = moved.changed_in_slot(scene.reality, stage, End::Old).map_err(failed)?;
        if !is_there || !changed.is_empty() {
            return Err(PromoteError::MovedOn { paths: if is_there { changed } else { vec![path] } });
        }
    }
    scene.dress(End::Old, observe)?;
    scene.sync()
}

/// Promotes again what was taken back already, and says why.
fn give_up(
    scene: &Scene<'_>,
    journal: &mut Journal,
    cause: PromoteError,
    observe: &mut Observe<'_>,
) -> PromoteError {
    let redone = scene.drive(End::New, observe).and_then(|left| {
        journal.drive_refs(End::New, observe)?;
        journal.write(Record::Redone).map(|()| left)
    });
    match redone {
        Ok(left) if left.is_empty() => cause,
        Ok(left) => PromoteError::Left { left },
        Err(source) => PromoteError::TakeBack { cause: Box::new(cause), source: Box::new(source) },
    }
}
