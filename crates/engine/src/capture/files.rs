//! Looking at directories and files through descriptors: names are bytes, paths may be longer than `PATH_MAX`,
//! symlinks are never followed.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dev, FileType, Mode, OFlags, RawDir, ResolveFlags, Statx, StatxAttributes, StatxFlags, makedev,
    openat, openat2,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The part of a file's metadata by which a change is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stat {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    /// With the file type, as in `st_mode`.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) mtime: (i64, u32),
    pub(crate) ctime: (i64, u32),
}

impl Stat {
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn permissions(&self) -> Mode {
        Mode::from_raw_mode(self.mode)
    }

    /// Never equal to what the kernel reports, so that the next look copies again.
    pub(super) fn distrusted(mut self) -> Self {
        self.ctime.1 = u32::MAX;
        self
    }

    fn from_statx(statx: &Statx) -> Self {
        Self {
            ino: statx.stx_ino,
            size: statx.stx_size,
            mode: u32::from(statx.stx_mode),
            uid: statx.stx_uid,
            gid: statx.stx_gid,
            nlink: statx.stx_nlink,
            mtime: (statx.stx_mtime.tv_sec, statx.stx_mtime.tv_nsec),
            ctime: (statx.stx_ctime.tv_sec, statx.stx_ctime.tv_nsec),
        }
    }
}

/// One look at a directory entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) stat: Stat,
    /// The file system it is on, as in `st_dev`.
    pub(crate) device: Dev,
    /// Something else is mounted here.
    pub(crate) is_mount: bool,
    /// Fewer blocks than the size needs.
    pub(crate) is_sparse: bool,
}

impl Seen {
    fn from_statx(statx: &Statx) -> Self {
        Self {
            stat: Stat::from_statx(statx),
            device: makedev(statx.stx_dev_major, statx.stx_dev_minor),
            is_mount: statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
            is_sparse: statx.stx_blocks.saturating_mul(512) < statx.stx_size,
        }
    }
}

/// Looks at `name`; `None` if there is no such entry.
pub(crate) fn look(dir: impl AsFd, name: &[u8]) -> io::Result<Option<Seen>> {
    match rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS) {
        Ok(statx) => Ok(Some(Seen::from_statx(&statx))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Looks at what is open.
pub(crate) fn look_at(file: impl AsFd) -> io::Result<Seen> {
    let statx = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS)?;
    Ok(Seen::from_statx(&statx))
}

/// The names in a directory and what the directory says they are, in no particular order.
pub(crate) fn list(dir: impl AsFd) -> io::Result<Vec<(Box<[u8]>, FileType)>> {
    // A descriptor of our own, because reading moves its position.
    let dir = openat(dir, c".", DIRECTORY, Mode::empty())?;
    let mut buffer = Vec::with_capacity(32 * 1024);
    let mut names = Vec::new();
    let mut entries = RawDir::new(&dir, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push((name.into(), entry.file_type()));
        }
    }
    Ok(names)
}

/// Opens a directory strictly beneath `root`. Also paths that the kernel would not take in one piece.
pub(crate) fn open_beneath(root: impl AsFd, path: &[u8]) -> io::Result<OwnedFd> {
    let mut rest = path;
    let mut at: Option<OwnedFd> = None;
    while rest.len() > LONGEST_PIECE {
        let cut = rest[..LONGEST_PIECE].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let next = open_piece(at.as_ref().map_or(root.as_fd(), AsFd::as_fd), &rest[..cut])?;
        at = Some(next);
        rest = &rest[cut + 1..];
    }
    open_piece(at.as_ref().map_or(root.as_fd(), AsFd::as_fd), rest)
}

fn open_piece(at: impl AsFd, piece: &[u8]) -> io::Result<OwnedFd> {
    let piece: &[u8] = if piece.is_empty() { b"." } else { piece };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mut moved_away = 0;
    loop {
        match openat2(&at, piece, DIRECTORY, Mode::empty(), resolve) {
            // The kernel asks to try again when a rename elsewhere got in its way.
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The folder was moved out of the root while we were on the way to it: something else stands there now.
            Err(Errno::XDEV) if moved_away < 100 => moved_away += 1,
            other => return Ok(other?),
        }
    }
}

/// Removes `name` and everything below it. Nothing there is fine.
pub(crate) fn remove_tree(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR) => {}
        Err(error) => return Err(error.into()),
    }
    // Paths instead of open descriptors, so that depth costs memory and not descriptors.
    let mut pending = vec![name.to_vec()];
    while let Some(path) = pending.last().cloned() {
        let open = open_beneath(&dir, &path)?;
        make_writable(&open)?;
        let mut has_directories = false;
        for (child, file_type) in list(&open)? {
            if file_type == FileType::Directory {
                has_directories = true;
                pending.push(join(&path, &child));
            } else {
                rustix::fs::unlinkat(&open, &*child, AtFlags::empty())?;
            }
        }
        if !has_directories {
            pending.pop();
            let (parent, last) = split(&path);
            let parent = open_beneath(&dir, parent)?;
            rustix::fs::unlinkat(&parent, last, AtFlags::REMOVEDIR)?;
        }
    }
    Ok(())
}

/// An ordinary user cannot write into a read-only directory of the frozen copy, not even their own.
pub(super) fn make_writable(dir: impl AsFd) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mode = look_at(&dir)?.stat.permissions();
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(dir, mode | Mode::RWXU)?;
    }
    Ok(())
}

/// `path/name`, or `name` alone where the path is empty.
pub(crate) fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + name.len() + 1);
    joined.extend_from_slice(path);
    if !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The folder and the last name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

pub(crate) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Well below `PATH_MAX` (4096), which counts the final zero.
const LONGEST_PIECE: usize = 4000;
