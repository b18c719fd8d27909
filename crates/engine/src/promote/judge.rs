//! One path on three sides: what was, what the sandbox made of it, what reality made of it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{self, Read};

use jiff::Timestamp;
use model::diff::Entry;
use model::exec::Text;
use model::files::FileKind;
use model::promotion::{ConflictReason, Did};

use super::hunks::Texts;
use super::merge::merge;
use super::reality::{Now, Real, Reality, Spot};
use crate::capture::files::Stat;
use crate::diff::{Both, Version, same};

/// What is known of a path.
pub(super) struct Sides<'a> {
    pub(super) both: &'a Both<'a>,
    pub(super) now: &'a Now,
    pub(super) reality: &'a Reality,
    pub(super) spot: &'a Spot,
    pub(super) since: Timestamp,
    /// The sandbox made the folder it is in, so that it comes, or does not come, together with that.
    pub(super) comes_with_folder: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// The sandbox left it as it was.
    Nothing,
    /// Reality is like this already.
    Same,
    /// Reality is as it was: the sandbox's version can be taken.
    Take,
    Merge(Blend),
    Conflict(ConflictReason),
}

/// Something made of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Blend {
    pub(super) bytes: Bytes,
    pub(super) facts: Facts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Bytes {
    Ours,
    Theirs,
    Merged(Vec<u8>),
}

/// Everything about an entry but the bytes of a file and the times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) kind: FileKind,
    pub(super) mode: u32,
    /// Only root can change it, and only root's copies have the real one.
    pub(super) owner: Option<(u32, u32)>,
    pub(super) target: Option<Text>,
    pub(super) attributes: BTreeMap<CString, Vec<u8>>,
}

impl Facts {
    pub(super) fn of_version(version: &Version<'_>) -> io::Result<Self> {
        Ok(Self::new(&version.entry, version.attributes()?))
    }

    fn of_reality(real: &Real, reality: &Reality, spot: &Spot) -> io::Result<Self> {
        Ok(Self::new(&real.entry, reality.attributes(spot, real.entry.kind)?))
    }

    fn new(entry: &Entry, attributes: BTreeMap<CString, Vec<u8>>) -> Self {
        let owner = rustix::process::geteuid().is_root().then_some((entry.uid, entry.gid));
        // The permissions of a link mean nothing.
        let mode = if entry.kind == FileKind::Symlink { 0o777 } else { entry.mode };
        Self { kind: entry.kind, mode, owner, target: entry.target.clone(), attributes }
    }
}

