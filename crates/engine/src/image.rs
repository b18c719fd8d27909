//! A disk of limited size for what one sandbox writes: a sparse file that holds an ext4 file system, behind a loop device.
//!
//! Only root can have one. Nothing has to be detached: the kernel frees the loop device when its last user, a mount or an
//! open descriptor, is gone, however that came about. Mounting it for a sandbox is the launcher's; here it is only opened to be
//! read, at no path of the machine.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen,
};
use rustix::process::{Resource, getrlimit};

use crate::sys;

/// The smallest disk that holds a file system worth the name.
pub const SMALLEST: u64 = 1 << 20;

/// An image behind a loop device. Dropped, the device stays for as long as it is mounted.
#[derive(Debug)]
pub struct Attached {
    pub device: PathBuf,
    _held: OwnedFd,
}

/// The file system of an image, to be read.
#[derive(Debug)]
pub struct Opened {
    mount: OwnedFd,
}

impl Opened {
    /// Where its top folder is found, for this process and as long as it is held.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        crate::through(self.mount.as_fd(), "")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    #[error("{} is less than the smallest disk, {}", model::units::Size(*size), model::units::Size(SMALLEST))]
    TooSmall { size: u64 },
    #[error("could not make a disk image of {}", model::units::Size(*size))]
    Make { size: u64, source: io::Error },
    #[error("`{name}` is not installed")]
    NoProgram { name: &'static str },
    #[error("could not run `{}`", program.display())]
    Run { program: PathBuf, source: io::Error },
    #[error("`{}` failed: {said}", program.display())]
    Failed { program: PathBuf, said: String },
    #[error("could not open the disk image `{}`", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("the disk image `{}` is still in use", path.display())]
    InUse { path: PathBuf, source: io::Error },
    #[error("could not get a loop device")]
    Loop(#[source] io::Error),
    #[error("could not look into the disk image `{}`", path.display())]
    LookInto { path: PathBuf, source: io::Error },
    #[error("could not read the disk image `{}`", path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// Makes a disk of this size, its own bookkeeping (some three percent) included. Takes some milliseconds.
pub fn make(path: &Path, size: u64) -> Result<(), ImageError> {
    if size < SMALLEST {
        return Err(ImageError::TooSmall { size });
    }
    let failed = |source| ImageError::Make { size, source };
    // Beyond this limit the kernel does not only refuse but sends a signal that would end the daemon.
    let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX).min(i64::MAX.unsigned_abs());
    if limit < size {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    file.set_len(size).map_err(failed)?;
    let program = find(MKFS)?;
    // No journal: overlays of sandboxes are volatile, there is nothing it would save. Inodes for small files, as a
    // node_modules has, with room in them for overlayfs's attributes. The tables are zero already.
    let mut command = Command::new(&program);
    command
        .args(["-q", "-F", "-b", &BLOCK.to_string(), "-i", "8192", "-I", "256", "-m", "0"])
        .args(["-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard"])
        .arg(path);
    let output = run(&program, &mut command)?;
    if output.status.success() { Ok(()) } else { Err(refused(program, &output)) }
}

/// Puts the image behind a loop device. One that still is (an unmount takes a moment) is waited for: two devices on one
/// image would destroy it. What a crash of the machine left is repaired first.
pub fn attach(path: &Path) -> Result<Attached, ImageError> {
    let failed = |source| ImageError::Open { path: path.to_owned(), source };
    let image = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
    // The device holds our open file and with it this lock, and lets go of both when it is freed.
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = flock(&image, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK || Instant::now() > deadline {
            return Err(ImageError::InUse { path: path.to_owned(), source: error.into() });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    if !superblock(path, &image)?.is_clean() {
        mend(path)?;
    }
    behind_a_loop(&image).map_err(ImageError::Loop)
}

/// Opens an image to be read. A sandbox may be using it: then what is seen is what it sees.
pub fn open(path: &Path) -> Result<Opened, ImageError> {
    let failed = |source| ImageError::LookInto { path: path.to_owned(), source };
    let attached = match in_use(path).map_err(failed)? {
        Some(attached) => attached,
        None => attach(path)?,
    };
    let mount = mount(&attached.device).map_err(|error| failed(error.into()))?;
    Ok(Opened { mount })
}

/// The device that an image is behind, if it is behind one.
fn in_use(path: &Path) -> io::Result<Option<Attached>> {
    let is_behind = |name: &Path| {
        let file = std::fs::read_to_string(Path::new("/sys/block").join(name).join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == path)
    };
    for entry in std::fs::read_dir("/sys/block")? {
        let name = PathBuf::from(entry?.file_name());
        if !is_behind(&name) {
            continue;
        }
        let device = Path::new("/dev").join(&name);
        let held = OpenOptions::new().read(true).open(&device)?;
        // From here on it stays what it is.
        if is_behind(&name) {
            return Ok(Some(Attached { device, _held: held.into() }));
        }
    }
    Ok(None)
}

fn mount(device: &Path) -> rustix::io::Result<OwnedFd> {
    let context = fsopen("ext4", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "source", device)?;
    fsconfig_create(context.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Bytes in use on the disk of a sandbox that does not run. While it runs the disk itself is to be asked.
pub fn used(path: &Path) -> Result<u64, ImageError> {
    let image = File::open(path).map_err(|source| ImageError::Open { path: path.to_owned(), source })?;
    Ok(superblock(path, &image)?.used())
}

/// The first kilobyte of ext4's own, as linux/Documentation/filesystems/ext4/super.rst has it.
struct Superblock([u8; 1024]);

impl Superblock {
    fn number(&self, at: usize) -> u64 {
        u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.0[at + byte])).into()
    }

    /// Was it unmounted in order, and had no errors?
    fn is_clean(&self) -> bool {
        const UNMOUNTED: u8 = 1;
        const ERRORS: u8 = 2;
        self.0[0x3A] & (UNMOUNTED | ERRORS) == UNMOUNTED
    }

    fn used(&self) -> u64 {
        let blocks = self.number(0x4) | self.number(0x150) << 32;
        let free = self.number(0xC) | self.number(0x158) << 32;
        let bookkeeping = self.number(0x248);
        blocks.saturating_sub(free).saturating_sub(bookkeeping) * BLOCK
    }
}

fn superblock(path: &Path, image: &File) -> Result<Superblock, ImageError> {
    let mut block = [0; 1024];
    let read = image.read_exact_at(&mut block, 1024);
    read.map_err(|source| ImageError::Read { path: path.to_owned(), source })?;
    Ok(Superblock(block))
}

fn mend(path: &Path) -> Result<(), ImageError> {
    let program = find(FSCK)?;
    let output = run(&program, Command::new(&program).arg("-p").arg(path))?;
    // 1: it had errors, and now it has none.
    match output.status.code() {
        Some(0 | 1) => Ok(()),
        _ => Err(refused(program, &output)),
    }
}

/// Where a program of the system is. Not by PATH: it often lacks the sbin folders.
pub(crate) fn find(name: &'static str) -> Result<PathBuf, ImageError> {
    let folders = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].into_iter();
    let mut programs = folders.map(|folder| Path::new(folder).join(name));
    programs.find(|program| program.exists()).ok_or(ImageError::NoProgram { name })
}

fn run(program: &Path, command: &mut Command) -> Result<Output, ImageError> {
    let command = command.env_clear().stdin(Stdio::null());
    command.output().map_err(|source| ImageError::Run { program: program.to_owned(), source })
}

fn refused(program: PathBuf, output: &Output) -> ImageError {
    let said = [&output.stdout[..], &output.stderr].concat();
    ImageError::Failed { program, said: String::from_utf8_lossy(&said).trim().to_owned() }
}

fn behind_a_loop(image: &File) -> io::Result<Attached> {
    let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    for _ in 0..ATTEMPTS {
        let device = PathBuf::from(format!("/dev/loop{}", sys::free_loop(control.as_fd())?));
        let held = OpenOptions::new().read(true).write(true).open(&device)?;
        match sys::configure_loop(held.as_fd(), image.as_fd()) {
            Ok(()) => return Ok(Attached { device, _held: held.into() }),
            // Somebody else was quicker.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

pub(crate) const CONTROL: &str = "/dev/loop-control";
pub(crate) const MKFS: &str = "mkfs.ext4";
const FSCK: &str = "e2fsck";
/// Bytes of a block of the file system.
const BLOCK: u64 = 4096;
/// For the last unmount, which writes out what was written before.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than others could take loop devices from under our nose.
const ATTEMPTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn state(path: &Path) -> Superblock {
        superblock(path, &File::open(path).unwrap()).unwrap()
    }

    #[test]
    fn a_fresh_disk_is_nearly_empty_takes_no_room_and_is_mended_after_a_crash() {
        use std::os::unix::fs::MetadataExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.img");
        make(&path, 1 << 30).unwrap();
        assert!(used(&path).unwrap() < 64 << 10);
        assert!(path.metadata().unwrap().blocks() * 512 < 1 << 20);
        assert!(state(&path).is_clean());
        // As it is while it is mounted.
        let program = find("debugfs").unwrap();
        run(&program, Command::new(&program).args(["-w", "-R", "dirty"]).arg(&path)).unwrap();
        assert!(!state(&path).is_clean());
        mend(&path).unwrap();
        assert!(state(&path).is_clean());
    }

    #[test]
    fn a_loop_device_goes_with_its_last_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.img");
        make(&path, SMALLEST).unwrap();
        if !rustix::process::geteuid().is_root() {
            assert!(attach(&path).is_err(), "only root has loop devices");
            return;
        }
        let first = attach(&path).unwrap();
        let behind =
            Path::new("/sys/block").join(first.device.file_name().unwrap()).join("loop/backing_file");
        assert_eq!(std::fs::read_to_string(&behind).unwrap().trim(), path.to_str().unwrap());
        // One image has one device: the second comes when the first is gone, and not before.
        let second = std::thread::scope(|scope| {
            let second = scope.spawn(|| attach(&path).unwrap());
            std::thread::sleep(Duration::from_millis(50));
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap()
        });
        drop(second);
        let is_ours =
            || std::fs::read_to_string(&behind).is_ok_and(|file| file.trim() == path.to_str().unwrap());
        assert!(!is_ours());
    }
}
