//! After a crash: to the old state or to the new one.

use std::path::Path;

use super::finish::{Left, Scene, keep, open_stages, remove_stages};
use super::garb::Dress;
use super::journal::{Journal, Record};
use super::moves::{End, Move};
use super::reality::Reality;
use super::{Observe, PromoteError};

/// Which state it is in now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing was promoted. What others changed while it was being taken back is as they left it.
    Old { left: Vec<Left> },
    /// All was promoted.
    New,
    /// All was promoted and taken back.
    Undone,
}

/// Finishes what a promotion or an undoing in this folder left unfinished, one way or the other. May be interrupted and done
/// again; where there is nothing to do it reads the journal and no more.
pub fn recover(folder: &Path, observe: &mut Observe<'_>) -> Result<Recovered, PromoteError> {
    let Some(mut journal) = Journal::open(folder)? else { return Ok(Recovered::Old { left: Vec::new() }) };
    match journal.last().clone() {
        Record::Begun { .. } | Record::Ready { .. } => {
            let reality = Reality::open(&journal.roots())?;
            take_back(&reality, &mut journal, folder, observe).map(|left| Recovered::Old { left })
        }
        Record::TakenBack { left } => {
            if left.is_empty() {
                remove_stages(journal.places(), folder, observe)?;
            }
            Ok(Recovered::Old { left })
        }
        Record::Applied => {
            let (moves, dresses) = journal.moves();
            redo(&journal, folder, moves, dresses, observe)?;
            keep(journal.places(), folder, observe)?;
            journal.write(Record::Kept)?;
            Ok(Recovered::New)
        }
        Record::Kept | Record::Redone => Ok(Recovered::New),
        Record::Undoing { moves, dresses } => {
            redo(&journal, folder, &moves, &dresses, observe)?;
            journal.write(Record::Redone)?;
            Ok(Recovered::New)
        }
        Record::Undone { leave } => {
            super::undo::close(&mut journal, folder, &leave, observe)?;
            Ok(Recovered::Undone)
        }
        Record::Closed => Ok(Recovered::Undone),
    }
}

/// Takes back whatever was moved, and removes the stages. Idempotent.
pub(super) fn take_back(
    reality: &Reality,
    journal: &mut Journal,
    folder: &Path,
    observe: &mut Observe<'_>,
) -> Result<Vec<Left>, PromoteError> {
    let mut left = Vec::new();
    let (moves, dresses) = journal.moves();
    journal.drive_refs(End::Old, observe)?;
    // Before the moves were written down, none was made.
    if !moves.is_empty() || !dresses.is_empty() {
        let stages = open_stages(journal, folder)?;
        left = Scene { reality, stages: &stages, moves, dresses }.drive(End::Old, observe)?;
    }
    // First written down: without their stages, moves cannot be judged again.
    journal.write(Record::TakenBack { left: left.clone() })?;
    if left.is_empty() {
        remove_stages(journal.places(), folder, observe)?;
    }
    Ok(left)
}

/// Makes sure that these are as promoted. What others have changed since is theirs.
fn redo(
    journal: &Journal,
    folder: &Path,
    moves: &[Move],
    dresses: &[Dress],
    observe: &mut Observe<'_>,
) -> Result<(), PromoteError> {
    let reality = Reality::open(&journal.roots())?;
    let stages = open_stages(journal, folder)?;
    let left = Scene { reality: &reality, stages: &stages, moves, dresses }.drive(End::New, observe)?;
    for left in left {
        tracing::warn!(path = %left.path.display(), "changed by somebody else since it was promoted");
    }
    journal.drive_refs(End::New, observe)
}

pub(super) fn remaining(moves: &[Move], leave: &[usize]) -> Vec<Move> {
    let kept = moves.iter().enumerate().filter(|(number, _)| !leave.contains(number));
    kept.map(|(_, moved)| moved.clone()).collect()
}
