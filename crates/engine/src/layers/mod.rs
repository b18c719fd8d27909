//! Sealed layers: what sandboxes wrote, never to change again.
//!
//! `$ZENO_HOME/layers/<layer>/<part>/` was the upper folder of one part of a plan. A part in which nothing was written
//! is left out. A stack of layers, top first, lies between a sandbox's upper folder and its plan's own lowers.
//!
//! Never changes a layer, never mounts anything, does not know who uses which layer.

pub(crate) mod copy;
mod error;
pub(crate) mod squash;
mod top;
mod trash;

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use model::LayerId;

use crate::capture::layer::Flavour;
use crate::launcher::Rights;
use crate::view::{Lower, Meta, Part, Plan};
use squash::Which;

pub use error::LayerError;
pub use trash::Trash;

/// The folder of all sealed layers.
#[derive(Debug)]
pub struct Layers {
    folder: PathBuf,
    trash: Trash,
}

impl Layers {
    /// Opens the layers of this `$ZENO_HOME`; the folder is made if it is not there.
    pub fn open(home: &Path) -> Result<Self, LayerError> {
        let (folder, trash) = (home.join(FOLDER), home.join("trash"));
        for path in [&folder, &trash] {
            match fs::DirBuilder::new().mode(0o700).create(path) {
                Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(LayerError::Open { path: path.clone(), source });
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Self { folder, trash: Trash::new(trash) })
    }

    /// Where what is no longer needed goes.
    #[must_use]
    pub fn trash(&self) -> &Trash {
        &self.trash
    }

    /// Where a layer is, or would be.
    #[must_use]
    pub fn path(&self, layer: LayerId) -> PathBuf {
        self.folder.join(layer.to_string())
    }

    #[must_use]
    pub fn has(&self, layer: LayerId) -> bool {
        self.path(layer).is_dir()
    }

    /// Every layer there is.
    pub fn list(&self) -> Result<Vec<LayerId>, LayerError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(LayerError::List)? {
            let name = entry.map_err(LayerError::List)?.file_name();
            found.extend(name.to_str().and_then(|name| name.parse::<LayerId>().ok()));
        }
        Ok(found)
    }

    /// Throws away a layer that nobody uses, whole.
    pub fn remove(&self, layer: LayerId) -> Result<(), LayerError> {
        self.trash.take(&self.path(layer))
    }

    /// The plan of a sandbox that stands on these layers, top first.
    pub fn under(&self, plan: &Plan, stack: &[LayerId]) -> Result<Plan, LayerError> {
        let mut plan = plan.clone();
        for part in &mut plan.parts {
            let mut lowers = self.lowers(part, stack)?;
            lowers.append(&mut part.lowers);
            part.lowers = lowers;
            if let Some(path) = self.top(part, stack)? {
                let stat =
                    fs::symlink_metadata(&path).map_err(|source| LayerError::LookAt { path, source })?;
                part.top = Meta::of(&stat);
            }
        }
        Ok(plan)
    }

    fn lowers(&self, part: &Part, stack: &[LayerId]) -> Result<Vec<Lower>, LayerError> {
        let mut lowers = Vec::new();
        for layer in stack {
            if self.of_part(*layer, part)?.is_some() {
                lowers.push(Lower::Store(Path::new(FOLDER).join(layer.to_string()).join(&part.name)));
            }
        }
        Ok(lowers)
    }

