//! The file system that holds zeno's state.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Rights;
use crate::image;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StateDir {
    Usable(Disk),
    Unusable { errno: i32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// As `mount -t` calls it, or its magic number.
    pub file_system: String,
    pub free: u64,
    /// Can a file be copied without copying its data?
    pub reflink: bool,
}

pub(super) fn probe(state_dir: &Path) -> StateDir {
    match look(state_dir) {
        Ok(disk) => StateDir::Usable(disk),
        Err(error) => StateDir::Unusable { errno: error.raw_os_error().unwrap_or(libc::EIO) },
    }
}

/// Can what a sandbox with `--disk` writes be kept on a disk image?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskImages {
    Usable,
    /// Only root may mount one.
    NotRoot,
    NoLoopDevice,
    NoMkfs,
}

impl DiskImages {
    pub(super) fn probe(rights: Rights) -> Self {
        let can_loop = || OpenOptions::new().read(true).write(true).open(image::CONTROL).is_ok();
        match rights {
            Rights::User { .. } => Self::NotRoot,
            Rights::Root if !can_loop() => Self::NoLoopDevice,
            Rights::Root if image::find(image::MKFS).is_err() => Self::NoMkfs,
            Rights::Root => Self::Usable,
        }
    }

    /// What would make it possible; empty when it is.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Usable => "",
            Self::NotRoot => "run zeno as root",
            Self::NoLoopDevice => "sudo modprobe loop",
            Self::NoMkfs => "install e2fsprogs, for example with `sudo apt-get install e2fsprogs`",
        }
    }
}

fn look(state_dir: &Path) -> io::Result<Disk> {
    fs::create_dir_all(state_dir)?;
    let status = rustix::fs::statfs(state_dir)?;
    let free = rustix::fs::statvfs(state_dir)?;
    Ok(Disk {
        file_system: name(status.f_type as u64),
        free: free.f_bavail.saturating_mul(free.f_frsize),
        reflink: can_reflink(state_dir)?,
    })
}

fn can_reflink(state_dir: &Path) -> io::Result<bool> {
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let paths = ["from", "to"].map(|side| state_dir.join(format!("probe-reflink-{thread}-{side}")));
    let clone = || {
        fs::write(&paths[0], b"x")?;
        let (from, to) = (File::open(&paths[0])?, File::create(&paths[1])?);
        Ok(rustix::fs::ioctl_ficlone(&to, &from).is_ok())
    };
    let result = clone();
    for path in &paths {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    result
}

fn name(magic: u64) -> String {
    let known = NAMES.iter().find(|(number, _)| *number == magic);
    known.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned())
}

/// From linux/magic.h and the file systems' own headers.
const NAMES: &[(u64, &str)] = &[
    (0xef53, "ext4"),
    (0x9123_683e, "btrfs"),
    (0x5846_5342, "xfs"),
    (0x0102_1994, "tmpfs"),
    (0x794c_7630, "overlay"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
    (0x0102_1997, "9p"),
    (0xff53_4d42, "cifs"),
];
