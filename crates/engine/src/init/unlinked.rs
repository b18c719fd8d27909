//! What processes have deleted and still hold open: it takes room on the disk, and no folder shows it.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;

use crate::tree;

/// How many bytes that is, of all processes but init. What is only mapped is not found: the kernel shows no size of it.
pub(super) fn bytes() -> u64 {
    // By device and inode: the same file may be held open many times.
    let mut found: HashMap<(u64, u64), u64> = HashMap::new();
    let mut looks_left = LOOKS;
    for process in tree::all() {
        // Who ended meanwhile holds nothing.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{}/fd", process.pid)) else { continue };
        for descriptor in descriptors.flatten().take(looks_left) {
            looks_left -= 1;
            found.extend(unlinked(&descriptor.path()));
        }
    }
    found.into_values().sum()
}

/// Device, inode and bytes of a file that has no name any more.
fn unlinked(descriptor: &Path) -> Option<((u64, u64), u64)> {
    // Asked first: this is answered without asking the file system, which need not be one of ours.
    let name = fs::read_link(descriptor).ok()?;
    if !name.as_os_str().as_bytes().ends_with(b" (deleted)") {
        return None;
    }
    // Memory has such files, too, and they are no matter of the disk.
    if rustix::fs::statfs(descriptor).ok()?.f_type != OVERLAY {
        return None;
    }
    // One of the machine's own files that is deleted in here only has its name there still.
    let stat = rustix::fs::stat(descriptor).ok()?;
    let is_gone = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 0;
    let bytes = stat.st_blocks.cast_unsigned() * 512;
    is_gone.then_some(((stat.st_dev, stat.st_ino), bytes))
}

/// `OVERLAYFS_SUPER_MAGIC`: everything that a sandbox writes to disk is on one.
const OVERLAY: i64 = 0x794c_7630;
/// Descriptors that are looked at in one go: init does nothing else meanwhile.
const LOOKS: usize = 100_000;
