//! One move: what is at a path and what is in a slot of the stage change places, by one rename.
//!
//! Whether it was done shows in the inodes that stand in the two places, so no journal has to follow each move, and doing
//! it twice is doing it once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use model::exec::Text;
use rustix::fs::{FileType, Mode, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::print::{looks_alike, print};
use super::reality::{Reality, Spot};
use crate::capture::files::{Stat, look, look_at, open_beneath};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) spot: Spot,
    /// Which stage, and the name in it.
    pub(super) stage: usize,
    pub(super) slot: String,
    /// At the path before, in the slot after.
    pub(super) was: Option<Tree>,
    /// In the slot before, at the path after.
    pub(super) becomes: Option<Tree>,
    /// Of the files that come, by their paths below.
    pub(super) prints: Vec<(Text, String)>,
}

/// What something looked like, with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tree {
    pub(super) top: Stat,
    /// By path.
    pub(super) below: Vec<(Text, Stat)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Old,
    New,
}

/// How things stand. The slot says which end it is at: nobody else reaches into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    At(End),
    /// The same, but somebody else put something at the path, or took it away.
    Disturbed(End),
    /// The slot holds neither.
    Lost,
}

impl Move {
    pub(super) fn position(&self, reality: &Reality, stage: &OwnedFd) -> io::Result<Position> {
        let of = |tree: &Option<Tree>| tree.as_ref().map(|tree| identity(&tree.top));
        let (was, becomes) = (of(&self.was), of(&self.becomes));
        let in_slot = look(stage, self.slot.as_bytes())?.map(|seen| identity(&seen.stat));
        let (end, expected) = if in_slot == becomes {
            (End::Old, was)
        } else if in_slot == was {
            (End::New, becomes)
        } else {
            return Ok(Position::Lost);
        };
        let Some((folder, name)) = reality.parent_if_there(&self.spot)? else {
            return Ok(Position::Disturbed(end));
        };
        let at_path = look(folder, name)?.map(|seen| identity(&seen.stat));
        Ok(if at_path == expected { Position::At(end) } else { Position::Disturbed(end) })
    }

    /// Moves, unless it is there already. Says whether it is there now.
    pub(super) fn drive(&self, reality: &Reality, stage: &OwnedFd, end: End) -> io::Result<bool> {
        match self.position(reality, stage)? {
            Position::At(at) if at == end => self.tighten(reality, stage, end)?,
            // It never left, or is back, and the path is somebody else's by now.
            Position::Disturbed(at) if at == end => {}
            Position::Disturbed(_) | Position::Lost => return Ok(false),
            Position::At(_) => {
                let Some((folder, name)) = reality.parent_if_there(&self.spot)? else { return Ok(false) };
                match self.rename(&folder, name, stage, end) {
                    Err(Errno::ACCESS | Errno::PERM) if !rustix::process::geteuid().is_root() => {
                        self.loosen(&folder, name, stage)?;
                        self.rename(&folder, name, stage, end)?;
                    }
                    // Gone, or come, between the look and the move.
                    Err(Errno::NOENT | Errno::EXIST) => return Ok(false),
                    other => other?,
                }
                self.tighten(reality, stage, end)?;
            }
        }
        Ok(true)
    }

    fn rename(&self, folder: &OwnedFd, name: &[u8], stage: &OwnedFd, end: End) -> rustix::io::Result<()> {
        let slot = self.slot.as_str();
        match (&self.was, &self.becomes, end) {
            (Some(_), Some(_), _) => renameat_with(stage, slot, folder, name, RenameFlags::EXCHANGE),
            (None, Some(_), End::New) | (Some(_), None, End::Old) => {
                renameat_with(stage, slot, folder, name, RenameFlags::NOREPLACE)
            }
            (None, Some(_), End::Old) | (Some(_), None, End::New) => {
                renameat_with(folder, name, stage, slot, RenameFlags::NOREPLACE)
            }
            (None, None, _) => Ok(()),
        }
    }

    /// An ordinary user may neither change a read-only folder of their own nor move it elsewhere, but may change its
    /// permissions. They are put right after the move, the parent's when it is dressed.
    fn loosen(&self, folder: &OwnedFd, name: &[u8], stage: &OwnedFd) -> io::Result<()> {
        loosen(folder)?;
        for (place, name) in [(folder, name), (stage, self.slot.as_bytes())] {
            if look(place, name)?.is_some_and(|seen| is_folder(&seen.stat)) {
                loosen(&open_beneath(place, name)?)?;
            }
        }
        Ok(())
    }

    fn tighten(&self, reality: &Reality, stage: &OwnedFd, end: End) -> io::Result<()> {
        if rustix::process::geteuid().is_root() {
            return Ok(());
        }
        let (in_slot, at_path) = match end {
            End::Old => (&self.becomes, &self.was),
            End::New => (&self.was, &self.becomes),
        };
        let Some((folder, name)) = reality.parent_if_there(&self.spot)? else { return Ok(()) };
        for (tree, place, name) in [(in_slot, stage, self.slot.as_bytes()), (at_path, &folder, name)] {
            let Some(tree) = tree.as_ref().filter(|tree| tree.is_folder()) else { continue };
            let opened = open_beneath(place, name)?;
            let mode = look_at(&opened)?.stat.mode;
            if mode != tree.top.mode && mode == tree.top.mode | Mode::RWXU.as_raw_mode() {
                rustix::fs::fchmod(&opened, tree.top.permissions())?;
            }
        }
        Ok(())
    }

