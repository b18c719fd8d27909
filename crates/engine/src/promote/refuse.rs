//! What is never promoted, whoever asks.

use std::io;

use model::files::FileKind;
use model::promotion::RefusalReason;
use rustix::fs::{Access, AtFlags};

use super::reality::{Now, Real, Reality, Spot};
use crate::diff::Version;
use crate::launcher::Rights;

/// Why this version may not come into reality, if so.
pub(super) fn coming(version: &Version<'_>, rights: Rights) -> io::Result<Option<RefusalReason>> {
    let entry = &version.entry;
    let reason = match entry.kind {
        FileKind::Device => Some(RefusalReason::Device),
        FileKind::Fifo | FileKind::Socket => Some(RefusalReason::Endpoint),
        FileKind::File if entry.mode & SET_IDS != 0 => Some(RefusalReason::SetId),
        // On folders the bit only says to whose group new files belong.
        FileKind::File | FileKind::Directory | FileKind::Symlink => None,
    };
    if reason.is_some() {
        return Ok(reason);
    }
    match rights {
        Rights::User { uid, .. } if entry.uid != uid => return Ok(Some(RefusalReason::Owner)),
        Rights::User { .. } | Rights::Root => {}
    }
    let attributes = match version.attributes() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(Some(RefusalReason::Unreadable));
        }
        other => other?,
    };
    if attributes.contains_key(c"security.capability") {
        return Ok(Some(RefusalReason::Capability));
    }
    match (entry.kind, version.contents()) {
        (FileKind::File, Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(Some(RefusalReason::Unreadable))
        }
        (FileKind::File, Err(error)) => Err(error),
        _ => Ok(None),
    }
}

/// Why a folder that stays may not get other looks, if so.
pub(super) fn dressing(real: &Real, rights: Rights) -> Option<RefusalReason> {
    match rights {
        Rights::User { uid, .. } if real.stat.uid != uid => Some(RefusalReason::Owner),
        Rights::User { .. } | Rights::Root => None,
    }
}

/// Why nothing may be moved to or from a path, if so.
pub(super) fn moving(
    reality: &Reality,
    spot: &Spot,
    now: &Now,
    rights: Rights,
) -> io::Result<Option<RefusalReason>> {
    if now.real().is_some_and(|real| real.is_mount) {
        return Ok(Some(RefusalReason::Mount));
    }
    let Rights::User { uid, .. } = rights else { return Ok(None) };
    // Without a folder, it comes with its folder, or is reported as a conflict.
    let Ok((folder, _)) = reality.parent(spot) else { return Ok(None) };
    // Whoever owns the folder can give themselves the right.
    if rustix::fs::fstat(&folder)?.st_uid == uid {
        return Ok(None);
    }
    match rustix::fs::accessat(&folder, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS) => Ok(Some(RefusalReason::NotWritable)),
        other => other.map(|()| None).map_err(Into::into),
    }
}

const SET_IDS: u32 = 0o6000;
