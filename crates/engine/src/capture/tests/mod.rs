//! The real thing: real files, real overlays, real git.

mod copied;
mod crash;
mod edits;
mod fit;
mod fresh;
mod odd;
mod random;
pub(crate) mod tree;
mod view;

use std::path::{Path, PathBuf};

use model::SandboxId;
use model::mask::{Masks, NameMask};
use tempfile::TempDir;

use super::{Captures, Frozen, Holder, Live};

/// A workspace, and a store beside it.
pub(super) struct Lab {
    dir: TempDir,
    pub(super) live: Live,
    pub(super) captures: Captures,
    next_holder: u64,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::showing(live_here())
    }

    /// One whose ignored folders are shown in this way.
    pub(super) fn showing(live: Live) -> Self {
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

    pub(super) fn holder(&mut self) -> Holder {
        self.next_holder += 1;
        SandboxId::from_bits(self.next_holder).into()
    }

    pub(super) fn freeze(&mut self) -> (Holder, Frozen) {
        let holder = self.holder();
        (holder, self.captures.freeze(&self.work(), holder, &[], &|_| ()).unwrap())
    }

    /// As after a crash of the daemon: what would have been saved at its end is not, and nobody is adopted.
    pub(super) fn restart(&mut self) {
        let store = self.outside("store");
        let saved: Vec<_> = std::fs::read_dir(&store)
            .unwrap()
            .flat_map(|capture| std::fs::read_dir(capture.unwrap().path()).unwrap())
            .map(|file| file.unwrap().path())
            .filter(|file| file.is_file())
            .map(|file| (std::fs::read(&file).unwrap(), file))
            .collect();
        let nothing = open(&self.outside("nothing"), self.live);
        drop(std::mem::replace(&mut self.captures, nothing));
        saved.into_iter().for_each(|(text, file)| std::fs::write(file, text).unwrap());
        self.captures = open(&store, self.live);
    }

    pub(super) fn git(&self, arguments: &[&str]) {
        git(&self.work(), arguments);
    }
}

/// What this user can mount.
pub(super) fn live_here() -> Live {
    if rustix::process::geteuid().is_root() { Live::Redirect } else { Live::Stubs }
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