    /// What a layer holds of a part, if anything.
    fn of_part(&self, layer: LayerId, part: &Part) -> Result<Option<PathBuf>, LayerError> {
        let path = self.path(layer).join(&part.name);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if self.has(layer) {
                    Ok(None)
                } else {
                    Err(LayerError::Gone { layer })
                }
            }
            Err(source) => Err(LayerError::Look { layer, source }),
        }
    }

    /// Is nothing written in these upper folders of a sandbox that stands on `stack`?
    pub fn is_untouched(&self, upper: &Path, plan: &Plan, stack: &[LayerId]) -> Result<bool, LayerError> {
        for part in &plan.parts {
            if !self.is_part_untouched(upper, part, stack)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a layer of upper folders that nothing is mounted from. Moves them, so that it takes no longer for a lot
    /// than for a little.
    pub fn seal(
        &self,
        upper: &Path,
        layer: LayerId,
        plan: &Plan,
        stack: &[LayerId],
    ) -> Result<(), LayerError> {
        let failed = |source| LayerError::Seal { layer, path: upper.to_owned(), source };
        fs::rename(upper, self.path(layer)).map_err(failed)?;
        for part in &plan.parts {
            // Should we not get here, an empty folder is mounted for nothing.
            if self.is_part_untouched(&self.path(layer), part, stack)? {
                fs::remove_dir(self.path(layer).join(&part.name)).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Makes a layer of upper folders that somebody may write to again afterwards, by copying them. Nobody may write to
    /// them meanwhile.
    pub fn copy(
        &self,
        upper: &Path,
        layer: LayerId,
        plan: &Plan,
        stack: &[LayerId],
    ) -> Result<(), LayerError> {
        let failed = |source| LayerError::Copy { layer, path: upper.to_owned(), source };
        self.make(layer, failed, |half| {
            plan.parts.iter().try_for_each(|part| {
                if self.is_part_untouched(upper, part, stack)? {
                    return Ok(());
                }
                copy::tree(&upper.join(&part.name), &half.join(&part.name)).map_err(failed)
            })
        })
    }

    /// Makes a layer that shows of the machine what these layers show, top first, as far as it is wanted, and of all that
    /// is frozen what `lay` puts into its folder. The parts of the machine are those of the old plan, which the new one may
    /// call by other names.
    pub fn rebase<E: From<LayerError>>(
        &self,
        run: &[LayerId],
        into: LayerId,
        (old, new): (&Plan, &Plan),
        machine: OfMachine<'_>,
        lay: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |source| LayerError::Rebase { layer: into, source };
        let is_machine = |part: &&Part| part.inner.is_none();
        self.make(into, failed, |half| {
            for part in old.parts.iter().filter(is_machine) {
                let folders = self.folders(run, part)?;
                let which = machine.of(part, old);
                if folders.is_empty() || which == Which::Named(Vec::new()) {
                    continue;
                }
                let mut parts = new.parts.iter().filter(is_machine);
                let Some(place) = parts.find(|new| new.mountpoint == part.mountpoint) else {
                    return Err(LayerError::Unmounted { path: part.mountpoint.clone() }.into());
                };
                squash::merge(&folders, &half.join(&place.name), flavour(), &which).map_err(failed)?;
            }
            lay(half)
        })
    }

    /// Makes one layer of several that lie on each other in a stack, top first. They stay as they are.
    pub fn squash(&self, run: &[LayerId], into: LayerId, plan: &Plan) -> Result<(), LayerError> {
        let failed = |source| LayerError::Squash { layer: into, source };
        self.make(into, failed, |half| {
            for part in &plan.parts {
                let folders = self.folders(run, part)?;
                squash::merge(&folders, &half.join(&part.name), flavour(), &Which::All).map_err(failed)?;
            }
            let run = serde_json::to_vec(run).map_err(|source| failed(source.into()))?;
            fs::write(half.join(OF), run).map_err(failed)
        })
    }

    /// Makes a layer, all or nothing.
    fn make<E: From<LayerError>>(
        &self,
        layer: LayerId,
        failed: impl Fn(io::Error) -> LayerError,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let half = self.folder.join(format!("{layer}{HALF}"));
        fs::create_dir(&half).map_err(&failed)?;
        match fill(&half) {
            Ok(()) => Ok(fs::rename(&half, self.path(layer)).map_err(failed)?),
            Err(error) => {
                self.trash.take(&half)?;
                Err(error)
            }
        }
    }

    /// What layers hold of a part.
    fn folders(&self, run: &[LayerId], part: &Part) -> Result<Vec<PathBuf>, LayerError> {
        run.iter().filter_map(|layer| self.of_part(*layer, part).transpose()).collect()
    }

    /// The layers that one was made of, top first; none if it was sealed.
    pub fn made_of(&self, layer: LayerId) -> Result<Vec<LayerId>, LayerError> {
        let failed = |source| LayerError::Look { layer, source };
        match fs::read(self.path(layer).join(OF)) {
            Ok(text) => serde_json::from_slice(&text).map_err(|source| failed(source.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Layers that were never finished.
    pub fn halves(&self) -> Result<Vec<PathBuf>, LayerError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(LayerError::List)? {
            let entry = entry.map_err(LayerError::List)?;
            if entry.file_name().as_encoded_bytes().ends_with(HALF.as_bytes()) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    fn is_part_untouched(&self, upper: &Path, part: &Part, stack: &[LayerId]) -> Result<bool, LayerError> {
        let path = upper.join(&part.name);
        let failed = |source| LayerError::LookAt { path: path.clone(), source };
        let is_empty = match fs::read_dir(&path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(failed(error)),
        };
        // Of a part that shows only a folder in it, the top folder is nobody's business.
        if !is_empty || part.inner.is_some() {
            return Ok(is_empty);
        }
        top::looks_like(&path, part, self.top(part, stack)?.as_deref()).map_err(failed)
    }

    /// Makes the new upper folder of a part look like the top folder of what is below it: an overlay's own top folder looks
    /// like its upper.
    pub fn dress(&self, upper: &Path, part: &Part, stack: &[LayerId]) -> Result<(), LayerError> {
        top::dress(upper, part, self.top(part, stack)?.as_deref())
            .map_err(|source| LayerError::Dress { path: upper.to_owned(), source })
    }

    /// The topmost layer's folder of a part.
    fn top(&self, part: &Part, stack: &[LayerId]) -> Result<Option<PathBuf>, LayerError> {
        for layer in stack {
            if let Some(path) = self.of_part(*layer, part)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

/// How much of what was changed on the machine a layer is to show.
#[derive(Clone, Copy, Debug)]
pub enum OfMachine<'a> {
    All,
    /// What is at or below these absolute paths.
    Named(&'a [PathBuf]),
}

impl OfMachine<'_> {
    /// What of it lies in a part, seen from its mount point.
    fn of(self, part: &Part, plan: &Plan) -> Which {
        let Self::Named(paths) = self else { return Which::All };
        // What is mounted below it has a part of its own.
        let deeper = |path: &Path| {
            let mut others = plan.parts.iter().map(|other| &other.mountpoint);
            others.any(|other| {
                *other != part.mountpoint && other.starts_with(&part.mountpoint) && path.starts_with(other)
            })
        };
        let mut named = Vec::new();
        for path in paths {
            if part.mountpoint.starts_with(path) {
                return Which::All;
            }
            match path.strip_prefix(&part.mountpoint) {
                Ok(inside) if !deeper(path) => named.push(inside.as_os_str().as_bytes().to_vec()),
                Ok(_) | Err(_) => {}
            }
        }
        Which::Named(named)
    }
}

/// How overlayfs notes things in the layers of this process.
fn flavour() -> Flavour {
    match Rights::of_this_process() {
        Rights::Root => Flavour::Trusted,
        Rights::User { .. } => Flavour::User,
    }
}

const FOLDER: &str = "layers";
/// Beside the parts of a layer that stands for others: which.
const OF: &str = "of";
/// What a layer that is being made is called beside its id.
const HALF: &str = ".half";
