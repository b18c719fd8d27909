//! Making one layer of two: a layer of differences is worked into the one below it, or into a new one.
//!
//! Moving is done oldest layer first and in such an order that the merged view is the same after every single
//! step, so a crash in the middle leaves a right, if untidy, stack.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::copy::Scratch;
use super::files::{join, list, look, look_at, make_writable, open_beneath, remove_tree, split};
use super::layer::{Flavour, Kind, Layer, kind_of};
use super::metadata;

/// May the upper layer be used up?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Move,
    /// Somebody still uses it: its files are linked.
    Link,
}

/// Works `upper` into `lower`.
pub(super) fn absorb(
    upper: &Layer,
    lower: &Layer,
    how: How,
    flavour: Flavour,
    scratch: &Scratch,
) -> io::Result<()> {
    // Folders before what is in them, and again afterwards for their metadata as it was before.
    let mut pending = vec![(Vec::new(), None)];
    while let Some((path, emptied)) = pending.pop() {
        let from = open_beneath(upper.root(), &path)?;
        let into = open_beneath(lower.root(), &path)?;
        make_writable(&into)?;
        if let Some(stat) = emptied {
            metadata::copy(&from, &stat, &into)?;
            if how == How::Move && !path.is_empty() {
                let (parent, name) = split(&path);
                let parent = open_beneath(upper.root(), parent)?;
                rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR)?;
            }
            continue;
        }
        pending.push((path.clone(), Some(look_at(&from)?.stat)));
        if how == How::Move {
            make_writable(&from)?;
        }
        for (name, _) in list(&from)? {
            if absorb_entry(&from, &into, &name, how, flavour, lower, scratch)? == Next::Descend {
                pending.push((join(&path, &name), None));
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Done,
    Descend,
}

fn absorb_entry(
    from: &impl AsFd,
    into: &impl AsFd,
    name: &[u8],
    how: How,
    flavour: Flavour,
    lower: &Layer,
    scratch: &Scratch,
) -> io::Result<Next> {
    let Some(seen) = look(from, name)? else { return Ok(Next::Done) };
    match seen.stat.file_type() {
        FileType::Directory => {
            let dir = open_beneath(from, name)?;
            let kind = kind_of(&dir, flavour)?;
            if kind == Kind::Lead {
                if look(into, name)?.is_none_or(|seen| seen.stat.file_type() != FileType::Directory) {
                    lower.place_dir(into, name, &Kind::Lead, scratch)?;
                }
                return Ok(Next::Descend);
            }
            if how == How::Link {
                lower.place_dir(into, name, &kind, scratch)?;
                return Ok(Next::Descend);
            }
            // An ordinary user may move a folder only if they may write into it.
            make_writable(&dir)?;
            remove_tree(into, name)?;
            rustix::fs::renameat(from, name, into, name)?;
            metadata::copy(&dir, &seen.stat, &dir)?;
        }
        FileType::CharacterDevice => {
            lower.remove(into, name)?;
            if how == How::Move {
                rustix::fs::unlinkat(from, name, AtFlags::empty())?;
            }
        }
        _ if how == How::Move => {
            match rustix::fs::renameat(from, name, into, name) {
                Err(Errno::ISDIR) => {
                    remove_tree(into, name)?;
                    rustix::fs::renameat(from, name, into, name)?;
                }
                other => other?,
            }
            // Two links of one file: renaming did nothing.
            remove_tree(from, name)?;
        }
        _ => scratch.place(into, name, |scratch, temporary| {
            Ok(rustix::fs::linkat(from, name, scratch, temporary, AtFlags::empty())?)
        })?,
    }
    Ok(Next::Done)
}
