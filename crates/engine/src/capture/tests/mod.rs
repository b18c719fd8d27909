//! The real thing: real files, real overlays, real git.

mod fresh;
mod tree;
mod view;

use std::path::{Path, PathBuf};

use model::SandboxId;
use model::mask::{Masks, NameMask};
use tempfile::TempDir;

use super::{Captures, Frozen, Live};

/// A workspace, and a store beside it.
pub(super) struct Lab {
    dir: TempDir,
    pub(super) live: Live,
    pub(super) captures: Captures,
    next_holder: u64,
}

impl Lab {
    pub(super) fn new() -> Self {
        let is_root = rustix::process::geteuid().is_root();
        Self::with(if is_root { Live::Redirect } else { Live::Stubs })
    }

    pub(super) fn with(live: Live) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        let captures = open(&dir.path().join("store"), live);
        Self { dir, live, captures, next_holder: 0 }
    }

    pub(super) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(super) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.work().join(path)
    }

    pub(super) fn outside(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Writes a file, with the folders it needs.
    pub(super) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn holder(&mut self) -> SandboxId {
        self.next_holder += 1;
        SandboxId::from_bits(self.next_holder)
    }

    pub(super) fn freeze(&mut self) -> (SandboxId, Frozen) {
        let holder = self.holder();
        (holder, self.captures.freeze(&self.work(), holder, &[], &|_| ()).unwrap())
    }

    /// As after a crash of the daemon: nothing is saved, nobody is adopted.
    pub(super) fn restart(&mut self) {
        let fresh = open(&self.dir.path().join("store"), self.live);
        std::mem::forget(std::mem::replace(&mut self.captures, fresh));
    }

    pub(super) fn git(&self, arguments: &[&str]) {
        git(&self.work(), arguments);
    }
}

pub(super) fn open(store: &Path, live: Live) -> Captures {
    Captures::open(store, live, masks()).unwrap()
}

pub(super) fn masks() -> Vec<NameMask> {
    Masks::built_in().workspace
}

pub(super) fn git(folder: &Path, arguments: &[&str]) {
    let status = std::process::Command::new("git")
        .args(["-c", "user.name=zeno", "-c", "user.email=zeno@localhost", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "git {arguments:?}");
}
