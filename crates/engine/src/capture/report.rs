//! What there is to say about a frozen state: caveats, masked paths, and how far behind reality it is.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use model::Caveat;
use model::caveat::CaveatKind;
use model::exec::Text;
use model::mask::NameMask;
use model::sandbox::Masked;
use rustix::fs::{FileType, Mode};

use super::files::{DIRECTORY, Stat, look, open_beneath, split};
use super::index::{Absence, Entry, Flaw, ROOT, Role};
use super::layer::{Flavour, Kind, Layer, kind_of};
use super::place::Place;
use super::state::State;
use super::{CaptureError, FROZEN_ROOT, Live};

/// The masked paths that `unmask` lifts: by the mask's own name, or by the path, absolute or from the root.
pub(super) fn unmasked(place: &Place, state: &State, unmask: &[String]) -> BTreeSet<Vec<u8>> {
    let mut shown = BTreeSet::new();
    if unmask.is_empty() {
        return shown;
    }
    for (path, mask) in masked_paths(state) {
        let absolute = place.path.join(OsStr::from_bytes(&path));
        let name = place.masks.get(mask as usize).map(|mask| mask.name.as_str());
        if unmask.iter().any(|wish| {
            Some(wish.as_str()) == name
                || wish.as_bytes() == path
                || wish.as_bytes() == absolute.as_os_str().as_bytes()
        }) {
            shown.insert(path);
        }
    }
    shown
}

pub(super) fn masked(place: &Place, state: &State, shown: &BTreeSet<Vec<u8>>) -> Vec<Masked> {
    masked_paths(state)
        .filter(|(path, _)| !shown.contains(path))
        .map(|(path, mask)| Masked {
            path: Text::from(place.path.join(OsStr::from_bytes(&path))),
            reason: place.masks.get(mask as usize).map(|mask| mask.reason.clone()).unwrap_or_default(),
        })
        .collect()
}

fn masked_paths(state: &State) -> impl Iterator<Item = (Vec<u8>, u32)> {
    state.index.notable.iter().filter_map(|(dir, name)| match state.index.entry(*dir, name)? {
        Entry::Masked(mask) => Some((state.index.path_of(*dir, name), *mask)),
        _ => None,
    })
}

pub(super) fn caveats(place: &Place, state: &State) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let mut left_out = 0_u64;
    for (dir, name) in &state.index.notable {
        let Some(text) = state.index.entry(*dir, name).and_then(shortcoming) else { continue };
        if caveats.len() == MOST_CAVEATS {
            left_out += 1;
            continue;
        }
        let path = place.path.join(OsStr::from_bytes(&state.index.path_of(*dir, name)));
        caveats.push(Caveat::at(CaveatKind::Capture, path.to_string_lossy(), text));
    }
    if left_out > 0 {
        let text = format!(
            "{left_out} more files in the workspace could not be captured faithfully, beside the {MOST_CAVEATS} that are named; \
             the next sandbox names them, once some of these are gone."
        );
        caveats.push(Caveat::new(CaveatKind::Capture, text));
    }
    caveats.extend(live(place, state));
    let text = if state.is_watched() {
        "Writes through a memory mapping that is still open, or through a hard link made outside of the workspace, \
         are not noticed; they are captured when the mapping ends or the file changes in another way."
    } else {
        "The workspace cannot be watched (fs.inotify limits), so it is walked for every sandbox, which is slower."
    };
    caveats.push(Caveat::at(CaveatKind::Capture, place.path.to_string_lossy(), text));
    caveats
}

/// What of the workspace is not frozen.
fn live(place: &Place, state: &State) -> Option<Caveat> {
    let index = &state.index;
    let shown = match place.live {
        Live::Copy => return None,
        Live::Redirect => {
            let notable = index.notable.iter();
            let live = notable.filter(|(dir, name)| matches!(index.entry(*dir, name), Some(Entry::Live(_))));
            live.map(|(dir, name)| index.path_of(*dir, name)).collect::<Vec<_>>()
        }
        // The names in them are frozen, what is in the files is not.
        Live::Stubs => {
            let is_ignored = |id| index.dir(id).is_some_and(|dir| dir.role == Role::Ignored);
            let ignored = index.dirs().filter(|(id, dir)| is_ignored(*id) && !is_ignored(dir.parent));
            ignored.map(|(id, _)| index.path(id)).collect()
        }
    };
    let first = String::from_utf8_lossy(shown.first()?).into_owned();
    let which = match shown.len() {
        1 => format!("`{first}`, which git ignores, is"),
        count => format!("{count} folders that git ignores, as `{first}`, are"),
    };
    let text = format!(
        "{which} read live, and may change until the sandbox writes there; secrets are looked for in the upper {} levels.",
        NameMask::LIVE_LEVELS
    );
    Some(Caveat::at(CaveatKind::Live, place.path.to_string_lossy(), text))
}

