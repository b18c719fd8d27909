//! What is in a folder and below it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::exec::FrameKind;
use model::files::{Entries, Entry, FileKind};

use super::Wire;
use super::entry::look;
use super::fault::{Fault, is_absent};
use crate::init::user::Names;

/// Depth first, by name, links not followed.
pub(super) fn entries(wire: &mut Wire, folder: &Path, depth: u32) -> Result<(), Fault> {
    if !fs::metadata(folder)?.is_dir() {
        return Err(Fault::NotFolder);
    }
    let names = Names::read();
    let mut pending: Vec<(u32, PathBuf)> = children(folder)?.into_iter().map(|child| (1, child)).collect();
    let (mut batch, mut weight) = (Entries::default(), 0);
    while let Some((level, path)) = pending.pop() {
        let entry = match look(&path, &names) {
            // It was removed meanwhile.
            Err(error) if is_absent(&error) => continue,
            other => other?,
        };
        if level < depth && entry.stat.kind == FileKind::Directory {
            // One that may not be read, or was removed meanwhile, is shown without what is in it.
            pending.extend(children(&path).unwrap_or_default().into_iter().map(|child| (level + 1, child)));
        }
        weight += weigh(&entry);
        batch.entries.push(entry);
        if weight > HEAVY {
            wire.send(FrameKind::Answer, &std::mem::take(&mut batch))?;
            weight = 0;
        }
    }
    wire.send(FrameKind::Answer, &batch)?;
    Ok(wire.send(FrameKind::Answer, &())?)
}

/// The last name first: they are taken from the end.
fn children(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut children =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    children.sort_unstable_by(|a, b| b.cmp(a));
    Ok(children)
}

/// About how long an entry is in a message, and rather less than that: names that are not text are written as numbers.
pub(super) fn weigh(entry: &Entry) -> usize {
    let noted: usize = entry.metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    512 + 4 * (entry.path.0.len() + entry.stat.name.0.len()) + 6 * noted
}

/// Entries of this weight are sent together. A message may be twice as long and more.
pub(super) const HEAVY: usize = 256 << 10;
