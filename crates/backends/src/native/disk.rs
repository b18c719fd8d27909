//! What a sandbox has on disk.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::units::Size;

use super::problem::NativeError;

/// Bytes a tree takes, but for the folders themselves. A file with several names counts once; what vanishes meanwhile, or
/// lies in a folder that we may not read, counts nothing.
pub(super) fn used(path: &Path) -> Result<Size, NativeError> {
    counted(path, |_, _| false)
}

/// The same without what stands in the other tree, too, at the same path and written at the same time.
pub(super) fn used_beyond(path: &Path, other: &Path) -> Result<Size, NativeError> {
    counted(path, |entry, stat| {
        let Ok(inside) = entry.strip_prefix(path) else { return false };
        let facts = |stat: &fs::Metadata| (stat.mode(), stat.size(), stat.mtime(), stat.mtime_nsec());
        fs::symlink_metadata(other.join(inside)).is_ok_and(|other| facts(&other) == facts(stat))
    })
}

fn counted(path: &Path, is_known: impl Fn(&Path, &fs::Metadata) -> bool) -> Result<Size, NativeError> {
    let failed = |source| NativeError::Read { path: path.to_owned(), source };
    let mut total = 0;
    let mut several_names = HashSet::new();
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
            } else if !is_known(&entry.path(), &stat)
                && (stat.nlink() < 2 || several_names.insert((stat.dev(), stat.ino())))
            {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_takes_its_room_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        assert_eq!(used(folder.path()).unwrap(), Size(0));
        fs::write(path("sub/file"), [1; 100_000]).unwrap();
        let once = used(folder.path()).unwrap();
        assert!((100_000..200_000).contains(&once.0), "{once}");
        fs::hard_link(path("sub/file"), path("other")).unwrap();
        assert_eq!(used(folder.path()).unwrap(), once);
        fs::copy(path("other"), path("copy")).unwrap();
        assert_eq!(used(folder.path()).unwrap(), Size(once.0 * 2));
    }
}
