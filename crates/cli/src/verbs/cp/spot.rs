//! A file, folder or link on either side, and what copying needs to do there.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::files::FileKind;
use tokio::io::AsyncRead;

use super::{host, inside};
use crate::api::{Api, FileRef};
use crate::failure::Failure;
use crate::render::words;

#[derive(Clone, Debug)]
pub(super) enum Spot<'a> {
    Host(PathBuf),
    Inside(FileRef<'a>),
}

/// What there is at a spot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: FileKind,
    pub(super) mode: u32,
    /// Where a link points; empty for everything else.
    pub(super) target: Vec<u8>,
}

pub(super) type Contents = Box<dyn AsyncRead + Send + Unpin>;

impl Spot<'_> {
    /// Its own name, which it keeps in another folder.
    pub(super) fn name(&self) -> Option<Vec<u8>> {
        match self {
            Self::Host(path) => super::file_name(path),
            Self::Inside(file) => super::file_name(Path::new(OsStr::from_bytes(&file.path))),
        }
    }

    pub(super) fn child(&self, name: &[u8]) -> Self {
        match self {
            Self::Host(path) => Self::Host(path.join(OsStr::from_bytes(name))),
            Self::Inside(file) => {
                let path = Path::new(OsStr::from_bytes(&file.path)).join(OsStr::from_bytes(name));
                Self::Inside(FileRef { path: path.as_os_str().as_bytes().to_vec(), ..file.clone() })
            }
        }
    }

    pub(super) async fn is_folder(&self, api: &Api) -> Result<bool, Failure> {
        match self {
            Self::Host(path) => Ok(path.is_dir()),
            Self::Inside(file) => inside::is_folder(api, file).await,
        }
    }

    pub(super) async fn look(&self, api: &Api) -> Result<Entry, Failure> {
        match self {
            Self::Host(path) => host::look(path),
            Self::Inside(file) => inside::look(api, file).await,
        }
    }

    pub(super) async fn children(&self, api: &Api) -> Result<Vec<Vec<u8>>, Failure> {
        match self {
            Self::Host(path) => host::children(path),
            Self::Inside(file) => inside::children(api, file).await,
        }
    }

    pub(super) async fn read(&self, api: &Api) -> Result<Contents, Failure> {
        match self {
            Self::Host(path) => host::read(path).await,
            Self::Inside(file) => inside::read(api, file).await,
        }
    }

    pub(super) async fn write(&self, api: &Api, mode: u32, contents: Contents) -> Result<(), Failure> {
        match self {
            Self::Host(path) => host::write(path, mode, contents).await,
            Self::Inside(file) => Ok(api.write(file, Some(mode), contents).await?),
        }
    }

    /// Makes it so that it can be filled; [`Self::set_mode`] has the last word.
    pub(super) async fn make_folder(&self, api: &Api, mode: u32) -> Result<(), Failure> {
        match self {
            Self::Host(path) => host::make_folder(path),
            Self::Inside(file) => Ok(api.make_folder(file, mode | OWNER_MAY_ALL).await?),
        }
    }

    pub(super) async fn set_mode(&self, api: &Api, mode: u32) -> Result<(), Failure> {
        match self {
            Self::Host(path) => host::set_mode(path, mode),
            Self::Inside(_) if mode & OWNER_MAY_ALL == OWNER_MAY_ALL => Ok(()),
            Self::Inside(file) => inside::set_mode(api, file, mode).await,
        }
    }

    pub(super) async fn link(&self, api: &Api, target: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Host(path) => host::link(path, target),
            Self::Inside(file) => inside::link(api, file, target).await,
        }
    }
}

impl fmt::Display for Spot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(path) => f.write_str(&words::clean(&path.to_string_lossy())),
            Self::Inside(file) => {
                write!(f, "{}:{}", file.which, words::clean(&String::from_utf8_lossy(&file.path)))
            }
        }
    }
}

const OWNER_MAY_ALL: u32 = 0o700;
