//! What this machine can do for sandboxes: asked once, kept as a type, reported, never guessed round.
//!
//! The answers come from really doing it (an overlay is mounted, a file is cloned), in forked children that
//! vanish with what they mounted. The children only make system calls on memory prepared before the fork, so
//! [`probe`] may be called in a threaded process too. Never changes a setting, never leaves anything behind.

mod child;
mod disk;
mod facts;
mod kernel;
mod overlay;
mod report;
mod sys;
#[cfg(test)]
mod tests;
mod userns;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cgroup::Layout;

pub use disk::{Disk, DiskImages, StateDir};
pub use facts::{Inotify, Rights};
pub use kernel::{Flaw, Kernel};
pub use overlay::{Idmap, Overlay};
pub use report::report;
pub use userns::{Refusal, Userns};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub kernel: Kernel,
    pub rights: Rights,
    pub userns: Userns,
    /// With upper and lower on the state directory's file system, the way sandboxes of this user mount it.
    pub overlay: Overlay,
    pub idmap: Idmap,
    /// May an ordinary user's overlay take a file's content from a data-only layer (Linux 6.16)? Ignored
    /// folders can then be read in place instead of copied.
    pub data_only_stubs: bool,
    /// `fsopen` and its kin (Linux 5.2).
    pub mount_api: bool,
    pub cgroup: Layout,
    pub seccomp: bool,
    /// 0: none.
    pub landlock_abi: u32,
    pub inotify: Inotify,
    pub state_dir: StateDir,
    pub open_files: u64,
    /// CLOCK_BOOTTIME in seconds: lifetimes are measured through suspend. `None`: the kernel has no such clock.
    pub boot_clock: Option<u64>,
    pub disk_images: DiskImages,
}

/// Looks at the machine. Takes some milliseconds; makes `state_dir` if it is not there.
#[must_use]
pub fn probe(state_dir: &Path) -> Machine {
    let rights = Rights::probe();
    let (userns, namespace) = userns::probe();
    let state = disk::probe(state_dir);
    let overlay = overlay::probe(state_dir, rights, namespace.as_ref());
    Machine {
        kernel: Kernel::probe(),
        rights,
        userns,
        overlay: overlay.overlay,
        idmap: overlay.idmap,
        data_only_stubs: overlay.data_only_stubs,
        mount_api: sys::has_mount_api(),
        cgroup: Layout::probe(state_dir),
        seccomp: sys::has_seccomp(),
        landlock_abi: sys::landlock_abi(),
        inotify: Inotify::probe(),
        state_dir: state,
        open_files: facts::open_files(),
        boot_clock: facts::boot_clock(),
        disk_images: DiskImages::probe(rights),
    }
}
