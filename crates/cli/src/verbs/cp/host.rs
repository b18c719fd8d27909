//! This machine's side of a copy. What comes out of a sandbox is not trusted: no link is followed on the way
//! to a file, and no bit that lends somebody's rights is set.

use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use model::files::FileKind;
use rustix::fs::{Mode, OFlags};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

use super::spot::{Contents, Entry};
use crate::failure::Failure;

/// The place meant by a path that the user typed: only there links are followed.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, Failure> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(source) => Err(Failure::WriteHost { path: path.to_owned(), source }),
    }
}

pub(super) fn look(path: &Path) -> Result<Entry, Failure> {
    let failed = |source| Failure::ReadHost { path: path.to_owned(), source };
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    let target = if metadata.is_symlink() {
        fs::read_link(path).map_err(failed)?.into_os_string().into_vec()
    } else {
        Vec::new()
    };
    Ok(Entry { kind: kind(&metadata), mode: metadata.mode() & 0o7777, target })
}

pub(super) fn children(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |source| Failure::ReadHost { path: path.to_owned(), source };
    let names = fs::read_dir(path).map_err(failed)?.map(|entry| Ok(entry?.file_name().into_vec()));
    names.collect::<io::Result<_>>().map_err(failed)
}

pub(super) async fn read(path: &Path) -> Result<Contents, Failure> {
    let file =
        File::open(path).await.map_err(|source| Failure::ReadHost { path: path.to_owned(), source })?;
    Ok(Box::new(file))
}

pub(super) async fn write(path: &Path, mode: u32, mut contents: Contents) -> Result<(), Failure> {
    let failed = |source| Failure::WriteHost { path: path.to_owned(), source };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened =
        rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|errno| failed(errno.into()))?;
    let file = fs::File::from(opened);
    file.set_permissions(Permissions::from_mode(mode & PLAIN)).map_err(failed)?;
    let mut file = File::from_std(file);
    tokio::io::copy(&mut contents, &mut file).await.map_err(failed)?;
    // Dropping it would not wait for the last write.
    file.flush().await.map_err(failed)
}

pub(super) fn make_folder(path: &Path) -> Result<(), Failure> {
    let failed = |source| Failure::WriteHost { path: path.to_owned(), source };
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A link to a folder would lead the rest of the copy elsewhere.
            let metadata = fs::symlink_metadata(path).map_err(failed)?;
            if metadata.is_dir() { Ok(()) } else { Err(failed(error)) }
        }
        made => made.map_err(failed),
    }
}

pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), Failure> {
    fs::set_permissions(path, Permissions::from_mode(mode & PLAIN))
        .map_err(|source| Failure::WriteHost { path: path.to_owned(), source })
}

pub(super) fn link(path: &Path, target: &[u8]) -> Result<(), Failure> {
    let failed = |source| Failure::WriteHost { path: path.to_owned(), source };
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_dir()) {
        fs::remove_file(path).map_err(failed)?;
    }
    std::os::unix::fs::symlink(OsStr::from_bytes(target), path).map_err(failed)
}

fn kind(metadata: &Metadata) -> FileKind {
    let kind = metadata.file_type();
    if kind.is_dir() {
        FileKind::Directory
    } else if kind.is_symlink() {
        FileKind::Symlink
    } else if kind.is_fifo() {
        FileKind::Fifo
    } else if kind.is_socket() {
        FileKind::Socket
    } else if kind.is_block_device() || kind.is_char_device() {
        FileKind::Device
    } else {
        FileKind::File
    }
}

/// Read, write, execute; not setuid, setgid or sticky.
const PLAIN: u32 = 0o777;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn what_comes_out_follows_no_link_and_lends_no_rights() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("precious"), "mine").unwrap();
        symlink(at("precious"), at("trap")).unwrap();
        fs::create_dir(at("real")).unwrap();
        symlink(at("real"), at("door")).unwrap();

        assert!(write(&at("trap"), 0o644, Box::new(&b"evil"[..])).await.is_err());
        assert_eq!(fs::read_to_string(at("precious")).unwrap(), "mine");
        assert!(make_folder(&at("door")).is_err());
        assert!(make_folder(&at("real")).is_ok());

        write(&at("tool"), 0o4755, Box::new(&b"#!"[..])).await.unwrap();
        let expected = Entry { kind: FileKind::File, mode: 0o755, target: Vec::new() };
        assert_eq!(look(&at("tool")).unwrap(), expected);
        link(&at("tool"), b"precious").unwrap();
        let expected = Entry { kind: FileKind::Symlink, mode: 0o777, target: b"precious".to_vec() };
        assert_eq!(look(&at("tool")).unwrap(), expected);
    }
}
