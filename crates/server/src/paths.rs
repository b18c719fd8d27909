//! Where the daemon's own files lie in its home.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

pub(crate) fn socket(home: &Path) -> PathBuf {
    home.join("daemon.sock")
}

pub(crate) fn lock(home: &Path) -> PathBuf {
    home.join("daemon.lock")
}

pub(crate) fn log(home: &Path) -> PathBuf {
    home.join("daemon.log")
}

pub(crate) fn token(home: &Path) -> PathBuf {
    home.join("token")
}

pub(crate) fn listen(home: &Path) -> PathBuf {
    home.join("listen")
}

/// A path short enough for a socket's address, which holds 107 bytes. Good for as long as it is kept.
#[derive(Debug)]
pub(crate) struct Short {
    path: PathBuf,
    _folder: Option<OwnedFd>,
}

impl Short {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Self { path: path.to_owned(), _folder: None });
        };
        if path.as_os_str().len() <= MAX_ADDRESS {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }

    pub(crate) fn as_path(&self) -> &Path {
        &self.path
    }
}

const MAX_ADDRESS: usize = 107;
