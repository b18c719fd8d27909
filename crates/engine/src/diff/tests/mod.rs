//! Real overlays, as whoever runs the tests can mount them: as root with redirects, as an ordinary user without.

mod cases;
mod digest;
mod marks;
mod pair;
mod random;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use model::diff::{Change, ChangeKind, Detail, Diff};
use model::net::Wiring;
use tempfile::TempDir;

use super::{Ask, Comparison, compare};
use crate::capture::FROZEN_ROOT;
use crate::capture::layer::Flavour;
use crate::launcher::Rights;
use crate::layers::squash::{Which, merge};
use crate::view::{DiskKind, Lower, Meta, Part, Plan, Root};

/// A frozen workspace with one layer, and an upper over it.
pub(crate) struct Bed {
    dir: TempDir,
}

impl Bed {
    /// Files end in text; a path that ends in `/` is a folder.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let bed = Self { dir: tempfile::tempdir().unwrap() };
        for folder in ["upper/0", "work", "mount"] {
            std::fs::create_dir_all(bed.dir.path().join(folder)).unwrap();
        }
        std::fs::create_dir_all(bed.lower()).unwrap();
        for (path, text) in files {
            let path = bed.lower().join(path);
            let folder = if text.is_empty() { path.as_path() } else { path.parent().unwrap() };
            std::fs::create_dir_all(folder).unwrap();
            if !text.is_empty() {
                std::fs::write(&path, text).unwrap();
            }
        }
        bed
    }

    pub(crate) fn lower(&self) -> PathBuf {
        self.dir.path().join("lower").join(FROZEN_ROOT)
    }

    /// Where the sandbox's changes to its workspace are.
    pub(super) fn upper(&self) -> PathBuf {
        self.dir.path().join("upper/0").join(FROZEN_ROOT)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Seals what was done so far; what is done from now on goes on top of it.
    pub(super) fn seal(&self) {
        let sealed = self.path(&format!("layers/{}", self.layers().len()));
        std::fs::create_dir_all(sealed.parent().unwrap()).unwrap();
        std::fs::rename(self.path("upper"), sealed).unwrap();
        std::fs::create_dir_all(self.path("upper/0")).unwrap();
    }

    /// Makes one of all layers that were sealed.
    pub(super) fn squash(&self) {
        let parts: Vec<PathBuf> = self.layers().iter().map(|layer| layer.join("0")).collect();
        let squashed = self.path("squashed");
        std::fs::create_dir(&squashed).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let flavour = if is_root { Flavour::Trusted } else { Flavour::User };
        merge(&parts, &squashed.join("0"), flavour, &Which::All).unwrap();
        std::fs::rename(self.path("layers"), self.path("old-layers")).unwrap();
        std::fs::create_dir(self.path("layers")).unwrap();
        std::fs::rename(squashed, self.path("layers/0")).unwrap();
    }

    /// Top first.
    pub(super) fn layers(&self) -> Vec<PathBuf> {
        let all = (0..).map(|number| self.path(&format!("layers/{number}"))).take_while(|path| path.is_dir());
        let mut all: Vec<PathBuf> = all.collect();
        all.reverse();
        all
    }

    /// Runs a shell script in the workspace, in a mount namespace of its own.
    #[track_caller]
    pub(crate) fn script(&self, script: &str) -> Output {
        let is_root = rustix::process::geteuid().is_root();
        let (options, flags) = if is_root { ("redirect_dir=on", "-m") } else { ("userxattr", "-Urm") };
        let dir = self.dir.path().display();
        let sealed: String = self.layers().iter().map(|layer| format!("{}/0:", layer.display())).collect();
        let mount = format!(
            "set -e; mount -t overlay zeno -o lowerdir={sealed}{dir}/lower,upperdir={dir}/upper/0,workdir={dir}/work,{options} \
             {dir}/mount; cd {dir}/mount/{FROZEN_ROOT}\n"
        );
        let output = Command::new("unshare").args([flags, "sh", "-c", &(mount + script)]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    pub(super) fn compare(&self) -> Comparison {
        self.compare_at(Path::new(WORKSPACE))
    }

    /// Compares as if the workspace were this folder.
    pub(crate) fn compare_at(&self, workspace: &Path) -> Comparison {
        self.compare_from(&self.path("upper"), &self.layers(), workspace)
    }

    /// Only what was sealed.
    pub(super) fn compare_sealed(&self) -> Comparison {
        let layers = self.layers();
        self.compare_from(&layers[0], &layers[1..], Path::new(WORKSPACE))
    }

    fn compare_from(&self, upper: &Path, layers: &[PathBuf], workspace: &Path) -> Comparison {
        let plan = plan(&self.path("lower"), workspace);
        let ask = Ask {
            home: self.dir.path(),
            upper: Some(upper),
            layers,
            plan: &plan,
            workspace: Some(workspace),
            rights: Rights::of_this_process(),
            paths: &[],
        };
        compare(&ask).unwrap()
    }

    pub(super) fn diff(&self) -> Diff {
        self.compare().diff(Detail::Paths).unwrap()
    }

    pub(super) fn patch(&self) -> Vec<u8> {
        let mut patch = Vec::new();
        self.compare().patch(&mut patch).unwrap();
        patch
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // Overlay's own folder in `work` has no permissions: an ordinary user's temporary folder would stay for ever.
        if let Err(error) = crate::remove::tree(self.dir.path()) {
            println!("{} stays: {error}", self.dir.path().display());
        }
    }
}

/// One line for each change of the workspace.
pub(super) fn told(diff: &Diff) -> Vec<String> {
    assert_eq!((&diff.machine, &diff.unread), (&Vec::new(), &Vec::new()));
    diff.workspace.iter().map(line).collect()
}

fn line(change: &Change) -> String {
    let path = change.path.display();
    let mut line = match &change.kind {
        ChangeKind::Deleted => format!("D {path}"),
        ChangeKind::Added => format!("A {path}"),
        ChangeKind::Modified => format!("M {path}"),
        ChangeKind::TypeChanged => format!("T {path}"),
        ChangeKind::Renamed { from } => format!("R {} {path}", from.display()),
    };
    if let (Some(before), Some(after)) = (&change.before, &change.after) {
        if before.mode != after.mode && before.kind == after.kind {
            line += &format!(" {:o}-{:o}", before.mode, after.mode);
        }
        if change.contents && matches!(change.kind, ChangeKind::Modified | ChangeKind::Renamed { .. }) {
            line += " contents";
        }
    }
    for name in &change.xattrs {
        line += &format!(" {}", name.display());
    }
    line
}

fn plan(lower: &Path, workspace: &Path) -> Plan {
    let part = Part {
        name: "0".to_owned(),
        mountpoint: workspace.to_owned(),
        lowers: vec![Lower::Store("lower".into())],
        data: None,
        inner: Some(FROZEN_ROOT.to_owned()),
        top: Meta::of(&std::fs::metadata(lower).unwrap()),
        optional: false,
    };
    plan_of(part)
}

/// A plan with nothing but this part.
pub(crate) fn plan_of(part: Part) -> Plan {
    Plan {
        hostname: "bed".to_owned(),
        root: Root::FirstPart,
        parts: vec![part],
        net: Wiring::None,
        nested: false,
        pids: 1,
        disk: None,
        disk_kind: DiskKind::Memory,
    }
}

const WORKSPACE: &str = "/no/such/workspace";