    /// The paths at and below this one that differ from what was assessed, looking at the path itself.
    pub(super) fn changed_at_path(&self, reality: &Reality, end: End) -> io::Result<Vec<PathBuf>> {
        let tree = match end {
            End::Old => &self.was,
            End::New => &self.becomes,
        };
        let now = match reality.parent_if_there(&self.spot)? {
            Some((folder, name)) => Tree::of(folder, name)?,
            None => None,
        };
        Ok(self.absolute(reality, differing(tree.as_ref(), now.as_ref())))
    }

    /// The same, looking at what is in the slot.
    pub(super) fn changed_in_slot(
        &self,
        reality: &Reality,
        stage: &OwnedFd,
        end: End,
    ) -> io::Result<Vec<PathBuf>> {
        let tree = match end {
            End::Old => &self.becomes,
            End::New => &self.was,
        };
        let now = Tree::of(stage, self.slot.as_bytes())?;
        Ok(self.absolute(reality, differing(tree.as_ref(), now.as_ref())))
    }

    /// The same move for what stands at the path now, if that is what was promoted, saved again without a change.
    pub(super) fn adopting(&self, reality: &Reality) -> io::Result<Option<Self>> {
        let Some(becomes) = &self.becomes else { return Ok(None) };
        let Ok((folder, name)) = reality.parent(&self.spot) else { return Ok(None) };
        let Some(now) = Tree::of(&folder, name)? else { return Ok(None) };
        for below in differing(Some(becomes), Some(&now)) {
            let alike = match (becomes.at(&below), now.at(&below)) {
                (Some(one), Some(other)) => looks_alike(one, other),
                _ => false,
            };
            let known = self.prints.iter().find(|(path, _)| *path == below);
            let is_same = match known {
                Some((_, known)) if alike => print(&folder, name, &below)? == *known,
                // The time of a folder moves with what is in it, and that is compared by itself.
                None => alike && now.at(&below).is_some_and(is_folder),
                Some(_) => false,
            };
            if !is_same {
                return Ok(None);
            }
        }
        Ok(Some(Self { becomes: Some(now), ..self.clone() }))
    }

    fn absolute(&self, reality: &Reality, below: Vec<Text>) -> Vec<PathBuf> {
        let spots = below
            .into_iter()
            .map(|below| if below.0.is_empty() { self.spot.clone() } else { self.spot.child(&below.0) });
        spots.map(|spot| reality.absolute(&spot)).collect()
    }
}

impl Tree {
    pub(super) fn is_folder(&self) -> bool {
        is_folder(&self.top)
    }

    fn at(&self, below: &Text) -> Option<&Stat> {
        if below.0.is_empty() {
            return Some(&self.top);
        }
        let place = self.below.binary_search_by(|(path, _)| path.cmp(below)).ok()?;
        Some(&self.below[place].1)
    }
}

/// The paths that are not the same on both. A move changes the change time of what is moved, not of what is in it.
fn differing(expected: Option<&Tree>, now: Option<&Tree>) -> Vec<Text> {
    let (Some(expected), Some(now)) = (expected, now) else {
        return if expected.is_none() && now.is_none() { Vec::new() } else { vec![Text::default()] };
    };
    let mut differing = Vec::new();
    if !is_same(&expected.top, &Stat { ctime: expected.top.ctime, ..now.top }) {
        differing.push(Text::default());
    }
    let (mut left, mut right) = (expected.below.iter().peekable(), now.below.iter().peekable());
    loop {
        match (left.peek(), right.peek()) {
            (Some((one, was)), Some((other, is))) if one == other => {
                if !is_same(was, is) {
                    differing.push(one.clone());
                }
                left.next();
                right.next();
            }
            (Some((one, _)), Some((other, _))) if one < other => {
                differing.push(one.clone());
                left.next();
            }
            (_, Some((other, _))) => {
                differing.push(other.clone());
                right.next();
            }
            (Some((one, _)), None) => {
                differing.push(one.clone());
                left.next();
            }
            (None, None) => return differing,
        }
    }
}

/// A file's other names may come, go and be moved, by us too; that moves its change time without changing it.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    let is_linked = !is_folder(one) && (one.nlink > 1 || other.nlink > 1);
    let ctime = if is_linked { other.ctime } else { one.ctime };
    Stat { nlink: 0, ctime, ..*one } == Stat { nlink: 0, ..*other }
}

fn identity(stat: &Stat) -> (u64, u32) {
    (stat.ino, stat.mode & 0o170_000)
}

fn is_folder(stat: &Stat) -> bool {
    stat.file_type() == FileType::Directory
}

fn loosen(folder: &OwnedFd) -> io::Result<()> {
    let mode = look_at(folder)?.stat.permissions();
    match rustix::fs::fchmod(folder, mode | Mode::RWXU) {
        // Not ours: the move will say so.
        Err(Errno::PERM) => Ok(()),
        other => Ok(other?),
    }
}

/// Makes sure that the names in a folder are on disk.
pub(super) fn sync(folder: impl AsFd) -> io::Result<()> {
    match rustix::fs::fsync(folder) {
        // Some file systems have nothing to sync a folder with.
        Err(Errno::INVAL) => Ok(()),
        other => Ok(other?),
    }
}