impl Sides<'_> {
    pub(super) fn judge(&self) -> io::Result<Judgement> {
        let (before, after) = (self.both.before.as_ref(), self.both.after.as_ref());
        let was = before.map(Facts::of_version).transpose()?;
        let ours = after.map(Facts::of_version).transpose()?;
        if was == ours && self.same_bytes(before, after)? {
            return Ok(Judgement::Nothing);
        }
        let real = match self.now {
            Now::Present(real) => Some(real),
            Now::Absent => None,
            // The folder went on one side and the path in it on the other: it is gone on both.
            Now::FolderGone | Now::FolderReplaced if after.is_none() => return Ok(Judgement::Same),
            Now::FolderGone | Now::FolderReplaced if self.comes_with_folder => None,
            Now::FolderGone => return Ok(Judgement::Conflict(ConflictReason::FolderGone)),
            Now::FolderReplaced => return Ok(Judgement::Conflict(ConflictReason::FolderReplaced)),
        };
        let theirs = real.map(|real| Facts::of_reality(real, self.reality, self.spot)).transpose()?;
        if theirs == ours && self.same_as_real(after, real)? {
            return Ok(Judgement::Same);
        }
        if before.map_or(Ok(false), Version::is_live)? {
            return Ok(self.judge_live(real));
        }
        let changed = !self.same_as_real(before, real)?;
        if theirs == was && !changed {
            return Ok(Judgement::Take);
        }
        match (was, ours, theirs) {
            (Some(was), Some(ours), Some(theirs)) if was.kind == ours.kind && was.kind == theirs.kind => {
                self.blend(&was, &ours, &theirs, changed)
            }
            (None, Some(_), Some(_)) => Ok(Judgement::Conflict(ConflictReason::BothCreated)),
            _ => Ok(Judgement::Conflict(ConflictReason::ChangedAndGone)),
        }
    }

    /// What was read live is what reality has: only its time tells whether it was the same when the sandbox was made.
    fn judge_live(&self, real: Option<&Real>) -> Judgement {
        let Some(real) = real else { return Judgement::Conflict(ConflictReason::ChangedAndGone) };
        // Every coming and going in a folder moves its time; what is in it speaks for itself.
        let is_folder_to_go = real.entry.kind == FileKind::Directory
            && self.both.after.as_ref().is_none_or(|after| after.entry.kind != FileKind::Directory);
        if is_folder_to_go || !changed_since(&real.stat, self.since) {
            Judgement::Take
        } else {
            Judgement::Conflict(ConflictReason::MovedOn)
        }
    }

    /// Takes from each side what only that side changed.
    fn blend(&self, was: &Facts, ours: &Facts, theirs: &Facts, changed: bool) -> io::Result<Judgement> {
        let (Some(before), Some(after)) = (&self.both.before, &self.both.after) else {
            return Ok(Judgement::Nothing);
        };
        let bytes = if !changed {
            Bytes::Ours
        } else if self.same_bytes(Some(before), Some(after))? {
            Bytes::Theirs
        } else {
            match self.merge_bytes(before, after)? {
                // The sandbox has seen reality's change: what it has is what is promoted.
                Some(merged) if is_version(after, &merged)? => Bytes::Ours,
                Some(merged) => Bytes::Merged(merged),
                None => return Ok(Judgement::Conflict(ConflictReason::SameLines)),
            }
        };
        let target = pick(&was.target, &ours.target, &theirs.target);
        let mode = pick(&was.mode, &ours.mode, &theirs.mode);
        let owner = pick(&was.owner, &ours.owner, &theirs.owner);
        let attributes = blend_attributes(was, ours, theirs);
        let (Some(target), Some(mode), Some(owner), Some(attributes)) = (target, mode, owner, attributes)
        else {
            let reason = if ours.target == theirs.target {
                ConflictReason::SameAttributes
            } else {
                ConflictReason::SameLines
            };
            return Ok(Judgement::Conflict(reason));
        };
        let facts = Facts { kind: ours.kind, mode, owner, target, attributes };
        Ok(if bytes == Bytes::Ours && facts == *ours {
            Judgement::Take
        } else {
            Judgement::Merge(Blend { bytes, facts })
        })
    }

    fn merge_bytes(&self, before: &Version<'_>, after: &Version<'_>) -> io::Result<Option<Vec<u8>>> {
        let sizes = [before.entry.size, after.entry.size, self.now.real().map_or(0, |real| real.stat.size)];
        if before.entry.kind != FileKind::File || sizes.iter().any(|size| *size > LARGEST) {
            return Ok(None);
        }
        let (base, ours) = (read(before.contents()?.reader())?, read(after.contents()?.reader())?);
        Ok(merge(&base, &ours, &read(self.reality.open_file(self.spot)?)?))
    }

    /// What is text of the three, to be shown to somebody. Nothing, if one of them is too large or may not be read.
    pub(super) fn texts(&self) -> io::Result<Texts> {
        let version = |version: Option<&Version<'_>>| match version {
            Some(version) if is_file(&version.entry) && version.entry.size <= LARGEST => {
                read(version.contents()?.reader()).map(Some)
            }
            Some(version) if is_file(&version.entry) => Err(io::ErrorKind::FileTooLarge.into()),
            Some(_) | None => Ok(None),
        };
        let real = || match self.now.real() {
            Some(real) if is_file(&real.entry) && real.stat.size <= LARGEST => {
                read(self.reality.open_file(self.spot)?.take(LARGEST)).map(Some)
            }
            Some(real) if is_file(&real.entry) => Err(io::ErrorKind::FileTooLarge.into()),
            Some(_) | None => Ok(None),
        };
        let texts = || {
            let before = self.both.before.as_ref();
            // What was read live is what reality has now, and says nothing of how it was.
            let known = if before.map_or(Ok(false), Version::is_live)? { None } else { before };
            Ok(Texts { before: version(known)?, ours: version(self.both.after.as_ref())?, theirs: real()? })
        };
        texts().or_else(|error: io::Error| match error.kind() {
            io::ErrorKind::FileTooLarge | io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound => {
                Ok(Texts::default())
            }
            _ => Err(error),
        })
    }

    fn same_bytes(&self, one: Option<&Version<'_>>, other: Option<&Version<'_>>) -> io::Result<bool> {
        match (one, other) {
            (Some(one), Some(other)) if is_file(&one.entry) && is_file(&other.entry) => Ok(one.entry.size
                == other.entry.size
                && same(one.contents()?.reader(), other.contents()?.reader())?),
            _ => Ok(true),
        }
    }

    /// Of two files, whether they hold the same. Of anything else the facts say it all.
    fn same_as_real(&self, version: Option<&Version<'_>>, real: Option<&Real>) -> io::Result<bool> {
        match (version, real) {
            (Some(version), Some(real)) if is_file(&version.entry) && is_file(&real.entry) => {
                same_contents(version, real, self.reality, self.spot)
            }
            _ => Ok(true),
        }
    }

    /// What the sandbox did, for the report.
    pub(super) fn ours(&self) -> io::Result<Did> {
        let (before, after) = (self.both.before.as_ref(), self.both.after.as_ref());
        let same = self.same_bytes(before, after)?;
        Ok(did(before.map(|version| &version.entry), after.map(|version| &version.entry), same))
    }

    /// What reality did, for the report.
    pub(super) fn theirs(&self) -> io::Result<Did> {
        let (before, real) = (self.both.before.as_ref(), self.now.real());
        if before.map_or(Ok(false), Version::is_live)? && real.is_some() {
            return Ok(Did::Something);
        }
        let same = self.same_as_real(before, real)?;
        Ok(did(before.map(|version| &version.entry), real.map(|real| &real.entry), same))
    }
}

