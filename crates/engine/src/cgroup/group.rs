//! One sandbox's cgroup: a directory per controller (version 1) or one for all (version 2).

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::SandboxId;
use model::limits::Limits;
use serde::{Deserialize, Serialize};

use super::layout::{Controller, Layout, Place, Version, asked_for};
use super::{Error, v1, v2};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Where processes must go; never empty.
    pub(super) directories: BTreeSet<PathBuf>,
    memory: Option<(Version, PathBuf)>,
}

impl Layout {
    /// Makes a cgroup with exactly the controllers these limits need; none when they need none.
    ///
    /// # Errors
    ///
    /// A limit cannot be enforced here, or the kernel refused a directory or value. Nothing is left behind then.
    pub fn create(&self, id: SandboxId, limits: &Limits) -> Result<Option<Cgroup>, Error> {
        self.create_named(&id.to_string(), limits)
    }

    /// The cgroup made earlier for this sandbox, by this daemon or the one before it.
    #[must_use]
    pub fn find(&self, id: SandboxId) -> Option<Cgroup> {
        let existing = Controller::ALL.into_iter().filter_map(|controller| {
            let place = self.place(controller).ok()?;
            let directory = self.root(place).join(id.to_string());
            directory.is_dir().then_some((controller, place, directory))
        });
        Cgroup::of(existing)
    }

    pub(super) fn create_named(&self, leaf: &str, limits: &Limits) -> Result<Option<Cgroup>, Error> {
        let mut made = Vec::new();
        for controller in asked_for(limits) {
            let place = self.place(controller).map_err(|missing| Error::Unusable { missing })?;
            let directory = self.root(place).join(leaf);
            made.push((controller, place, directory.clone()));
            let result = self.prepare(place, controller).and_then(|()| make(&directory));
            let settings = settings(place.version, controller, limits);
            if let Err(error) = result.and_then(|()| apply(&directory, &settings)) {
                // The first failure is the one to tell.
                if let Some(half) = Cgroup::of(made.into_iter())
                    && let Err(error) = half.remove()
                {
                    tracing::debug!(%error, "a half-made cgroup stays behind");
                }
                return Err(error);
            }
        }
        Ok(Cgroup::of(made.into_iter()))
    }

    /// This daemon's own directory in a hierarchy.
    pub(super) fn root(&self, place: &Place) -> PathBuf {
        place.base.join(&self.name)
    }

    /// Makes this daemon's own directory and lets its children have the controller.
    pub(super) fn prepare(&self, place: &Place, controller: Controller) -> Result<(), Error> {
        let root = self.root(place);
        match place.version {
            Version::V1 => make(&root),
            Version::V2 => {
                v2::hand_down(&place.base, controller)?;
                make(&root)?;
                v2::hand_down(&root, controller)
            }
        }
    }
}

impl Cgroup {
    pub(super) fn of<'a>(parts: impl Iterator<Item = (Controller, &'a Place, PathBuf)>) -> Option<Self> {
        let mut cgroup = Self { directories: BTreeSet::new(), memory: None };
        for (controller, place, directory) in parts {
            if controller == Controller::Memory {
                cgroup.memory = Some((place.version, directory.clone()));
            }
            cgroup.directories.insert(directory);
        }
        (!cgroup.directories.is_empty()).then_some(cgroup)
    }

    /// The files to which a process id is written to move it in.
    #[must_use]
    pub fn process_files(&self) -> Vec<PathBuf> {
        self.directories.iter().map(|directory| directory.join(PROCS)).collect()
    }

    /// Processes killed in here for want of memory; `None` when memory is not limited here.
    ///
    /// # Errors
    ///
    /// The cgroup was removed.
    pub fn oom_kills(&self) -> Result<Option<u64>, Error> {
        let Some((version, directory)) = &self.memory else { return Ok(None) };
        let path = directory.join(match version {
            Version::V1 => v1::MEMORY_EVENTS,
            Version::V2 => v2::MEMORY_EVENTS,
        });
        let text = read(&path)?;
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.parse().ok()).map(Some).ok_or(Error::Garbled { path })
    }

    /// Bytes of memory in use; `None` when memory is not limited here.
    ///
    /// # Errors
    ///
    /// The cgroup was removed.
    pub fn memory_used(&self) -> Result<Option<u64>, Error> {
        self.memory_count(v1::MEMORY_USED, v2::MEMORY_USED)
    }

    /// The most that was ever in use; `None` when memory is not limited here, or this kernel does not say.
    ///
    /// # Errors
    ///
    /// The cgroup was removed.
    pub fn memory_peak(&self) -> Result<Option<u64>, Error> {
        match self.memory_count(v1::MEMORY_PEAK, v2::MEMORY_PEAK) {
            Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other,
        }
    }

    fn memory_count(&self, v1: &str, v2: &str) -> Result<Option<u64>, Error> {
        let Some((version, directory)) = &self.memory else { return Ok(None) };
        let path = directory.join(match version {
            Version::V1 => v1,
            Version::V2 => v2,
        });
        let text = read(&path)?;
        text.trim().parse().ok().map(Some).ok_or(Error::Garbled { path })
    }

    /// Removes it, waiting a little for its last processes to be reaped. Children first: a sandbox may have
    /// made some. That it is gone already is fine.
    ///
    /// # Errors
    ///
    /// Processes still live in it.
    pub fn remove(&self) -> Result<(), Error> {
        let deadline = Instant::now() + REAPING;
        self.directories.iter().try_for_each(|directory| remove(directory, deadline))
    }
}

/// One value to write into a file of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    file: &'static str,
    text: String,
    is_optional: bool,
}

impl Setting {
    pub(super) fn must(file: &'static str, text: String) -> Self {
        Self { file, text, is_optional: false }
    }

    /// For files that a kernel may be built without.
    pub(super) fn if_there(file: &'static str, text: String) -> Self {
        Self { file, text, is_optional: true }
    }
}

pub(super) fn settings(version: Version, controller: Controller, limits: &Limits) -> Vec<Setting> {
    match version {
        Version::V1 => v1::settings(controller, limits),
        Version::V2 => v2::settings(controller, limits),
    }
}

pub(super) fn apply(directory: &Path, settings: &[Setting]) -> Result<(), Error> {
    for setting in settings {
        let path = directory.join(setting.file);
        if setting.is_optional && !path.exists() {
            continue;
        }
        write(&path, &setting.text)?;
    }
    Ok(())
}

pub(super) fn make(directory: &Path) -> Result<(), Error> {
    match fs::create_dir(directory) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::Make { path: directory.to_path_buf(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    put(path, text).map_err(|source| Error::Set { path: path.to_path_buf(), text: text.to_owned(), source })
}

pub(super) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_path_buf(), source })
}

/// One write call, never creating the file: the kernel takes each write as a whole command.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())
}

pub(super) fn remove(directory: &Path, deadline: Instant) -> Result<(), Error> {
    let failed = |source| Error::Remove { path: directory.to_path_buf(), source };
    for child in children(directory).map_err(failed)? {
        remove(&child, deadline)?;
    }
    loop {
        match fs::remove_dir(directory) {
            Ok(()) => return Ok(()),
            Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Killed processes count until their parent has reaped them.
            Err(source) if source.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(source) => return Err(failed(source)),
        }
    }
}

/// The cgroups directly inside; none when the directory is gone.
pub(super) fn children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        result => result?,
    };
    let mut children = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            children.push(entry.path());
        }
    }
    Ok(children)
}

const PROCS: &str = "cgroup.procs";
const REAPING: Duration = Duration::from_millis(500);
