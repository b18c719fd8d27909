//! An upper folder, copied whole: bytes with their holes, links, whiteouts, and all that overlayfs noted on it.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, XattrFlags, openat};
use rustix::io::Errno;

use crate::capture::copy::copy_bytes;
use crate::capture::files::{DIRECTORY, Seen, Stat, join, list, look, open_beneath, split};
use crate::capture::layer::attribute;
use crate::capture::metadata::times;

/// Copies the tree at `from` to `to`, which is made. Nobody may change it meanwhile.
pub(crate) fn tree(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    let copy = Copy {
        from: rustix::fs::open(from, DIRECTORY, Mode::empty())?,
        to: rustix::fs::open(to, DIRECTORY, Mode::empty())?,
        is_root: rustix::process::geteuid().is_root(),
        forced: Mutex::default(),
    };
    let done = copy.run();
    copy.close_forced()?;
    done
}

struct Copy {
    from: OwnedFd,
    to: OwnedFd,
    is_root: bool,
    /// What is ours but may not even be read by us, and its permissions: readable for as long as this takes.
    forced: Mutex<Vec<(Vec<u8>, Mode)>>,
}

/// What a tree holds. Paths are relative to it.
#[derive(Default)]
struct Found {
    /// Parents before children.
    folders: Vec<(Vec<u8>, Stat)>,
    files: Vec<(Vec<u8>, Seen)>,
    /// Further names of something that has a name among the others: first that one, then this.
    links: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Copy {
    fn run(&self) -> io::Result<()> {
        let found = self.folders()?;
        self.files(&found.files)?;
        self.links(&found.links)?;
        // Last, and the deepest first: what is made in a folder changes its time, and it may be read-only.
        for (path, stat) in found.folders.iter().rev() {
            let (source, target) = (open_beneath(&self.from, path)?, open_beneath(&self.to, path)?);
            dress(&source, &target, stat, |_| true)?;
        }
        Ok(())
    }

    /// Makes every folder and everything that is quickly made, and finds the rest.
    fn folders(&self) -> io::Result<Found> {
        let mut found = Found::default();
        let mut names: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut pending = vec![Vec::new()];
        while let Some(path) = pending.pop() {
            let (source, stat) = self.open_folder(&path)?;
            found.folders.push((path.clone(), stat));
            let target = open_beneath(&self.to, &path)?;
            for (name, _) in list(&source)? {
                let child = join(&path, &name);
                let Some(seen) = look(&source, &name)? else { continue };
                let stat = &seen.stat;
                let is_folder = stat.file_type() == FileType::Directory;
                if !is_folder && stat.nlink > 1 {
                    if let Some(first) = names.get(&stat.ino) {
                        found.links.push((first.clone(), child));
                        continue;
                    }
                    names.insert(stat.ino, child.clone());
                }
                match stat.file_type() {
                    FileType::Directory => {
                        rustix::fs::mkdirat(&target, &*name, Mode::RWXU)?;
                        pending.push(child);
                    }
                    FileType::RegularFile => found.files.push((child, seen)),
                    FileType::Symlink => {
                        let text = rustix::fs::readlinkat(&source, &*name, Vec::new())?;
                        rustix::fs::symlinkat(text, &target, &*name)?;
                        self.dress_node(&target, &name, stat)?;
                    }
                    kind => {
                        let device = rustix::fs::statat(&source, &*name, AtFlags::SYMLINK_NOFOLLOW)?.st_rdev;
                        rustix::fs::mknodat(&target, &*name, kind, stat.permissions(), device)?;
                        rustix::fs::chmodat(&target, &*name, stat.permissions(), AtFlags::empty())?;
                        self.dress_node(&target, &name, stat)?;
                    }
                }
            }
        }
        Ok(found)
    }

    /// Opens a folder, and says what it looks like.
    fn open_folder(&self, path: &[u8]) -> io::Result<(OwnedFd, Stat)> {
        let (parent, name) = split(path);
        let name = if name.is_empty() { b"." } else { name };
        let stat = look(open_beneath(&self.from, parent)?, name)?.ok_or(Errno::NOENT)?.stat;
        if !self.is_root && !stat.permissions().contains(Mode::RUSR | Mode::XUSR) {
            self.force(path, &stat)?;
        }
        Ok((open_beneath(&self.from, path)?, stat))
    }

    /// The contents, on several threads where there are many.
    fn files(&self, files: &[(Vec<u8>, Seen)]) -> io::Result<()> {
        let next = AtomicUsize::new(0);
        let work = || -> io::Result<()> {
            while let Some((path, seen)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.file(path, seen)?;
            }
            Ok(())
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if files.len() < WORTH_A_THREAD { 0 } else { cores.min(MOST_THREADS) - 1 };
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mine = work();
            let theirs = others.into_iter().map(|thread| thread.join().expect("copying does not panic"));
            theirs.fold(mine, io::Result::and)
        })
    }

