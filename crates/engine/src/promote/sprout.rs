//! Building what is to come, out of sight.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use model::exec::Text;
use model::files::FileKind;
use rustix::fs::{AtFlags, Mode, OFlags, openat};
use rustix::io::Errno;

use super::garb::Garb;
use super::links::Anchor;
use super::moves::Tree;
use super::reality::{Reality, Spot};
use crate::capture::copy::copy_bytes;
use crate::capture::files::{join, list, look, look_at, open_beneath, split};
use crate::diff::{Contents, Shared, Version};

/// One thing that is to come.
#[derive(Debug)]
pub(super) struct Sprout<'a> {
    /// Below the path that is moved; empty for that itself.
    pub(super) path: Vec<u8>,
    pub(super) matter: Matter<'a>,
    pub(super) garb: Garb,
}

/// What it is made of.
#[derive(Debug)]
pub(super) enum Matter<'a> {
    Folder,
    Link(Text),
    /// The sandbox's file.
    Version(Version<'a>),
    /// Reality's file, dressed differently.
    Reality(Spot),
    Merged(Vec<u8>),
}

impl Sprout<'_> {
    /// Where it will be.
    pub(super) fn spot(&self, top: &Spot) -> Spot {
        if self.path.is_empty() { top.clone() } else { top.child(&self.path) }
    }
}

/// Files of the sandbox that have several names: where one of them is already.
pub(super) type Links = HashMap<Shared, First>;

#[derive(Clone, Debug)]
pub(super) enum First {
    /// Built, at this path of the stage, and looking like this.
    Built(Vec<u8>, Garb),
    /// In reality, and stays there.
    Stands(Anchor),
}

/// Where the bytes of the sandbox's files come from.
#[derive(Debug)]
pub(super) enum Files {
    /// Each is copied.
    Copied(Links),
    /// They get further names, where they look as they should: for another layer, which changes no more than they do.
    Shared(Links),
}

/// Builds a tree in a folder under a path. It is on disk after [`Stage::sync`].
///
/// [`Stage::sync`]: super::stage::Stage::sync
pub(super) fn build(
    sprouts: &[Sprout<'_>],
    reality: &Reality,
    stage: &OwnedFd,
    slot: &[u8],
    files: &mut Files,
) -> io::Result<()> {
    for sprout in sprouts {
        let path = join(slot, &sprout.path);
        let path = path.strip_suffix(b"/").map_or(path.as_slice(), |path| path);
        let (folder, name) = split(path);
        let folder = open_beneath(stage, folder)?;
        match &sprout.matter {
            // Dressed when it is full.
            Matter::Folder => rustix::fs::mkdirat(&folder, name, Mode::RWXU)?,
            Matter::Link(target) => {
                rustix::fs::symlinkat(target.as_os_str(), &folder, name)?;
                sprout.garb.put_on_link(&folder, name)?;
            }
            Matter::Version(version) => {
                let links = match files {
                    Files::Shared(_) if share(version, &sprout.garb, &folder, name)? => continue,
                    Files::Copied(links) | Files::Shared(links) => links,
                };
                if link(version, &sprout.garb, reality, stage, path, links)? {
                    continue;
                }
                match version.contents()? {
                    Contents::File(source) => copy(&source.into(), &folder, name, &sprout.garb)?,
                    Contents::Bytes(bytes) => write(&bytes, &folder, name, &sprout.garb)?,
                }
            }
            Matter::Reality(spot) => copy(&reality.open_entry(spot)?, &folder, name, &sprout.garb)?,
            Matter::Merged(bytes) => write(bytes, &folder, name, &sprout.garb)?,
        }
    }
    // Each folder after all that is in it.
    for sprout in sprouts.iter().rev().filter(|sprout| matches!(sprout.matter, Matter::Folder)) {
        let path = join(slot, &sprout.path);
        let path = path.strip_suffix(b"/").map_or(path.as_slice(), |path| path);
        let folder = open_beneath(stage, path)?;
        sprout.garb.put_on(&folder)?;
    }
    Ok(())
}

/// Makes another name for a file that is there already, if the sandbox has it as one.
fn link(
    version: &Version<'_>,
    garb: &Garb,
    reality: &Reality,
    stage: &OwnedFd,
    path: &[u8],
    links: &mut Links,
) -> io::Result<bool> {
    let Some(file) = version.shared()? else { return Ok(false) };
    let (folder, name) = split(path);
    let folder = open_beneath(stage, folder)?;
    match links.get(&file) {
        Some(First::Built(first, looks)) if looks == garb => {
            let (first_folder, first_name) = split(first);
            let first_folder = open_beneath(stage, first_folder)?;
            rustix::fs::linkat(first_folder, first_name, folder, name, AtFlags::empty())?;
            return Ok(true);
        }
        Some(First::Stands(anchor)) if anchor.name_again(reality, &folder, name)? => return Ok(true),
        Some(First::Built(..) | First::Stands(_)) | None => {}
    }
    links.insert(file, First::Built(path.to_vec(), garb.clone()));
    Ok(false)
}

/// Gives a sealed file another name, if it looks as it should.
fn share(version: &Version<'_>, garb: &Garb, folder: &OwnedFd, name: &[u8]) -> io::Result<bool> {
    let Some((source, old)) = version.sealed()? else { return Ok(false) };
    let mtime = version.stat()?.map(|stat| stat.mtime);
    // Of a pipe or the like there is no other way.
    if version.entry.kind == FileKind::File && Garb::of_version(version, mtime)? != *garb {
        return Ok(false);
    }
    match rustix::fs::linkat(&*source, &*old, folder, name, AtFlags::empty()) {
        Err(Errno::MLINK) => Ok(false),
        other => other.map(|()| true).map_err(Into::into),
    }
}

fn copy(source: &OwnedFd, folder: &OwnedFd, name: &[u8], garb: &Garb) -> io::Result<()> {
    let target = openat(folder, name, CREATE, Mode::RUSR | Mode::WUSR)?;
    copy_bytes(source, &target, &look_at(source)?)?;
    garb.put_on(&target)
}

fn write(bytes: &[u8], folder: &OwnedFd, name: &[u8], garb: &Garb) -> io::Result<()> {
    let mut target = File::from(openat(folder, name, CREATE, Mode::RUSR | Mode::WUSR)?);
    target.write_all(bytes)?;
    garb.put_on(&target.into())
}

impl Tree {
    /// Looks at everything at and below a name; `None` if there is nothing.
    pub(super) fn of(folder: impl AsFd, name: &[u8]) -> io::Result<Option<Self>> {
        let Some(top) = look(&folder, name)? else { return Ok(None) };
        let mut tree = Self { top: top.stat, below: Vec::new() };
        if !tree.is_folder() {
            return Ok(Some(tree));
        }
        let top = open_beneath(&folder, name)?;
        let mut pending = vec![Vec::new()];
        while let Some(path) = pending.pop() {
            let folder = open_beneath(&top, &path)?;
            for (name, _) in list(&folder)? {
                let Some(seen) = look(&folder, &name)? else { continue };
                let path = join(&path, &name);
                if seen.stat.file_type() == rustix::fs::FileType::Directory {
                    pending.push(path.clone());
                }
                tree.below.push((Text(path), seen.stat));
            }
        }
        tree.below.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Some(tree))
    }
}

const CREATE: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