fn shortcoming(entry: &Entry) -> Option<&'static str> {
    match entry {
        Entry::File { flaw, .. } => flaw.map(|flaw| match flaw {
            Flaw::Torn => "This file kept changing while it was copied; the copy may mix old and new.",
            Flaw::Metadata => "The owner or extended attributes of this file could not be copied.",
        }),
        Entry::Absent { why, .. } => match why {
            Absence::Socket => Some("A socket belongs to a running process; the sandbox does not have it."),
            Absence::Device => Some("A device file is not captured; the sandbox does not have it."),
            Absence::Unreadable => Some("This could not be read; the sandbox does not have it."),
            Absence::Large => {
                Some("An ignored file of more than 64 MiB is not captured; the sandbox does not have it.")
            }
            Absence::Mount => {
                Some("Another file system is mounted here; the sandbox does not see it in its workspace.")
            }
            Absence::Transient => None,
        },
        Entry::Dir(_)
        | Entry::Linked(_)
        | Entry::Stub(_)
        | Entry::Symlink(_)
        | Entry::Fifo(_)
        | Entry::Live(_)
        | Entry::Masked(_)
        | Entry::Unknown => None,
    }
}

/// The first `cap` paths that differ between a frozen state and reality, and how many differ. Git's own files aside, and what
/// git ignores: logs and build folders change all the time, a sandbox reads most of it live, and it is nobody's work.
pub(super) fn behind(
    place: &Place,
    state: &mut State,
    layers: &[PathBuf],
    cap: usize,
) -> Result<(Vec<PathBuf>, u64), CaptureError> {
    let newer = state.stack.iter().map(|id| place.layer(*id)).filter(|layer| !layers.contains(layer));
    let mut candidates = BTreeSet::new();
    for path in newer {
        let changes = Layer::open(&path, place.flavour).and_then(|layer| layer.changes());
        candidates.extend(changes.map_err(|source| CaptureError::MergeLayers { path, source })?);
    }
    let mut first = Vec::new();
    let mut total = 0;
    for path in candidates {
        if path.split(|byte| *byte == b'/').any(|name| name == b".git") {
            continue;
        }
        let real = place.path.join(OsStr::from_bytes(&path));
        let failed = |source| CaptureError::ReadWorkspace { path: real.clone(), source };
        let then = look_through(layers, &path, place.flavour).map_err(failed)?;
        let now = match look_beneath(place, &path) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => None,
            other => other.map_err(failed)?,
        };
        let is_folder = |stat: &Stat| stat.file_type() == FileType::Directory;
        if !alike(then.as_ref(), now.as_ref())
            && !is_ignored(place, state, &path, now.as_ref().or(then.as_ref()).is_some_and(is_folder))
        {
            total += 1;
            if first.len() < cap {
                first.push(PathBuf::from(OsStr::from_bytes(&path)));
            }
        }
    }
    Ok((first, total))
}

/// Does git ignore it, by the rules of now? What it tracks it does not ignore.
fn is_ignored(place: &Place, state: &mut State, path: &[u8], is_folder: bool) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let above: Vec<&[u8]> = slashes.map(|at| &path[..at]).collect();
    // The folder may be gone, or be read live: then the rules of one further up say it.
    let known = above.iter().rposition(|folder| state.index.find(folder).is_some());
    let id = known.and_then(|at| state.index.find(above[at])).unwrap_or(ROOT);
    let is_below_ignored = state.index.dir(id).is_some_and(|dir| dir.role == Role::Ignored);
    let Some(rules) = state.rules(place, id) else { return is_below_ignored };
    let unknown = &above[known.map_or(0, |at| at + 1)..];
    let is_ignored = is_below_ignored
        || unknown.iter().any(|folder| rules.ignore(folder, true))
        || rules.ignore(path, is_folder);
    is_ignored && !rules.repository.tracks(path, is_folder)
}

fn look_beneath(place: &Place, path: &[u8]) -> io::Result<Option<Stat>> {
    let (folder, name) = split(path);
    match open_beneath(&place.root, folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => Ok(look(other?, name)?.map(|seen| seen.stat)),
    }
}

/// What an overlay of these layers (newest first) would show at `path`.
pub(super) fn look_through(layers: &[PathBuf], path: &[u8], flavour: Flavour) -> io::Result<Option<Stat>> {
    'layers: for layer in layers {
        let mut dir = rustix::fs::open(layer.join(FROZEN_ROOT), DIRECTORY, Mode::empty())?;
        let mut is_complete = kind_of(&dir, flavour)? != Kind::Lead;
        let mut names = path.split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            match look(&dir, name)? {
                None if is_complete => return Ok(None),
                None => continue 'layers,
                Some(seen) if seen.stat.file_type() == FileType::CharacterDevice => return Ok(None),
                Some(seen) if names.peek().is_none() => return Ok(Some(seen.stat)),
                Some(seen) if seen.stat.file_type() != FileType::Directory => return Ok(None),
                Some(_) => {
                    dir = open_beneath(&dir, name)?;
                    is_complete |= kind_of(&dir, flavour)? != Kind::Lead;
                }
            }
        }
    }
    Ok(None)
}

fn alike(then: Option<&Stat>, now: Option<&Stat>) -> bool {
    match (then, now) {
        (None, None) => true,
        (Some(then), Some(now)) => {
            let is_folder = then.file_type() == FileType::Directory;
            (then.mode, then.uid, then.gid) == (now.mode, now.uid, now.gid)
                && (is_folder || (then.size, then.mtime) == (now.size, now.mtime))
        }
        _ => false,
    }
}

/// Each is written down with the sandbox, so there must be an end; nobody has so many sockets by intention.
const MOST_CAVEATS: usize = 10_000;
