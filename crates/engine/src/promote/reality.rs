//! Reality: the real files, looked at beneath their roots and never through a symlink.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use model::diff::Entry;
use model::exec::Text;
use model::files::FileKind;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::PromoteError;
use crate::capture::files::{DIRECTORY, Stat, list, look, open_beneath, split};
use crate::capture::layer::attribute;
use crate::capture::metadata::attribute_names;
use crate::diff::tree::kind;

/// The folders below which everything is found, held open: whatever becomes of their own paths, these are meant.
#[derive(Debug)]
pub(super) struct Reality {
    roots: Vec<(PathBuf, OwnedFd)>,
}

/// A path beneath one of the roots. The empty path is the root itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Spot {
    pub(super) root: usize,
    pub(super) path: Text,
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Now {
    Present(Real),
    Absent,
    /// Not even its folder is there.
    FolderGone,
    /// Its folder, or one above, is a file or a symlink.
    FolderReplaced,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Real {
    pub(super) stat: Stat,
    pub(super) entry: Entry,
    pub(super) is_mount: bool,
}

impl Reality {
    /// The workspace, if there is one, and the machine.
    pub(super) fn open(roots: &[PathBuf]) -> Result<Self, PromoteError> {
        let open = |path: &PathBuf| {
            let opened = rustix::fs::open(path, DIRECTORY, Mode::empty());
            let opened = opened
                .map_err(|source| PromoteError::OpenRoot { path: path.clone(), source: source.into() })?;
            Ok((path.clone(), opened))
        };
        Ok(Self { roots: roots.iter().map(open).collect::<Result<_, _>>()? })
    }

    pub(super) fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|(path, _)| path.as_path())
    }

    pub(super) fn root(&self, spot: &Spot) -> (&Path, &OwnedFd) {
        let (path, opened) = &self.roots[spot.root];
        (path, opened)
    }

    /// Where an absolute path is found: beneath the first root that holds it.
    pub(super) fn spot(&self, path: &Path) -> Option<Spot> {
        let mut roots = self.roots.iter().enumerate();
        roots.find_map(|(root, (start, _))| {
            let rest = path.strip_prefix(start).ok()?;
            Some(Spot { root, path: Text(rest.as_os_str().as_bytes().to_vec()) })
        })
    }

    pub(super) fn absolute(&self, spot: &Spot) -> PathBuf {
        let root = &self.roots[spot.root].0;
        if spot.path.0.is_empty() { root.clone() } else { root.join(spot.path.as_os_str()) }
    }

    /// Opens the folder that a path is in, and says its name there.
    pub(super) fn parent<'a>(&self, spot: &'a Spot) -> io::Result<(OwnedFd, &'a [u8])> {
        let (folder, name) = split(&spot.path.0);
        Ok((open_beneath(&self.roots[spot.root].1, folder)?, if name.is_empty() { b"." } else { name }))
    }

    /// The same; `None` if its folder is gone, or became something else.
    pub(super) fn parent_if_there<'a>(&self, spot: &'a Spot) -> io::Result<Option<(OwnedFd, &'a [u8])>> {
        match self.parent(spot) {
            Ok(found) => Ok(Some(found)),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Opens a folder.
    pub(super) fn folder(&self, spot: &Spot) -> io::Result<OwnedFd> {
        open_beneath(&self.roots[spot.root].1, &spot.path.0)
    }

    /// Opens a file or folder for reading. Never waits for the other end of a pipe.
    pub(super) fn open_entry(&self, spot: &Spot) -> io::Result<OwnedFd> {
        let (folder, name) = self.parent(spot)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(rustix::fs::openat(folder, name, flags, Mode::empty())?)
    }

    pub(super) fn open_file(&self, spot: &Spot) -> io::Result<File> {
        self.open_entry(spot).map(File::from)
    }

    pub(super) fn attributes(&self, spot: &Spot, kind: FileKind) -> io::Result<BTreeMap<CString, Vec<u8>>> {
        if !matches!(kind, FileKind::File | FileKind::Directory) {
            return Ok(BTreeMap::new());
        }
        attributes(&self.open_entry(spot)?)
    }

    /// The names in a folder.
    pub(super) fn names(&self, spot: &Spot) -> io::Result<Vec<Box<[u8]>>> {
        Ok(list(self.folder(spot)?)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Looks. What changed a moment ago is looked at again when the clock has ticked, so that a later change shows in its
    /// times.
    pub(super) fn look(&self, spot: &Spot) -> io::Result<Now> {
        let (folder, name) = match self.parent(spot) {
            Ok(found) => found,
            Err(error) => {
                return match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NOENT) => Ok(Now::FolderGone),
                    Some(Errno::NOTDIR | Errno::LOOP) => Ok(Now::FolderReplaced),
                    _ => Err(error),
                };
            }
        };
        let mut seen = None;
        for _ in 0..LOOKS {
            seen = look(&folder, name)?;
            match seen.and_then(|seen| unsettled(&seen.stat)) {
                Some(wait) => std::thread::sleep(wait),
                None => break,
            }
        }
        let Some(seen) = seen else { return Ok(Now::Absent) };
        let kind = kind(seen.stat.file_type());
        let target = match kind {
            FileKind::Symlink => match rustix::fs::readlinkat(&folder, name, Vec::new()) {
                // It became something else just now: as good as gone.
                Err(Errno::INVAL) => return Err(Errno::NOENT.into()),
                target => Some(Text(target?.into_bytes())),
            },
            _ => None,
        };
        let size = match kind {
            FileKind::File | FileKind::Symlink => seen.stat.size,
            FileKind::Directory | FileKind::Fifo | FileKind::Socket | FileKind::Device => 0,
        };
        let Stat { mode, uid, gid, .. } = seen.stat;
        let entry = Entry { kind, size, mode: mode & 0o7777, uid, gid, target };
        Ok(Now::Present(Real { stat: seen.stat, entry, is_mount: seen.is_mount }))
    }
}

impl Spot {
    pub(super) fn child(&self, name: &[u8]) -> Self {
        Self { root: self.root, path: Text(crate::capture::files::join(&self.path.0, name)) }
    }

    pub(super) fn parent(&self) -> Option<Self> {
        if self.path.0.is_empty() {
            return None;
        }
        Some(Self { root: self.root, path: Text(split(&self.path.0).0.to_vec()) })
    }

    /// The rest of `self` below `top`; the empty path if they are the same.
    pub(super) fn below<'a>(&'a self, top: &Self) -> Option<&'a [u8]> {
        if self.root != top.root {
            return None;
        }
        let own = Path::new(self.path.as_os_str());
        own.strip_prefix(Path::new(top.path.as_os_str())).ok().map(|rest| rest.as_os_str().as_bytes())
    }
}

