//! Finding renamed files: one that is gone and one that is new, with the same contents.

use std::collections::HashMap;
use std::io;

use super::compare::same;
use super::part::PartDiff;
use super::walk::{Found, Kind};
use crate::capture::files::split;

/// Makes one change of each such pair.
pub(super) fn pair(part: &PartDiff, found: &mut Vec<Found>) -> io::Result<()> {
    let mut gone: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, old) in found.iter().enumerate().filter(|(_, found)| is(found, Kind::Deleted)) {
        gone.entry(size(old)).or_default().push(at);
    }
    let mut budget = Budget { looks: LOOKS, bytes: BYTES };
    let mut used = Vec::new();
    for at in 0..found.len() {
        let new = &found[at];
        let Some(candidates) = gone.get_mut(&size(new)).filter(|_| is(new, Kind::Added)) else { continue };
        // A file that moved to another folder mostly keeps its name.
        let name = split(&new.path).1;
        candidates.sort_by_key(|old| split(&found[*old].path).1 != name);
        let mut met = None;
        for (place, old) in candidates.iter().enumerate() {
            if !budget.allows(size(new)) {
                tracing::debug!("too many files to look for more that were renamed");
                return finish(found, &used);
            }
            if is_same(part, &found[*old], new)? {
                met = Some(place);
                break;
            }
        }
        if let Some(place) = met {
            used.push((candidates.remove(place), at));
        }
    }
    finish(found, &used)
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
    let compared = part.read_before(old).and_then(|old| same(old, part.read_after(new)?));
    match compared {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            Ok(false)
        }
        other => other,
    }
}

fn finish(found: &mut Vec<Found>, pairs: &[(usize, usize)]) -> io::Result<()> {
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
    Ok(())
}

/// Empty files are all alike; nobody renamed them.
fn is(found: &Found, kind: Kind) -> bool {
    found.kind == kind && found.is_file() && size(found) > 0
}

fn size(found: &Found) -> u64 {
    let before = found.before.as_ref().map(|node| &node.look);
    before.or(found.after.as_ref()).map_or(0, |look| look.entry.size)
}

const LOOKS: u64 = 20_000;
const BYTES: u64 = 1 << 30;