    fn file(&self, path: &[u8], seen: &Seen) -> io::Result<()> {
        let (folder, name) = split(path);
        let parent = open_beneath(&self.from, folder)?;
        if !self.is_root && !seen.stat.permissions().contains(Mode::RUSR) {
            self.force(path, &seen.stat)?;
        }
        let source = openat(&parent, name, READ, Mode::empty())?;
        let target = openat(open_beneath(&self.to, folder)?, name, CREATE, Mode::RUSR | Mode::WUSR)?;
        copy_bytes(&source, &target, seen)?;
        dress(&source, &target, &seen.stat, |_| true)
    }

    fn force(&self, path: &[u8], stat: &Stat) -> io::Result<()> {
        let (parent, name) = split(path);
        let name = if name.is_empty() { b"." } else { name };
        let mode = stat.permissions();
        self.forced.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_vec(), mode));
        let parent = open_beneath(&self.from, parent)?;
        Ok(rustix::fs::chmodat(parent, name, mode | Mode::RUSR | Mode::XUSR, AtFlags::empty())?)
    }

    /// The last first: it may lie in one that was forced before it.
    fn close_forced(&self) -> io::Result<()> {
        let mut forced = self.forced.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((path, mode)) = forced.pop() {
            let (parent, name) = split(&path);
            let name = if name.is_empty() { b"." } else { name };
            rustix::fs::chmodat(open_beneath(&self.from, parent)?, name, mode, AtFlags::empty())?;
        }
        Ok(())
    }

    fn links(&self, links: &[(Vec<u8>, Vec<u8>)]) -> io::Result<()> {
        for (first, path) in links {
            let ((old_folder, old), (folder, name)) = (split(first), split(path));
            let (old_folder, folder) = (open_beneath(&self.to, old_folder)?, open_beneath(&self.to, folder)?);
            rustix::fs::linkat(&old_folder, old, &folder, name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Owner and times of what cannot be opened.
    fn dress_node(&self, folder: &OwnedFd, name: &[u8], stat: &Stat) -> io::Result<()> {
        if self.is_root {
            let (uid, gid) = (Uid::from_raw(stat.uid), Gid::from_raw(stat.gid));
            rustix::fs::chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        Ok(rustix::fs::utimensat(folder, name, &times(stat), AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Owner, those attributes that are wanted, permissions and times of an open file or folder.
pub(crate) fn dress(
    source: &OwnedFd,
    target: &OwnedFd,
    stat: &Stat,
    is_wanted: impl Fn(&CStr) -> bool,
) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(stat.uid), Gid::from_raw(stat.gid));
        rustix::fs::fchown(target, Some(uid), Some(gid))?;
    }
    for name in attribute_names(source)?.into_iter().filter(|name| is_wanted(name)) {
        let Some(value) = attribute(source, &name)? else { continue };
        match rustix::fs::fsetxattr(target, &name, &value, XattrFlags::empty()) {
            // What the machine's security module writes on a file is its own business.
            Err(Errno::PERM | Errno::NOTSUP | Errno::ACCESS) if is_foreign(&name) => {}
            other => other?,
        }
    }
    rustix::fs::fchmod(target, stat.permissions())?;
    Ok(rustix::fs::futimens(target, &times(stat))?)
}

/// All of them, overlayfs's own too.
fn attribute_names(file: impl AsFd) -> io::Result<Vec<CString>> {
    let length = match rustix::fs::flistxattr_query(&file) {
        Ok(0) | Err(Errno::NOTSUP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = vec![0; length];
    let length = rustix::fs::flistxattr(&file, &mut names)?;
    let names = names[..length].split_inclusive(|byte| *byte == 0);
    Ok(names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()).map(CStr::to_owned).collect())
}

fn is_foreign(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(b"security.") && name != b"security.capability"
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Below this, starting threads costs more than they save.
const WORTH_A_THREAD: usize = 64;
const MOST_THREADS: usize = 4;