impl Now {
    pub(super) fn real(&self) -> Option<&Real> {
        match self {
            Self::Present(real) => Some(real),
            Self::Absent | Self::FolderGone | Self::FolderReplaced => None,
        }
    }

    pub(super) fn is_folder(&self) -> bool {
        self.real().is_some_and(|real| real.entry.kind == FileKind::Directory)
    }
}

pub(super) fn attributes(file: &OwnedFd) -> io::Result<BTreeMap<CString, Vec<u8>>> {
    let mut attributes = BTreeMap::new();
    for name in attribute_names(file)? {
        if let Some(value) = attribute(file, &name)? {
            attributes.insert(name, value);
        }
    }
    Ok(attributes)
}

/// How long until a write would leave another time than this.
fn unsettled(stat: &Stat) -> Option<Duration> {
    let changed = UNIX_EPOCH + Duration::new(u64::try_from(stat.ctime.0).unwrap_or(0), stat.ctime.1);
    // A time in the future is no time to wait for.
    let age = SystemTime::now().duration_since(changed).ok()?;
    TICK.checked_sub(age).filter(|wait| !wait.is_zero())
}

/// Twice the coarsest tick of a common kernel (HZ=100).
const TICK: Duration = Duration::from_millis(20);
/// Something that is written to all the time never settles; it will be found changed when it is to be moved.
const LOOKS: u32 = 5;
