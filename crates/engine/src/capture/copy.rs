//! Copying one entry of a directory into a layer: bytes with their holes, and everything around them.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, Dev, FileType, Mode, OFlags, SeekFrom, XattrFlags, openat};
use rustix::io::Errno;

use super::files::{Seen, Stat, look, look_at, remove_tree};
use super::fit::Print;
use super::index::{Absence, DirId, Entry, Flaw, Name};
use super::layer::Flavour;
use super::metadata::{self, Faith};

/// How a file's bytes get into the layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Means {
    Copy,
    /// Immutable: a hard link does, where the file system allows it.
    Link,
    /// Read live from this path beneath the data layer.
    Stub {
        path: Vec<u8>,
    },
}

/// One entry to be copied. Holds its own descriptors, so that it can be done on any thread.
#[derive(Debug)]
pub(super) struct Copy {
    pub(super) dir: DirId,
    pub(super) name: Name,
    pub(super) seen: Seen,
    pub(super) means: Means,
    pub(super) source: Arc<OwnedFd>,
    pub(super) target: Arc<OwnedFd>,
    /// Nothing stands at the target yet and nobody would miss it after a crash.
    pub(super) is_fresh: bool,
}

/// Where half-made files live until they are renamed into place.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: OwnedFd,
    next: AtomicU64,
}

impl Scratch {
    /// Empties what a crash left there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let dir = rustix::fs::open(path, super::files::DIRECTORY, Mode::empty())?;
        for (name, _) in super::files::list(&dir)? {
            remove_tree(&dir, &name)?;
        }
        Ok(Self { dir, next: AtomicU64::new(0) })
    }

    /// Lets `make` build something under a name nobody uses, then moves it to `name`, over whatever is there.
    pub(super) fn place<T>(
        &self,
        target: impl AsFd,
        name: &[u8],
        make: impl FnOnce(&OwnedFd, &[u8]) -> io::Result<T>,
    ) -> io::Result<T> {
        let scratch = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        let made = match make(&self.dir, scratch.as_bytes()) {
            Ok(made) => made,
            Err(error) => {
                remove_tree(&self.dir, scratch.as_bytes())?;
                return Err(error);
            }
        };
        loop {
            match rustix::fs::renameat(&self.dir, &*scratch, &target, name) {
                Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                    remove_tree(&target, name)?
                }
                other => {
                    other?;
                    break;
                }
            }
        }
        // Renaming one link of a file over another does nothing at all.
        remove_tree(&self.dir, scratch.as_bytes())?;
        Ok(made)
    }
}