/// Is the real file the same as this one, but for the times?
pub(super) fn is_as(version: &Version<'_>, real: &Real, reality: &Reality, spot: &Spot) -> io::Result<bool> {
    Ok(is_file(&version.entry)
        && Facts::of_version(version)? == Facts::of_reality(real, reality, spot)?
        && same_contents(version, real, reality, spot)?)
}

fn same_contents(version: &Version<'_>, real: &Real, reality: &Reality, spot: &Spot) -> io::Result<bool> {
    Ok(version.entry.size == real.entry.size && same(version.contents()?.reader(), reality.open_file(spot)?)?)
}

fn did(before: Option<&Entry>, after: Option<&Entry>, same_bytes: bool) -> Did {
    match (before, after) {
        (None, None) => Did::Nothing,
        (None, Some(_)) => Did::Create,
        (Some(_), None) => Did::Delete,
        (Some(before), Some(after)) if before.kind != after.kind => Did::ChangeType,
        (Some(before), Some(after)) if !same_bytes || before.target != after.target => Did::Edit,
        (Some(before), Some(after)) if before == after => Did::Nothing,
        (Some(_), Some(_)) => Did::Attributes,
    }
}

/// The value that only one side changed, or both alike; `None` if they differ.
fn pick<T: Clone + PartialEq>(was: &T, ours: &T, theirs: &T) -> Option<T> {
    if ours == theirs || theirs == was {
        Some(ours.clone())
    } else if ours == was {
        Some(theirs.clone())
    } else {
        None
    }
}

fn blend_attributes(was: &Facts, ours: &Facts, theirs: &Facts) -> Option<BTreeMap<CString, Vec<u8>>> {
    let mut blended = BTreeMap::new();
    for name in ours.attributes.keys().chain(theirs.attributes.keys()) {
        let of = |facts: &Facts| facts.attributes.get(name).cloned();
        if let Some(value) = pick(&of(was), &of(ours), &of(theirs))? {
            blended.insert(name.clone(), value);
        }
    }
    Some(blended)
}

fn read(mut file: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map(|_| bytes)
}

fn is_version(version: &Version<'_>, bytes: &[u8]) -> io::Result<bool> {
    Ok(version.entry.size == bytes.len() as u64 && same(version.contents()?.reader(), bytes)?)
}

fn is_file(entry: &Entry) -> bool {
    entry.kind == FileKind::File
}

/// Not older than the sandbox. Its change time cannot be set by hand.
pub(super) fn changed_since(stat: &Stat, since: Timestamp) -> bool {
    let changed = i128::from(stat.ctime.0) * 1_000_000_000 + i128::from(stat.ctime.1);
    changed >= since.as_nanosecond()
}

/// Three of these are held in memory.
const LARGEST: u64 = 16 << 20;
