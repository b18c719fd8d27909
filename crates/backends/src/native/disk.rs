//! What a sandbox has on disk.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::units::Size;

use super::problem::NativeError;

/// Bytes a tree takes. Folders that vanish or cannot be read meanwhile count nothing.
pub(super) fn used(path: &Path) -> Result<Size, NativeError> {
    let failed = |source| NativeError::Read { path: path.to_owned(), source };
    let mut total = 0;
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if folder == path && error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            let Ok(stat) = entry.metadata() else { continue };
            if stat.is_dir() {
                folders.push(entry.path());
            } else {
                total += stat.blocks() * 512;
            }
        }
    }
    Ok(Size(total))
}

/// Brings everything below to the disk.
pub(super) fn sync(path: &Path) -> Result<(), NativeError> {
    let failed = |source| NativeError::Write { path: path.to_owned(), source };
    let folder = File::open(path).map_err(failed)?;
    rustix::fs::syncfs(&folder).map_err(|error| failed(error.into()))
}

/// Does a file end with these bytes? One that cannot be read does not.
pub(super) fn ends_with(path: &Path, bytes: &[u8]) -> bool {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-(bytes.len() as i64)))?;
        let mut tail = Vec::new();
        file.take(bytes.len() as u64).read_to_end(&mut tail)?;
        Ok(tail)
    };
    read().is_ok_and(|tail| tail == bytes)
}