impl Copy {
    /// Copies. `None`: it vanished, or became something else, before it could be read.
    pub(super) fn run(&self, scratch: &Scratch, flavour: Flavour) -> io::Result<Option<Entry>> {
        let made = if self.is_fresh {
            self.make(&self.target, &self.name, flavour)
        } else {
            scratch.place(&self.target, &self.name, |dir, name| self.make(dir, name, flavour))
        };
        match made {
            Ok(entry) => self.printed(entry).map(Some),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::ISDIR) => Ok(None),
                Some(Errno::ACCESS | Errno::PERM) => {
                    Ok(Some(Entry::Absent { why: Absence::Unreadable, stat: self.seen.stat }))
                }
                _ => Err(error),
            },
        }
    }

    /// Looked at in its place: being renamed counts as a change.
    fn printed(&self, mut entry: Entry) -> io::Result<Entry> {
        if let Entry::File { print, .. } = &mut entry
            && let Some(copy) = look(&*self.target, &self.name)?
        {
            *print = Print { ino: copy.stat.ino, ctime: copy.stat.ctime };
        }
        Ok(entry)
    }

    fn make(&self, target: &OwnedFd, name: &[u8], flavour: Flavour) -> io::Result<Entry> {
        match self.seen.stat.file_type() {
            FileType::Symlink => self.make_symlink(target, name),
            FileType::Fifo => self.make_fifo(target, name),
            _ => match &self.means {
                Means::Copy => self.make_file(target, name),
                Means::Link => self.make_link(target, name),
                Means::Stub { path } => self.make_stub(target, name, path, flavour),
            },
        }
    }

    fn make_symlink(&self, target: &OwnedFd, name: &[u8]) -> io::Result<Entry> {
        let text = rustix::fs::readlinkat(&self.source, &*self.name, Vec::new())?;
        rustix::fs::symlinkat(text, target, name)?;
        self.dress(target, name)?;
        Ok(Entry::Symlink(self.seen.stat))
    }

    fn make_fifo(&self, target: &OwnedFd, name: &[u8]) -> io::Result<Entry> {
        rustix::fs::mknodat(target, name, FileType::Fifo, Mode::RUSR, 0)?;
        rustix::fs::chmodat(target, name, self.seen.stat.permissions(), AtFlags::empty())?;
        self.dress(target, name)?;
        Ok(Entry::Fifo(self.seen.stat))
    }

    /// Owner and times of what cannot be opened.
    fn dress(&self, target: &OwnedFd, name: &[u8]) -> io::Result<()> {
        let stat = &self.seen.stat;
        metadata::own(stat, |uid, gid| {
            rustix::fs::chownat(target, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
        })?;
        rustix::fs::utimensat(target, name, &metadata::times(stat), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    fn make_link(&self, target: &OwnedFd, name: &[u8]) -> io::Result<Entry> {
        match rustix::fs::linkat(&self.source, &*self.name, target, name, AtFlags::empty()) {
            Ok(()) => Ok(Entry::Linked(self.seen.stat)),
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::ACCESS | Errno::NOTSUP) => {
                self.make_file(target, name)?;
                Ok(Entry::Linked(self.seen.stat))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn make_stub(&self, target: &OwnedFd, name: &[u8], path: &[u8], flavour: Flavour) -> io::Result<Entry> {
        let stub = openat(target, name, CREATE, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::ftruncate(&stub, self.seen.stat.size)?;
        let mut redirect = b"/".to_vec();
        redirect.extend_from_slice(path);
        rustix::fs::fsetxattr(&stub, flavour.redirect(), &redirect, XattrFlags::empty())?;
        rustix::fs::fsetxattr(&stub, flavour.metacopy(), b"", XattrFlags::empty())?;
        let source = openat(
            &self.source,
            &*self.name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let stat = look_at(&source)?.stat;
        let owner = metadata::own(&stat, |uid, gid| rustix::fs::fchown(&stub, uid, gid))?;
        rustix::fs::fchmod(&stub, metadata::permissions(&stat, owner))?;
        rustix::fs::futimens(&stub, &metadata::times(&stat))?;
        Ok(Entry::Stub(self.seen.stat))
    }

    fn make_file(&self, target: &OwnedFd, name: &[u8]) -> io::Result<Entry> {
        // NONBLOCK: should it have become a fifo meanwhile, opening must not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let source = openat(&self.source, &*self.name, flags, Mode::empty())?;
        let copy = openat(target, name, CREATE, Mode::RUSR | Mode::WUSR)?;
        let mut attempts = 0;
        loop {
            let before = look_at(&source)?;
            if before.stat.file_type() != FileType::RegularFile {
                return Err(Errno::ISDIR.into());
            }
            copy_bytes(&source, &copy, &before)?;
            let faith = metadata::copy(&source, &before.stat, &copy)?;
            let after = look_at(&source)?.stat;
            attempts += 1;
            let is_whole = unchanged(&before.stat, &after);
            if is_whole || attempts == ATTEMPTS {
                let flaw = match (is_whole, faith) {
                    (true, Faith::Whole) => None,
                    (true, Faith::Partial) => Some(Flaw::Metadata),
                    (false, _) => Some(Flaw::Torn),
                };
                let stat = if is_whole && has_settled(&after) { after } else { after.distrusted() };
                return Ok(Entry::File { stat, print: Print::default(), flaw });
            }
            rustix::fs::ftruncate(&copy, 0)?;
        }
    }
}

/// Links elsewhere may come and go meanwhile; they move the change time without changing the file.
fn unchanged(before: &Stat, after: &Stat) -> bool {
    Stat { nlink: 0, ctime: after.ctime, ..*before } == Stat { nlink: 0, ..*after }
        && (before.ctime == after.ctime || before.nlink != after.nlink)
}

/// File times move in ticks of a few milliseconds: a write just after this look could leave the same time.
fn has_settled(stat: &Stat) -> bool {
    let changed = Duration::new(u64::try_from(stat.ctime.0).unwrap_or(0), stat.ctime.1);
    SystemTime::now().duration_since(UNIX_EPOCH + changed).is_ok_and(|age| age > TICK)
}

/// Copies the contents of a file with its holes, or shares them where the file system can.
pub(crate) fn copy_bytes(source: &OwnedFd, target: &OwnedFd, seen: &Seen) -> io::Result<()> {
    let size = seen.stat.size;
    if size == 0 {
        return Ok(());
    }
    let between = (seen.device, look_at(target)?.device);
    if UNSHARED.share(between, || rustix::fs::ioctl_ficlone(target, source)) {
        return Ok(());
    }
    if !seen.is_sparse {
        return copy_range(source, target, 0, u64::MAX, size);
    }
    let mut at = 0;
    while at < size {
        let data = match rustix::fs::seek(source, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = rustix::fs::seek(source, SeekFrom::Hole(data))?;
        copy_range(source, target, data, at - data, at - data)?;
    }
    rustix::fs::ftruncate(target, size)?;
    Ok(())
}

/// The pairs of file systems, from and to, between which contents cannot be shared: a useless call less for every file.
/// Should another one get the number of one that is unmounted, its files are copied, which is right too.
#[derive(Debug)]
struct Unshared(RwLock<BTreeSet<(Dev, Dev)>>);

impl Unshared {
    const fn new() -> Self {
        Self(RwLock::new(BTreeSet::new()))
    }

    /// Tries to share, unless that is known to be in vain. `false`: it was.
    fn share(&self, between: (Dev, Dev), share: impl FnOnce() -> Result<(), Errno>) -> bool {
        // Hardly anybody ever writes, so nobody waits here.
        if self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&between) {
            return false;
        }
        match share() {
            Ok(()) => true,
            Err(Errno::NOTSUP | Errno::XDEV | Errno::NOTTY | Errno::NOSYS) => {
                self.0.write().unwrap_or_else(PoisonError::into_inner).insert(between);
                false
            }
            // A matter of this one file.
            Err(_) => false,
        }
    }
}

/// Copies up to `left` bytes or to the end, whichever comes first; about `expected` will be there.
fn copy_range(
    source: &OwnedFd,
    target: &OwnedFd,
    mut at: u64,
    mut left: u64,
    expected: u64,
) -> io::Result<()> {
    // One byte more than expected: a read that comes back short has met the end.
    let length = usize::try_from(expected).unwrap_or(BUFFER).saturating_add(1).min(BUFFER);
    let mut buffer = vec![0; length];
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(length).min(length);
        let got = rustix::io::retry_on_intr(|| rustix::io::pread(source, &mut buffer[..want], at))?;
        let mut written = 0;
        while written < got {
            let place = at + written as u64;
            written +=
                rustix::io::retry_on_intr(|| rustix::io::pwrite(target, &buffer[written..got], place))?;
        }
        if got < want {
            break;
        }
        at += got as u64;
        left -= got as u64;
    }
    Ok(())
}

pub(super) const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const ATTEMPTS: u32 = 3;
const BUFFER: usize = 128 * 1024;
/// Twice the coarsest tick of a common kernel (HZ=100).
const TICK: Duration = Duration::from_millis(20);
static UNSHARED: Unshared = Unshared::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_of_file_systems_says_nothing_of_another() {
        let unshared = Unshared::new();
        let mut asked = 0;
        let mut share = |between, answer| {
            unshared.share(between, || {
                asked += 1;
                answer
            })
        };
        for (at, refused) in [Errno::NOTSUP, Errno::XDEV, Errno::NOTTY, Errno::NOSYS].into_iter().enumerate()
        {
            assert!(!share((0, at as Dev), Err(refused)));
            assert!(!share((0, at as Dev), Ok(())), "not asked again: {refused}");
        }
        assert!(share((0, 9), Ok(())));
        assert!(share((3, 0), Ok(())), "the other way round is another pair");
        assert!(!share((5, 5), Err(Errno::INVAL)));
        assert!(share((5, 5), Ok(())), "one file may be odd");
        assert_eq!(asked, 8);
    }
}
