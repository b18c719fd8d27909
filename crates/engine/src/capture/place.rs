//! A frozen root and where its copy lives, as far as that stays the same.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::mask::NameMask;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::Live;
use super::copy::Scratch;
use super::files::DIRECTORY;
use super::index::Role;
use super::journal::LayerId;
use super::layer::Flavour;

#[derive(Debug)]
pub(super) struct Place {
    /// The real directory.
    pub(super) path: PathBuf,
    pub(super) root: OwnedFd,
    pub(super) role: Role,
    pub(super) live: Live,
    pub(super) masks: Vec<NameMask>,
    /// The folder of this capture in the store.
    pub(super) store: PathBuf,
    pub(super) scratch: Scratch,
    pub(super) flavour: Flavour,
}

impl Place {
    pub(super) fn open(
        path: &Path,
        role: Role,
        live: Live,
        masks: &[NameMask],
        store: &Path,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(store.join(LAYERS))?;
        std::fs::create_dir_all(store.join(EXTRAS))?;
        std::fs::write(store.join(ORIGIN), path.as_os_str().as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
            root: rustix::fs::open(path, DIRECTORY, Mode::empty())?,
            role,
            live,
            masks: masks.to_vec(),
            store: store.to_owned(),
            scratch: Scratch::open(&store.join("scratch"))?,
            flavour: Flavour::of(live),
        })
    }

    /// Is the directory at the path still the one that is open here?
    pub(super) fn is_current(&self) -> io::Result<bool> {
        let now = match rustix::fs::stat(&self.path) {
            Err(Errno::NOENT) => return Ok(false),
            other => other?,
        };
        let open = rustix::fs::fstat(&self.root)?;
        Ok((now.st_dev, now.st_ino) == (open.st_dev, open.st_ino))
    }

    pub(super) fn layer(&self, id: LayerId) -> PathBuf {
        self.store.join(LAYERS).join(id.to_string())
    }

    /// The layers that are on disk, used or not.
    pub(super) fn layers(&self) -> io::Result<Vec<LayerId>> {
        let mut layers = Vec::new();
        for entry in std::fs::read_dir(self.store.join(LAYERS))? {
            layers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<LayerId>().ok()));
        }
        Ok(layers)
    }
}

pub(super) const LAYERS: &str = "layers";
/// Per sandbox: what it alone sees on top, such as secrets it was given.
pub(super) const EXTRAS: &str = "extras";
/// Holds the path of the directory that is captured here.
pub(super) const ORIGIN: &str = "origin";
