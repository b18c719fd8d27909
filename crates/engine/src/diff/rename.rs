//! Finding renamed files: one that is gone and one that is new, with the same contents.

use std::collections::HashMap;
use std::io;

use super::compare::same;
use super::part::PartDiff;
use super::report::readable;
use super::walk::{Found, Kind};
use crate::capture::files::split;

/// Makes one change of each such pair.
pub(super) fn pair(part: &PartDiff, found: &mut Vec<Found>) -> io::Result<()> {
    let loose = |kind| -> Vec<Loose<'_>> {
        let ends = found.iter().enumerate().filter(|(_, found)| is(found, kind));
        ends.map(|(at, found)| Loose { at, size: size(found), name: split(&found.path).1 }).collect()
    };
    let (gone, new) = (loose(Kind::Deleted), loose(Kind::Added));
    let pairs = pairs(&gone, &new, |old, new| is_same(part, &found[old], &found[new]))?;
    finish(found, &pairs);
    Ok(())
}

/// A file that is gone, or is new: one end of what may be a rename.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loose<'a> {
    /// By which the caller knows it.
    pub(super) at: usize,
    /// Never 0: empty files are all alike, nobody renamed them.
    pub(super) size: u64,
    pub(super) name: &'a [u8],
}

/// Finds for each new file one that is gone and held the same.
pub(super) fn pairs(
    gone: &[Loose<'_>],
    new: &[Loose<'_>],
    mut is_same: impl FnMut(usize, usize) -> io::Result<bool>,
) -> io::Result<Vec<(usize, usize)>> {
    let mut left: HashMap<u64, Vec<Loose<'_>>> = HashMap::new();
    for old in gone {
        left.entry(old.size).or_default().push(*old);
    }
    let mut budget = Budget { looks: LOOKS, bytes: BYTES };
    let mut pairs = Vec::new();
    for new in new {
        let Some(candidates) = left.get_mut(&new.size) else { continue };
        // A file that moved to another folder mostly keeps its name.
        candidates.sort_by_key(|old| old.name != new.name);
        let mut met = None;
        for (place, old) in candidates.iter().enumerate() {
            if !budget.allows(new.size) {
                tracing::debug!("too many files to look for more that were renamed");
                return Ok(pairs);
            }
            if is_same(old.at, new.at)? {
                met = Some(place);
                break;
            }
        }
        if let Some(place) = met {
            pairs.push((candidates.remove(place).at, new.at));
        }
    }
    Ok(pairs)
}

/// How much is read in search of renames.
struct Budget {
    looks: u64,
    bytes: u64,
}

impl Budget {
    fn allows(&mut self, bytes: u64) -> bool {
        let left = self.looks.checked_sub(1).zip(self.bytes.checked_sub(bytes));
        match left {
            Some((looks, bytes)) => {
                *self = Self { looks, bytes };
                true
            }
            None => false,
        }
    }
}

/// Files that cannot be read, or are gone meanwhile, are like no other.
fn is_same(part: &PartDiff, old: &Found, new: &Found) -> io::Result<bool> {
    readable(part.read_before(old).and_then(|old| same(old, part.read_after(new)?)))
}

fn finish(found: &mut Vec<Found>, pairs: &[(usize, usize)]) {
    for (old, new) in pairs {
        let before = found[*old].before.clone();
        let new = &mut found[*new];
        new.kind = Kind::Renamed;
        new.before = before;
        new.contents = false;
    }
    let mut gone: Vec<usize> = pairs.iter().map(|(old, _)| *old).collect();
    gone.sort_unstable();
    for old in gone.into_iter().rev() {
        found.remove(old);
    }
}

fn is(found: &Found, kind: Kind) -> bool {
    found.kind == kind && found.is_file() && size(found) > 0
}

fn size(found: &Found) -> u64 {
    let before = found.before.as_ref().map(|node| &node.look);
    before.or(found.after.as_ref()).map_or(0, |look| look.entry.size)
}

const LOOKS: u64 = 20_000;
const BYTES: u64 = 1 << 30;
