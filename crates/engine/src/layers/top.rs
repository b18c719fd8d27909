//! The top folder of a part: what it looks like, and what it looked like before.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

use crate::capture::layer::attribute;
use crate::capture::metadata::attribute_names;
use crate::view::{Meta, Part};

/// Makes `upper` look like `below`, or else as the plan says.
pub(super) fn dress(upper: &Path, part: &Part, below: Option<&Path>) -> io::Result<()> {
    let like = match below {
        Some(below) => Meta::of(&fs::symlink_metadata(below)?),
        None => part.top,
    };
    if rustix::process::geteuid().is_root() {
        lchown(upper, Some(like.uid), Some(like.gid))?;
    }
    if let Some(below) = below {
        let folder = File::open(upper)?;
        for (name, value) in attributes(below)? {
            rustix::fs::fsetxattr(&folder, &name, &value, rustix::fs::XattrFlags::empty())?;
        }
    }
    fs::set_permissions(upper, Permissions::from_mode(like.mode))?;
    let time = rustix::fs::Timespec { tv_sec: like.modified.0, tv_nsec: like.modified.1.into() };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, upper, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Does `upper` look as [`dress`] made it, but for its time?
pub(super) fn looks_like(upper: &Path, part: &Part, below: Option<&Path>) -> io::Result<bool> {
    let now = fs::symlink_metadata(upper)?;
    let was = match below {
        Some(below) => Meta::of(&fs::symlink_metadata(below)?),
        None => part.top,
    };
    let is_owner_same = !rustix::process::geteuid().is_root() || (now.uid(), now.gid()) == (was.uid, was.gid);
    if !is_owner_same || now.mode() & 0o7777 != was.mode {
        return Ok(false);
    }
    let below = below.map_or_else(|| Ok(BTreeMap::new()), attributes)?;
    Ok(attributes(upper)? == below)
}

/// Those that belong to the folder, not to overlayfs.
fn attributes(path: &Path) -> io::Result<BTreeMap<CString, Vec<u8>>> {
    let folder = File::open(path)?;
    let mut attributes = BTreeMap::new();
    for name in attribute_names(&folder)? {
        if let Some(value) = attribute(&folder, &name)? {
            attributes.insert(name, value);
        }
    }
    Ok(attributes)
}
