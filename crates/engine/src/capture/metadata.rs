//! Owner, mode, times and extended attributes, from one open file to another.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::files::Stat;

/// Did everything come over?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Faith {
    Whole,
    /// Owner or extended attributes did not.
    Partial,
}

/// Copies the metadata of `source`, which looks like `stat`, to `target`, whose owner is ours so far.
pub(super) fn copy(source: impl AsFd, stat: &Stat, target: impl AsFd) -> io::Result<Faith> {
    let owner = own(stat, |uid, gid| rustix::fs::fchown(&target, uid, gid))?;
    // Before the mode: an ordinary user cannot set attributes on their own read-only file.
    let attributes = copy_attributes(source, &target)?;
    rustix::fs::fchmod(&target, permissions(stat, owner))?;
    rustix::fs::futimens(&target, &times(stat))?;
    Ok(if owner == Faith::Whole { attributes } else { owner })
}

/// Gives away ownership with `change`, where it is not ours already.
pub(super) fn own(
    stat: &Stat,
    change: impl FnOnce(Option<Uid>, Option<Gid>) -> rustix::io::Result<()>,
) -> io::Result<Faith> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    if uid.is_root() || stat.uid != uid.as_raw() || stat.gid != gid.as_raw() {
        match change(Some(Uid::from_raw(stat.uid)), Some(Gid::from_raw(stat.gid))) {
            Err(Errno::PERM) => return Ok(Faith::Partial),
            other => other?,
        }
    }
    Ok(Faith::Whole)
}

/// Set-id bits must not change their meaning with the owner.
pub(super) fn permissions(stat: &Stat, owner: Faith) -> Mode {
    match owner {
        Faith::Whole => stat.permissions(),
        Faith::Partial => stat.permissions().difference(Mode::SUID | Mode::SGID),
    }
}

pub(crate) fn times(stat: &Stat) -> Timestamps {
    let time = Timespec { tv_sec: stat.mtime.0, tv_nsec: i64::from(stat.mtime.1) };
    Timestamps { last_access: time, last_modification: time }
}

fn copy_attributes(source: impl AsFd, target: impl AsFd) -> io::Result<Faith> {
    let mut faith = Faith::Whole;
    let mut stale = attribute_names(&target)?;
    for name in attribute_names(&source)? {
        let mut value = vec![0; rustix::fs::fgetxattr_query(&source, name.as_c_str())?];
        let length = rustix::fs::fgetxattr(&source, name.as_c_str(), &mut value)?;
        value.truncate(length);
        stale.retain(|old| *old != name);
        match rustix::fs::fsetxattr(&target, name.as_c_str(), &value, XattrFlags::empty()) {
            Err(Errno::PERM | Errno::NOTSUP | Errno::NOSPC | Errno::TOOBIG | Errno::ACCESS) => {
                faith = Faith::Partial;
            }
            other => other?,
        }
    }
    for name in stale {
        rustix::fs::fremovexattr(&target, name.as_c_str())?;
    }
    Ok(faith)
}

/// The attributes that belong to the file. The overlay's own are about layers, `trusted.*` about other systems.
pub(crate) fn attribute_names(file: impl AsFd) -> io::Result<Vec<std::ffi::CString>> {
    let length = match rustix::fs::flistxattr_query(&file) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = vec![0; length];
    let length = rustix::fs::flistxattr(&file, &mut names)?;
    let is_root = rustix::process::geteuid().is_root();
    let names = names[..length].split_inclusive(|byte| *byte == 0).filter_map(|name| {
        let name = CStr::from_bytes_with_nul(name).ok()?;
        let text = name.to_bytes();
        let belongs = text.starts_with(b"user.") && !text.starts_with(b"user.overlay.")
            || is_root && (text == b"security.capability" || text.starts_with(b"system.posix_acl_"));
        belongs.then(|| name.to_owned())
    });
    Ok(names.collect())
}
