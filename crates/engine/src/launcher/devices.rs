//! A minimal `/dev`, made once and copied into every sandbox.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountFlags, mount, mount_bind};

use super::rights::Rights;
use super::wire::LaunchError;

/// Name, major and minor number. `kmsg`, `mem`, `kvm`, `fuse`, disks and the like are not given.
const NODES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Fills `folder` with a tmpfs that holds the devices, the links, and mount points for `pts` and `shm`.
pub(super) fn prepare(folder: &Path, rights: Rights) -> Result<(), LaunchError> {
    let failed = |what: &str, e: std::io::Error| LaunchError::new(format!("make /dev/{what}"), e);
    mount(
        "zeno-dev",
        folder,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NOEXEC,
        c"mode=0755,size=64k,nr_inodes=64",
    )
    .map_err(|e| failed("", e.into()))?;
    for (name, major, minor) in NODES {
        let path = folder.join(name);
        match rights {
            Rights::Root => {
                let mode = Mode::from_raw_mode(0o666);
                mknodat(CWD, &path, FileType::CharacterDevice, mode, makedev(major, minor))
                    .map_err(|e| failed(name, e.into()))?;
                // mknod is subject to the umask.
                fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).map_err(|e| failed(name, e))?;
            }
            Rights::User { .. } => {
                fs::write(&path, "").map_err(|e| failed(name, e))?;
                mount_bind(Path::new("/dev").join(name), &path).map_err(|e| failed(name, e.into()))?;
            }
        }
    }
    for (name, target) in LINKS {
        symlink(target, folder.join(name)).map_err(|e| failed(name, e))?;
    }
    for name in ["pts", "shm"] {
        fs::create_dir(folder.join(name)).map_err(|e| failed(name, e))?;
    }
    Ok(())
}
