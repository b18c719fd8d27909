//! The tree that holds an ordinary user's parts: the kernel refuses to overlay a folder with a mount below it, so such
//! folders are taken apart, and what is in them is overlaid one by one.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::Caveat;
use model::caveat::CaveatKind;

use super::mounts::Mount;
use super::plan::{Bone, BoneKind};

/// Files beside mounts are copied into the skeleton up to this size: they are configuration, not data.
const FILE_LIMIT: u64 = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct Skeleton {
    pub(super) bones: Vec<Bone>,
    /// Folders to overlay.
    pub(super) parts: Vec<PathBuf>,
    pub(super) caveats: Vec<Caveat>,
    put_in: Option<PathBuf>,
}

impl Skeleton {
    /// Takes `/` apart. `mounts` are all that can be seen; `skip` are folders that are made afresh. Something is put in at
    /// `put_in`.
    pub(super) fn of_root(mounts: &[Mount], skip: &[&Path], put_in: Option<&Path>) -> io::Result<Self> {
        let mut skeleton = Self { put_in: put_in.map(Path::to_owned), ..Self::default() };
        skeleton.take_apart(Path::new("/"), mounts, skip)?;
        Ok(skeleton)
    }

    fn take_apart(&mut self, folder: &Path, mounts: &[Mount], skip: &[&Path]) -> io::Result<()> {
        let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let kind = entry.file_type()?;
            if skip.contains(&path.as_path()) {
                self.bone(path, BoneKind::Folder { mode: 0o755 });
            } else if kind.is_dir() {
                self.folder(&path, mounts, skip)?;
            } else if kind.is_symlink() {
                let target = fs::read_link(&path)?;
                self.bone(path, BoneKind::Link { target });
            } else if kind.is_file() {
                self.file(path);
            }
        }
        Ok(())
    }

    fn folder(&mut self, path: &Path, mounts: &[Mount], skip: &[&Path]) -> io::Result<()> {
        let mode = fs::symlink_metadata(path)?.permissions().mode() & 0o7777;
        let readable =
            rustix::fs::access(path, rustix::fs::Access::READ_OK | rustix::fs::Access::EXEC_OK).is_ok();
        if !readable {
            // Nothing in it could be seen anyway; an overlay would only cost time.
            self.bone(path.to_owned(), BoneKind::Folder { mode: 0 });
            return Ok(());
        }
        let below = |mount: &&Mount| mount.point.starts_with(path) && mount.point != path;
        self.bone(path.to_owned(), BoneKind::Folder { mode: mode & !0o222 });
        let writable = rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok();
        let is_filled = self.put_in.as_ref().is_some_and(|put_in| put_in.starts_with(path));
        if !writable && !is_filled && fs::read_dir(path)?.next().is_none() {
            // Empty, and it stays so: the skeleton's own folder shows the same.
            return Ok(());
        }
        if mounts.iter().any(|mount| below(&mount)) {
            self.take_apart(path, mounts, skip)
        } else if mounts.iter().any(|mount| mount.point == path && !mount.is_real()) {
            let text = "a window on the kernel; shown empty";
            self.caveats.push(Caveat::at(CaveatKind::View, path.to_string_lossy(), text));
            Ok(())
        } else {
            self.parts.push(path.to_owned());
            Ok(())
        }
    }

    fn file(&mut self, path: PathBuf) {
        let read = fs::symlink_metadata(&path).and_then(|stat| {
            if stat.len() > FILE_LIMIT {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            Ok((stat.permissions().mode() & 0o7777, fs::read(&path)?))
        });
        match read {
            Ok((mode, bytes)) => self.bone(path, BoneKind::File { mode, bytes }),
            Err(error) => {
                let text = format!("a file beside a mount, left out: {error}");
                self.caveats.push(Caveat::at(CaveatKind::View, path.to_string_lossy(), text));
            }
        }
    }

    fn bone(&mut self, path: PathBuf, kind: BoneKind) {
        self.bones.push(Bone { path, kind });
    }
}
