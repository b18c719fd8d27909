//! The project's files, with errors that name the path.

use std::io;
use std::path::{Path, PathBuf};

/// The top of the checkout this xtask was built from.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("xtask lives in crates/xtask")
}

pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path).map_err(|source| FileError::Read { path: path.to_owned(), source })
}

/// Writes a file, and makes the folders above it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    std::fs::write(path, text).map_err(|source| FileError::Write { path: path.to_owned(), source })
}

pub(crate) fn make_folder(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(|source| FileError::MakeFolder { path: path.to_owned(), source })
}

pub(crate) fn remove_tree(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FileError::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    match std::fs::copy(from, to) {
        Ok(_bytes) => Ok(()),
        Err(source) => Err(FileError::Copy { from: from.to_owned(), to: to.to_owned(), source }),
    }
}

/// What a folder holds, sorted; nothing if there is no such folder.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let failed = |source| FileError::List { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot make the folder {}", path.display())]
    MakeFolder { path: PathBuf, source: io::Error },
    #[error("cannot remove {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error("cannot copy {} to {}", from.display(), to.display())]
    Copy { from: PathBuf, to: PathBuf, source: io::Error },
    #[error("cannot list {}", path.display())]
    List { path: PathBuf, source: io::Error },
}
