//! Several layers that lie on each other, made one.
//!
//! The new layer has further names for the files of the old ones, so that no byte is copied, and says of each folder how it
//! stands to what is below all of them.

use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};

use model::files::FileKind;
use rustix::fs::{AtFlags, FileType, Mode, XattrFlags, linkat, makedev, mkdirat, mknodat};
use rustix::io::Errno;

use super::copy::dress;
use crate::capture::files::{DIRECTORY, join, look_at, open_beneath};
use crate::capture::layer::Flavour;
use crate::diff::tree::Opaque;
use crate::diff::upper::Upper;

/// Which paths of the folders come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// These with all below them, and the folders on the way to them.
    Named(Vec<Vec<u8>>),
}

/// How a path stands to those that come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Comes,
    /// Something below it comes.
    OnTheWay,
    Stays,
}

impl Which {
    fn standing(&self, path: &[u8]) -> Standing {
        let Self::Named(named) = self else { return Standing::Comes };
        let is_below = |path: &[u8], above: &[u8]| {
            let rest = path.strip_prefix(above);
            above.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        if named.iter().any(|named| is_below(path, named)) {
            Standing::Comes
        } else if named.iter().any(|named| is_below(named, path)) {
            Standing::OnTheWay
        } else {
            Standing::Stays
        }
    }
}

/// Makes `target` show, over whatever lies below, what these folders show, top first, of the paths that come.
pub(crate) fn merge(folders: &[PathBuf], target: &Path, flavour: Flavour, which: &Which) -> io::Result<()> {
    let Some((top, below)) = folders.split_first() else { return Ok(()) };
    let upper = Upper::open(top, below.iter().cloned(), flavour)?;
    std::fs::create_dir(target)?;
    let root = rustix::fs::open(target, DIRECTORY, Mode::empty())?;
    let mut folders = vec![Vec::new()];
    let mut at = 0;
    while let Some(path) = folders.get(at).cloned() {
        at += 1;
        let folder = open_beneath(&root, &path)?;
        let is_opaque = is_opaque(&upper, &path, which)?;
        for name in upper.names(&path)? {
            let child = join(&path, &name);
            let look = upper.look(&child)?.ok_or(Errno::NOENT)?;
            match which.standing(&child) {
                Standing::Comes => {}
                Standing::OnTheWay if look.entry.kind == FileKind::Directory && !look.is_whiteout => {}
                Standing::OnTheWay | Standing::Stays => continue,
            }
            if look.is_whiteout {
                // Where nothing shines through, there is nothing to hide.
                if !is_opaque {
                    mknodat(&folder, &*name, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))?;
                }
            } else if look.entry.kind == FileKind::Directory {
                mkdirat(&folder, &*name, Mode::RWXU)?;
                folders.push(child);
            } else {
                let (source, old) = upper.place(&child)?;
                linkat(&*source, &*old, &folder, &*name, AtFlags::empty())?;
            }
        }
    }
    // The deepest first: what is made in a folder changes its time, and it may be read-only.
    for path in folders.iter().rev() {
        let (source, folder) = (upper.open_entry(path)?, open_beneath(&root, path)?);
        let marks = upper.marks(path)?;
        if is_opaque(&upper, path, which)? {
            rustix::fs::fsetxattr(&folder, flavour.opaque(), b"y", XattrFlags::empty())?;
        }
        if let Some(redirect) = &marks.redirect {
            rustix::fs::fsetxattr(&folder, flavour.redirect(), redirect, XattrFlags::empty())?;
        }
        dress(&source, &folder, &look_at(&source)?.stat, |name| !is_mark(name))?;
    }
    Ok(())
}

/// Does nothing shine through? Of a folder that is only on the way, the rest is as it is below.
fn is_opaque(upper: &Upper, path: &[u8], which: &Which) -> io::Result<bool> {
    Ok(which.standing(path) == Standing::Comes && upper.marks(path)?.opaque == Opaque::Yes)
}

/// Overlayfs's own word about a folder in the layer it stood in. What an overlay inside the sandbox noted is a file's like
/// any other, and goes by a name with `overlay.` twice.
fn is_mark(name: &CStr) -> bool {
    let name = name.to_bytes();
    let rest = name.strip_prefix(b"trusted.overlay.").or_else(|| name.strip_prefix(b"user.overlay."));
    rest.is_some_and(|rest| !rest.starts_with(b"overlay."))
}
