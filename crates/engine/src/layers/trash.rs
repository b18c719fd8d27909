//! What is no longer needed: put out of sight in no time, removed when there is time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::LayerError;

/// A folder whose contents nobody will miss.
#[derive(Debug)]
pub struct Trash {
    folder: PathBuf,
    next: AtomicU64,
}

impl Trash {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, next: AtomicU64::new(0) }
    }

    /// Puts a folder out of sight. One that is not there is gone already.
    pub fn take(&self, path: &Path) -> Result<(), LayerError> {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            match fs::rename(path, self.folder.join(number.to_string())) {
                // An earlier daemon left something there.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                    ) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                other => {
                    return other.map_err(|source| LayerError::ThrowAway { path: path.to_owned(), source });
                }
            }
        }
    }

    /// What waits to be removed.
    pub fn list(&self) -> Result<Vec<PathBuf>, LayerError> {
        let failed = |source| LayerError::EmptyTrash { path: self.folder.clone(), source };
        let entries = fs::read_dir(&self.folder).map_err(failed)?;
        entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
    }

    /// Removes all that is in it. Takes its time.
    pub fn empty(&self) -> Result<(), LayerError> {
        for path in self.list()? {
            crate::remove::tree(&path).map_err(|source| LayerError::EmptyTrash { path, source })?;
        }
        Ok(())
    }
}
