//! Hidden folders beside the targets, on the same mounts: a rename cannot leave its mount.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use model::exec::Text;
use rustix::fs::{Access, AtFlags, Mode, OFlags, RenameFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::PromoteError;
use super::moves::{Tree, sync};
use super::reality::{Reality, Spot};
use crate::capture::files::{DIRECTORY, join, look_at, open_beneath, split};

/// Where a stage is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Absolute, without symlinks.
    pub(super) folder: Text,
    pub(super) name: String,
    /// The time of the folder before, to be set again when the stage is gone.
    pub(super) mtime: (i64, u32),
}

/// An open stage.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) path: PathBuf,
    pub(super) opened: OwnedFd,
}

impl Stage {
    /// Makes sure that what was built under these names is on disk.
    pub(super) fn sync(&self, slots: &[&str]) -> io::Result<()> {
        let mut files = Vec::new();
        for slot in slots {
            let Some(tree) = Tree::of(&self.opened, slot.as_bytes())? else { continue };
            files.push(slot.as_bytes().to_vec());
            files.extend(tree.below.iter().map(|(below, _)| join(slot.as_bytes(), &below.0)));
            if files.len() > FEW {
                return self.sync_all();
            }
        }
        for path in files {
            let (folder, name) = split(&path);
            let folder = open_beneath(&self.opened, folder)?;
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
                // A link is part of its folder. Of a file that not even its owner may read, the folder has to do.
                Err(Errno::LOOP | Errno::ACCESS) => sync(&folder)?,
                file => sync(file?)?,
            }
        }
        sync(&self.opened)
    }

    /// The whole file system at once: for many files much faster than one after the other.
    pub(super) fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.opened)?)
    }
}

/// So many files are synced one by one, which does not wait for what others have written.
pub(super) const FEW: usize = 16;

/// One mount, or one volume of it: renames work within.
type Mount = (u64, u32, u32);

/// The places for a list of targets, and for each target the number of its place.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) places: Vec<Place>,
    pub(super) of: Vec<usize>,
}

impl Places {
    /// Chooses. Makes nothing yet.
    pub(super) fn choose<'a>(
        reality: &Reality,
        targets: impl Iterator<Item = &'a Spot>,
        name: &str,
    ) -> Result<Self, PromoteError> {
        let mut places = Self::default();
        let mut known: BTreeMap<Mount, usize> = BTreeMap::new();
        for spot in targets {
            let path = reality.absolute(spot);
            let failed = |source| PromoteError::looked(path.clone(), source);
            let (parent, _) = reality.parent(spot).map_err(failed)?;
            let mount = mount_of(&parent).map_err(failed)?;
            let number = match known.get(&mount) {
                Some(number) => *number,
                None => {
                    let folder = folder_for(reality, spot, mount).map_err(failed)?;
                    let folder = folder.ok_or_else(|| PromoteError::NoPlace { path: path.clone() })?;
                    places.places.push(Place::new(&folder, name).map_err(failed)?);
                    known.insert(mount, places.places.len() - 1);
                    places.places.len() - 1
                }
            };
            places.of.push(number);
        }
        Ok(places)
    }
}

impl Place {
    fn new(folder: &OwnedFd, name: &str) -> io::Result<Self> {
        // The kernel says where the folder is, whatever path led to it.
        let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        let mtime = look_at(folder)?.stat.mtime;
        Ok(Self { folder: Text::from(path), name: name.to_owned(), mtime })
    }

    pub(super) fn path(&self) -> PathBuf {
        Path::new(self.folder.as_os_str()).join(&self.name)
    }

    pub(super) fn make(&self) -> Result<Stage, PromoteError> {
        let path = self.path();
        let failed = |source| PromoteError::MakeStage { path: path.clone(), source };
        let folder = self.parent().map_err(failed)?;
        rustix::fs::mkdirat(&folder, &*self.name, Mode::RWXU).map_err(|error| failed(error.into()))?;
        let opened = open_beneath(&folder, self.name.as_bytes()).map_err(failed)?;
        Ok(Stage { path, opened })
    }

    /// Opens what was made here; `None` if it is gone, or not ours.
    pub(super) fn open(&self) -> io::Result<Option<Stage>> {
        let opened = self.parent().and_then(|folder| open_beneath(folder, self.name.as_bytes()));
        match opened {
            Ok(opened) if look_at(&opened)?.stat.uid == rustix::process::geteuid().as_raw() => {
                Ok(Some(Stage { path: self.path(), opened }))
            }
            Ok(_) => Ok(None),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Moves the stage to another folder, if that is on the same mount. Says whether it did.
    pub(super) fn carry(&self, to: &OwnedFd, name: &str) -> io::Result<bool> {
        let folder = self.parent()?;
        match rustix::fs::renameat_with(&folder, &*self.name, to, name, RenameFlags::NOREPLACE) {
            Err(Errno::XDEV) => Ok(false),
            other => {
                other?;
                self.settle(&folder)?;
                Ok(true)
            }
        }
    }

    /// Removes the stage with all that is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        let folder = match self.parent() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        crate::remove::tree(&crate::through(folder.as_fd(), &self.name))?;
        self.settle(&folder)
    }

    fn parent(&self) -> io::Result<OwnedFd> {
        let root = rustix::fs::open("/", DIRECTORY, Mode::empty())?;
        let folder = self.folder.0.strip_prefix(b"/").unwrap_or(&self.folder.0);
        open_beneath(root, folder)
    }

    /// The folder looks as if nothing had been there.
    fn settle(&self, folder: &OwnedFd) -> io::Result<()> {
        let time = rustix::fs::Timespec { tv_sec: self.mtime.0, tv_nsec: i64::from(self.mtime.1) };
        let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
        match rustix::fs::futimens(folder, &times) {
            // Somebody else's folder, in which we may write.
            Err(Errno::PERM | Errno::ACCESS) => Ok(()),
            other => Ok(other?),
        }
    }
}

/// The best folder for a stage on this mount: beside the root, so that nobody who watches the root sees it; else as far up
/// as this user may write.
fn folder_for(reality: &Reality, spot: &Spot, mount: Mount) -> io::Result<Option<OwnedFd>> {
    let (path, root) = reality.root(spot);
    let mut candidates = Vec::new();
    if path.parent().is_some() {
        candidates.push(rustix::fs::openat(root, c"..", DIRECTORY, Mode::empty()).map_err(io::Error::from));
        candidates.push(open_beneath(root, b".git"));
    }
    let parent = spot.parent().unwrap_or_else(|| spot.clone());
    let mut above: Vec<Spot> = std::iter::successors(Some(parent), Spot::parent).collect();
    above.reverse();
    candidates.extend(above.iter().map(|spot| reality.folder(spot)));
    for candidate in candidates {
        // One that cannot be opened is none.
        let Ok(folder) = candidate else { continue };
        if mount_of(&folder)? == mount && is_ours_to_use(&folder)? {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

/// May we make a folder here that nobody else can replace?
fn is_ours_to_use(folder: &OwnedFd) -> io::Result<bool> {
    let stat = look_at(folder)?.stat;
    let is_shared = stat.mode & 0o002 != 0 && stat.mode & 0o1000 == 0;
    match rustix::fs::accessat(folder, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Ok(()) => Ok(!is_shared),
        Err(Errno::ACCESS | Errno::ROFS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn mount_of(folder: impl AsFd) -> io::Result<Mount> {
    let statx =
        rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    Ok((statx.stx_mnt_id, statx.stx_dev_major, statx.stx_dev_minor))
}
