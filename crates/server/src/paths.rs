//! Where the daemon's own files lie in its home.

use std::path::{Path, PathBuf};

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
