//! Git's index in a frozen copy, fitted to the copied files.
//!
//! Git takes a file for unchanged if inode number and times are those in its index. A copy has its own, so that the
//! first `git status` in every sandbox would read every file again. Only what is unchanged in reality is fitted, and an
//! index that is not fitted, or no longer, costs time and nothing else.

use std::io::Read;

use gix_index::hash::{Kind, hasher};
use rustix::fs::{Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use super::CaptureError;
use super::files::{Stat, open_beneath, split};
use super::index::{Entry, Index};
use super::layer::Layer;
use super::pass;
use super::place::Place;
use super::root::Root;
use super::state::State;

/// By what git knows a file again, of a copy in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Print {
    pub(super) ino: u64,
    pub(super) ctime: (i64, u32),
}

/// The index of the repository that a workspace belongs to.
#[derive(Debug)]
pub(super) struct GitIndex<'a> {
    /// From the root that holds it.
    pub(super) path: Vec<u8>,
    /// The root with the files that it tracks, if that is another.
    pub(super) worktree: Option<&'a Root>,
}

impl GitIndex<'_> {
    /// Fits the index that `state` has captured, unless that was done before.
    pub(super) fn fit(&self, place: &Place, state: &mut State) -> Result<(), CaptureError> {
        let Some(Entry::File { stat, .. }) = state.index.at(&self.path) else { return Ok(()) };
        let stat = *stat;
        if state.fitted.get(&self.path) == Some(&stat) {
            return Ok(());
        }
        let failed = |source| pass::write_failed(&self.path, source);
        if let Some(mut file) = self.open(place, state).map_err(failed)? {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            let is_fitted = match self.worktree {
                None => fit(&mut bytes, &state.index),
                Some(root) => root.with_index(|index| fit(&mut bytes, index)),
            };
            if is_fitted == Some(true) {
                pass::put(place, state, &self.path, &file.into(), &bytes)?;
            }
        }
        state.fitted.insert(self.path.clone(), stat);
        Ok(())
    }

    /// The newest copy.
    fn open(&self, place: &Place, state: &State) -> std::io::Result<Option<std::fs::File>> {
        let (folder, name) = split(&self.path);
        for id in state.stack.iter().rev() {
            let layer = Layer::open(&place.layer(*id), place.flavour)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = open_beneath(layer.root(), folder)
                .and_then(|folder| Ok(openat(folder, name, flags, Mode::empty())?));
            match file {
                Ok(file) => return Ok(Some(file.into())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Gives every unchanged file in a git index the print of its copy. `None`: not an index that is understood here.
fn fit(bytes: &mut [u8], copies: &Index) -> Option<bool> {
    let (body, checksum) = bytes.split_at_mut_checked(bytes.len().checked_sub(CHECKSUM)?)?;
    let has_checksum = checksum.iter().any(|byte| *byte != 0);
    // With another hash both its length and that of an entry would be others.
    if has_checksum && *checksum != *sum(body)? {
        return None;
    }
    let is_changed = fit_entries(body, copies)?;
    if is_changed && has_checksum {
        checksum.copy_from_slice(&sum(body)?);
    }
    Some(is_changed)
}

fn sum(body: &[u8]) -> Option<Vec<u8>> {
    let mut hasher = hasher(Kind::Sha1);
    hasher.update(body);
    Some(hasher.try_finalize().ok()?.as_slice().to_vec())
}

fn fit_entries(body: &mut [u8], copies: &Index) -> Option<bool> {
    if body.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (word(body, 4)?, word(body, 8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut is_changed = false;
    let mut at = HEADER;
    let mut path = Vec::new();
    for _ in 0..count {
        let is_extended = body.get(at + FLAGS)? & 0x40 != 0;
        let mut end = at + FLAGS + if is_extended { 4 } else { 2 };
        if version == 4 {
            path.truncate(path.len().checked_sub(varint(body, &mut end)?)?);
        } else {
            path.clear();
        }
        let name = body.get(end..)?.split(|byte| *byte == 0).next()?;
        path.extend_from_slice(name);
        end += name.len() + 1;
        if version < 4 {
            // One to eight zeros, so that the next entry begins at a multiple of eight bytes from this one.
            end = at + (end - at).next_multiple_of(8);
        }
        if let Some(Entry::File { stat, print, .. }) = copies.at(&path)
            && is_of(body.get(at..)?, stat)?
        {
            set(body, at, print)?;
            is_changed = true;
        }
        at = end;
    }
    Some(is_changed)
}

/// Is this entry one of a file that looks like `stat`, as git would say?
fn is_of(entry: &[u8], stat: &Stat) -> Option<bool> {
    let same_time = |at, time: (i64, u32)| {
        let (seconds, nanos) = (word(entry, at)?, word(entry, at + 4)?);
        // Not every git writes them.
        Some(seconds == low(time.0.cast_unsigned()) && (nanos == 0 || nanos == time.1))
    };
    let same = [(INO, low(stat.ino)), (UID, stat.uid), (GID, stat.gid), (SIZE, low(stat.size))];
    let mut is_same = same_time(CTIME, stat.ctime)? && same_time(MTIME, stat.mtime)?;
    for (at, value) in same {
        is_same &= word(entry, at)? == value;
    }
    Some(is_same)
}

fn set(body: &mut [u8], entry: usize, print: &Print) -> Option<()> {
    let words =
        [(CTIME, low(print.ctime.0.cast_unsigned())), (CTIME + 4, print.ctime.1), (INO, low(print.ino))];
    for (at, value) in words {
        body.get_mut(entry + at..entry + at + 4)?.copy_from_slice(&value.to_be_bytes());
    }
    Some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

/// Git's numbers of any length: seven bits a byte, the highest first, and no number written in two ways.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?.checked_mul(0x80)?;
    }
}

/// Git keeps 32 bits of everything.
fn low(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).expect("only the low bits are left")
}

const HEADER: usize = 12;
const CHECKSUM: usize = 20;
/// Where in an entry what stands.
const CTIME: usize = 0;
const MTIME: usize = 8;
const INO: usize = 20;
const UID: usize = 28;
const GID: usize = 32;
const SIZE: usize = 36;
const FLAGS: usize = 60;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::index::Role;
    use super::*;

    /// An index with one file, as git writes it.
    fn index(version: u32, name: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend([version, 1].map(u32::to_be_bytes).concat());
        bytes.extend([0; FLAGS]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        if version == 4 {
            bytes.push(0);
        }
        bytes.extend(name);
        let end = if version == 4 {
            bytes.len() + 1
        } else {
            (bytes.len() - HEADER + 1).next_multiple_of(8) + HEADER
        };
        bytes.resize(end, 0);
        signed(bytes)
    }

    fn signed(mut body: Vec<u8>) -> Vec<u8> {
        body.extend(sum(&body).unwrap());
        body
    }

    fn copies(name: &[u8]) -> (Index, Print) {
        let print = Print { ino: 7, ctime: (8, 9) };
        let mut copies = Index::new(Role::Work);
        copies.set(0, name, Entry::File { stat: Stat::default(), print, flaw: None });
        (copies, print)
    }

    #[test]
    fn a_file_that_looks_as_the_index_says_gets_the_print_of_its_copy() {
        for version in [2, 3, 4] {
            let (copies, print) = copies(b"file");
            let mut bytes = index(version, b"file");
            assert_eq!(fit(&mut bytes, &copies), Some(true), "version {version}");
            let entry = &bytes[HEADER..];
            let told = (word(entry, INO), word(entry, CTIME), word(entry, CTIME + 4));
            assert_eq!(told, (Some(7), Some(8), Some(print.ctime.1)));
            // The second time there is nothing to do, and its checksum is right.
            assert_eq!(fit(&mut bytes, &copies), Some(false), "version {version}");
        }
    }

    proptest! {
        #[test]
        fn no_index_whatever_brings_it_down_or_changes_its_length(
            version in 0..6_u32,
            count in any::<u32>(),
            rest in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut body = b"DIRC".to_vec();
            body.extend([version, count].map(u32::to_be_bytes).concat());
            body.extend(&rest);
            let mut bytes = signed(body);
            let length = bytes.len();
            let (copies, _) = copies(b"");
            fit(&mut bytes, &copies);
            prop_assert_eq!(bytes.len(), length);
        }
    }
}
