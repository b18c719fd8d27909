//! A sandbox's folder: what is in it, and how it is made and removed.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use engine::capture::Frozen;
use engine::view::{Part, Plan};
use model::sandbox::Masked;
use model::{Caveat, SandboxId};
use serde::{Deserialize, Serialize};

use super::problem::NativeError;

/// Everything needed to start the sandbox again or to find it after a restart. Only grows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) plan: Plan,
    pub(super) frozen: Option<Frozen>,
    pub(super) masked: Vec<Masked>,
    pub(super) caveats: Vec<Caveat>,
}

impl Stored {
    /// The same, but perhaps for the moment at which it was found to be so.
    pub(super) fn says_the_same_as(&self, other: &Self) -> bool {
        let generation = |stored: &Self| stored.frozen.as_ref().map(|frozen| frozen.generation);
        self.plan == other.plan
            && generation(self) == generation(other)
            && self.masked == other.masked
            && self.caveats == other.caveats
    }
}

/// The folder of one sandbox.
#[derive(Clone, Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn of(home: &Path, id: SandboxId) -> Self {
        Self(home.join("sandboxes").join(id.to_string()))
    }

    /// The folder of one that is nobody's yet.
    pub(super) fn in_stock(home: &Path, id: SandboxId) -> Self {
        Self(home.join("stock").join(id.to_string()))
    }

    pub(super) fn rename(&self, to: &Self) -> Result<(), NativeError> {
        fs::rename(&self.0, &to.0).map_err(|source| NativeError::MakeFolder { path: to.0.clone(), source })
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    /// Where its disk is kept, if it has one of its own.
    pub(super) fn image(&self) -> PathBuf {
        self.0.join("disk.img")
    }

    pub(super) fn upper(&self) -> PathBuf {
        self.0.join("upper")
    }

    pub(super) fn make(&self) -> Result<(), NativeError> {
        make_folder(&self.0)
    }

    /// Makes the upper and work folders of every part. An upper that is there already is kept; work is scratch.
    pub(super) fn make_parts(&self, parts: &[Part]) -> Result<(), NativeError> {
        make_folder(&self.upper())?;
        let work = self.0.join("work");
        make_folder(&work)?;
        for part in parts {
            let upper = self.upper().join(&part.name);
            match fs::create_dir(&upper) {
                Ok(()) => dress(&upper, part).map_err(|source| NativeError::Write { path: upper, source })?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(NativeError::MakeFolder { path: upper, source }),
            }
            make_folder(&work.join(&part.name))?;
        }
        Ok(())
    }

    /// Brings the top folders up to date, where they differ from those they were made for.
    pub(super) fn redress(&self, old: &[Part], new: &[Part]) -> Result<(), NativeError> {
        for (_, part) in old.iter().zip(new).filter(|(old, new)| old.top != new.top) {
            let upper = self.upper().join(&part.name);
            dress(&upper, part).map_err(|source| NativeError::Write { path: upper, source })?;
        }
        Ok(())
    }

    /// Makes the folder of a sandbox that wrote nothing fit for the next one.
    pub(super) fn refresh(&self, old: &[Part], new: &[Part]) -> Result<(), NativeError> {
        let failed = |path: &Path, source| NativeError::Remove { path: path.to_owned(), source };
        let socket = self.0.join("control.sock");
        fs::remove_file(&socket).map_err(|source| failed(&socket, source))?;
        for part in new {
            let work = self.0.join("work").join(&part.name).join("work");
            remove_mark(&work).map_err(|source| failed(&work, source))?;
        }
        self.redress(old, new)
    }

    /// Removes what overlayfs left of the last run: without this a volatile upper is not mounted again.
    pub(super) fn clear_scratch(&self) -> Result<(), NativeError> {
        for name in ["work", "control.sock"] {
            let path = self.0.join(name);
            let removed = match fs::symlink_metadata(&path) {
                Ok(stat) if stat.is_dir() => engine::remove::tree(&path),
                Ok(_) => fs::remove_file(&path),
                Err(_) => Ok(()),
            };
            removed.map_err(|source| NativeError::Remove { path, source })?;
        }
        Ok(())
    }

    pub(super) fn write(&self, stored: &Stored) -> Result<(), NativeError> {
        let path = self.0.join("plan.json");
        let failed = |source| NativeError::Write { path: path.clone(), source };
        let text = serde_json::to_vec(stored).map_err(|source| failed(source.into()))?;
        fs::write(&path, text).map_err(failed)
    }

    /// Writes what is new, if anything is.
    pub(super) fn update(&self, old: &Stored, new: &Stored) -> Result<(), NativeError> {
        if old.says_the_same_as(new) { Ok(()) } else { self.write(new) }
    }

    pub(super) fn read(&self) -> Result<Stored, NativeError> {
        let path = self.0.join("plan.json");
        let text = fs::read(&path).map_err(|source| NativeError::Read { path: path.clone(), source })?;
        serde_json::from_slice(&text).map_err(|source| NativeError::Garbled { path, source })
    }

    pub(super) fn remove(&self) -> Result<(), NativeError> {
        engine::remove::tree(&self.0).map_err(|source| NativeError::Remove { path: self.0.clone(), source })
    }
}

/// Every sandbox that has a folder.
pub(super) fn inventory(home: &Path) -> Result<Vec<SandboxId>, NativeError> {
    let path = home.join("sandboxes");
    let failed = |source| NativeError::Read { path: path.clone(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<SandboxId>().ok()));
    }
    Ok(found)
}

/// Removes the mark with which overlayfs would not mount a work folder again: it cannot know that nothing was lost.
fn remove_mark(work: &Path) -> io::Result<()> {
    let incompatible = work.join("incompat");
    let mark = incompatible.join("volatile");
    if !rustix::process::geteuid().is_root() {
        // They show no permission at all, not even to their owner.
        for folder in [work, &incompatible, &mark] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
    }
    fs::remove_file(mark.join("dirty"))?;
    fs::remove_dir(mark)
}

fn make_folder(path: &Path) -> Result<(), NativeError> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|source| NativeError::MakeFolder { path: path.to_owned(), source }),
    }
}

/// The top folder of an overlay looks like its upper, so the upper is made to look like the real folder.
fn dress(upper: &Path, part: &Part) -> io::Result<()> {
    let top = part.top;
    if rustix::process::geteuid().is_root() {
        lchown(upper, Some(top.uid), Some(top.gid))?;
    }
    fs::set_permissions(upper, fs::Permissions::from_mode(top.mode))?;
    let time = rustix::fs::Timespec { tv_sec: top.modified.0, tv_nsec: top.modified.1.into() };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, upper, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}
