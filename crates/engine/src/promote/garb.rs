//! What something looks like from outside: permissions, owner, time, extended attributes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use jiff::Timestamp;
use model::diff::Entry;
use rustix::fs::{AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::judge::Facts;
use super::moves::End;
use super::reality::{Reality, Spot, attributes};
use crate::capture::files::{Stat, look_at};
use crate::diff::Version;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Garb {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// `None`: whatever it becomes by itself.
    pub(super) mtime: Option<(i64, u32)>,
    #[serde(with = "pairs")]
    pub(super) attributes: BTreeMap<CString, Vec<u8>>,
}

/// A folder that stays where it is, and what it looks like before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dress {
    pub(super) spot: Spot,
    pub(super) ino: u64,
    pub(super) before: Garb,
    pub(super) after: Garb,
}

impl Garb {
    pub(super) fn of_version(version: &Version<'_>, mtime: Option<(i64, u32)>) -> io::Result<Self> {
        Ok(Self::of_facts(&Facts::of_version(version)?, &version.entry, mtime))
    }

    /// `entry` says the owner where the facts do not.
    pub(super) fn of_facts(facts: &Facts, entry: &Entry, mtime: Option<(i64, u32)>) -> Self {
        let (uid, gid) = facts.owner.unwrap_or((entry.uid, entry.gid));
        Self { mode: facts.mode, uid, gid, mtime, attributes: facts.attributes.clone() }
    }

    pub(super) fn of_reality(opened: &OwnedFd, stat: &Stat) -> io::Result<Self> {
        let Stat { mode, uid, gid, mtime, .. } = *stat;
        Ok(Self { mode: mode & 0o7777, uid, gid, mtime: Some(mtime), attributes: attributes(opened)? })
    }

    /// Gives it to an open file or folder.
    pub(super) fn put_on(&self, target: &OwnedFd) -> io::Result<()> {
        let now = look_at(target)?.stat;
        if (now.uid, now.gid) != (self.uid, self.gid) {
            give(|uid, gid| rustix::fs::fchown(target, uid, gid), self)?;
        }
        // Before the mode: an ordinary user cannot set attributes on their own read-only file.
        self.put_on_attributes(target)?;
        // Giving it away may have cleared bits, so the mode is always set after that.
        rustix::fs::fchmod(target, Mode::from_raw_mode(self.mode))?;
        if let Some(times) = self.times() {
            match rustix::fs::futimens(target, &times) {
                // A folder of somebody else in which we may write: its time is as it is.
                Err(Errno::PERM | Errno::ACCESS) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Gives it to a symbolic link.
    pub(super) fn put_on_link(&self, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
        give(|uid, gid| rustix::fs::chownat(&folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW), self)?;
        if let Some(times) = self.times() {
            rustix::fs::utimensat(&folder, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(())
    }

    fn put_on_attributes(&self, target: &OwnedFd) -> io::Result<()> {
        let now = attributes(target)?;
        for (name, value) in &self.attributes {
            if now.get(name) != Some(value) {
                rustix::fs::fsetxattr(target, name.as_c_str(), value, XattrFlags::empty())?;
            }
        }
        for name in now.keys().filter(|name| !self.attributes.contains_key(*name)) {
            rustix::fs::fremovexattr(target, name.as_c_str())?;
        }
        Ok(())
    }

    fn times(&self) -> Option<Timestamps> {
        let (seconds, nanoseconds) = self.mtime?;
        let time = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanoseconds) };
        Some(Timestamps { last_access: time, last_modification: time })
    }

    /// Is each thing about it, but for the time, as it is in one of the two? Then nobody but us has touched it.
    pub(super) fn is_between(&self, one: &Self, other: &Self) -> bool {
        let ends = [one, other];
        // Where an ordinary user's folder was read-only, it was loosened for a moment.
        let has_mode = ends.iter().any(|end| self.mode == end.mode || self.mode == end.mode | 0o700);
        let has_owner =
            ends.iter().any(|end| self.uid == end.uid) && ends.iter().any(|end| self.gid == end.gid);
        let names = ends.into_iter().chain([self]).flat_map(|garb| garb.attributes.keys());
        let mut has_attribute = names.map(|name| {
            let value = self.attributes.get(name);
            ends.iter().any(|end| end.attributes.get(name) == value)
        });
        has_mode && has_owner && has_attribute.all(|has| has)
    }
}

/// An ordinary user can only change the group, and only to one of theirs; otherwise it stays their own.
fn give(
    change: impl FnOnce(Option<Uid>, Option<Gid>) -> rustix::io::Result<()>,
    garb: &Garb,
) -> io::Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    match change(is_root.then(|| Uid::from_raw(garb.uid)), Some(Gid::from_raw(garb.gid))) {
        Err(Errno::PERM) if !is_root => Ok(()),
        other => Ok(other?),
    }
}

pub(super) fn now() -> (i64, u32) {
    let now = Timestamp::now();
    (now.as_second(), u32::try_from(now.subsec_nanosecond()).unwrap_or(0))
}

/// Names of attributes are bytes, which JSON does not take for keys.
mod pairs {
    use super::{BTreeMap, CString};
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        attributes: &BTreeMap<CString, Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(attributes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<CString, Vec<u8>>, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

impl Dress {
    /// Is more than the time to change?
    pub(super) fn changes_looks(&self) -> bool {
        Garb { mtime: None, ..self.before.clone() } != Garb { mtime: None, ..self.after.clone() }
    }

    /// Gives the folder its looks at one end, unless somebody else has had their hands on it.
    pub(super) fn put_on(&self, reality: &Reality, end: End) -> io::Result<()> {
        let Some((folder, stat)) = self.open(reality)? else { return Ok(()) };
        if !Garb::of_reality(&folder, &stat)?.is_between(&self.before, &self.after) {
            return Ok(());
        }
        match end {
            End::Old => self.before.put_on(&folder),
            End::New => self.after.put_on(&folder),
        }
    }

    /// Opens the folder, if it still is the one that was meant.
    pub(super) fn open(&self, reality: &Reality) -> io::Result<Option<(OwnedFd, Stat)>> {
        let opened = match reality.folder(&self.spot) {
            Ok(opened) => opened,
            Err(error) => {
                return match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let stat = look_at(&opened)?.stat;
        Ok((stat.ino == self.ino).then_some((opened, stat)))
    }
}
