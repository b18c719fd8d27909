//! The real thing: real overlays, real files, real crashes.

mod captured;
mod cases;
mod conflicts;
mod crash;
mod families;
mod live;
mod live_matrix;
mod matrix;
mod merges;
mod mounts;
mod random;
mod refusals;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use jiff::Timestamp;
use model::promotion::{Action, Assessment, OnConflict, Resolutions};

use super::{Ask, Assessed, PromoteError, Purpose, apply, assess, undo};
use crate::capture::files::split;
use crate::capture::tests::tree::{Tree, assert_same, reality};
use crate::diff::Comparison;
use crate::diff::tests::Bed;

/// A frozen workspace with a sandbox over it, and the real workspace, which is the same at first.
struct Lab {
    bed: Bed,
}

/// How a promotion is asked for, where it differs from the default.
#[derive(Clone, Debug, Default)]
struct Wish {
    paths: Vec<PathBuf>,
    masked: Vec<PathBuf>,
    resolutions: Resolutions,
    allow_executes: bool,
    home: Option<PathBuf>,
    homes: BTreeSet<PathBuf>,
    since: Timestamp,
}

impl Lab {
    fn new(files: &[(&str, &str)]) -> Self {
        Self::linked(files, &[])
    }

    /// Further names, each for one of the files.
    fn linked(files: &[(&str, &str)], names: &[(&str, &str)]) -> Self {
        let lab = Self { bed: Bed::new(files) };
        for (file, name) in names {
            std::fs::hard_link(lab.bed.lower().join(file), lab.bed.lower().join(name)).unwrap();
        }
        lab.copied()
    }

    /// A repository, in which all of it is committed.
    fn repository(files: &[(&str, &str)]) -> Self {
        let lab = Self { bed: Bed::new(files) };
        let script = format!("git init -q -b main; git add -A; {COMMIT} -m first");
        let done = Command::new("sh").args(["-ec", &script]).current_dir(lab.bed.lower()).status().unwrap();
        assert!(done.success());
        lab.copied()
    }

    /// With the real workspace as a copy of the frozen one.
    fn copied(self) -> Self {
        let lab = self;
        let copied = Command::new("cp").arg("-a").arg(lab.bed.lower()).arg(lab.real()).status().unwrap();
        assert!(copied.success());
        lab
    }

    /// The real workspace.
    fn real(&self) -> PathBuf {
        self.bed.path("real")
    }

    fn file(&self, path: &str) -> PathBuf {
        self.real().join(path)
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.file(path)).unwrap()
    }

    /// Something happens in the sandbox. What it shows afterwards is returned.
    #[track_caller]
    fn inside(&self, script: &str) -> Tree {
        let seen = self.seen();
        crate::remove::tree(&seen).unwrap();
        self.bed.script(script);
        // In a mount of its own: where an ordinary user mounts, a file that was looked at before it was copied up keeps the
        // number it had then for as long as the mount lives, and its further names get another.
        self.bed.script(&format!("cp -a . {}", seen.display()));
        reality(&seen)
    }

    /// Something happens in reality.
    #[track_caller]
    fn outside(&self, script: &str) {
        let done = Command::new("sh").args(["-ec", script]).current_dir(self.real()).status().unwrap();
        assert!(done.success(), "{script}");
    }

    fn tree(&self) -> Tree {
        reality(&self.real())
    }

    /// What the sandbox showed last.
    fn seen(&self) -> PathBuf {
        self.bed.path("seen")
    }

    fn comparison(&self) -> Comparison {
        self.bed.compare_at(&self.real())
    }

    /// The folder of the promotion that this lab makes.
    fn folder(&self) -> PathBuf {
        self.bed.path("promotions/prtest")
    }

    #[track_caller]
    fn assess(&self, wish: &Wish) -> Assessment {
        assessed(&self.comparison(), wish).unwrap().report
    }

    fn promote(&self, wish: &Wish) -> Result<Assessment, PromoteError> {
        let comparison = self.comparison();
        let assessed = assessed(&comparison, wish)?;
        apply(&assessed, &self.folder(), &mut |_| {})?;
        Ok(assessed.report)
    }

    fn undo(&self) -> Result<(), PromoteError> {
        undo(&self.folder(), &[], &mut |_| {})
    }

    /// Nothing of ours lies about beside the workspace.
    #[track_caller]
    fn assert_tidy(&self) {
        let names = std::fs::read_dir(self.bed.path("")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.starts_with(".zeno")).collect::<Vec<_>>(), [""; 0]);
    }
}

fn assessed<'a>(comparison: &'a Comparison, wish: &'a Wish) -> Result<Assessed<'a>, PromoteError> {
    assessed_for(comparison, wish, Purpose::Apply)
}

fn assessed_for<'a>(
    comparison: &'a Comparison,
    wish: &'a Wish,
    purpose: Purpose,
) -> Result<Assessed<'a>, PromoteError> {
    assess(&Ask {
        comparison,
        paths: &wish.paths,
        masked: &wish.masked,
        since: wish.since,
        disputed: &[],
        resolutions: &wish.resolutions,
        allow_executes: wish.allow_executes,
        home: wish.home.as_deref(),
        homes: &wish.homes,
        purpose,
    })
}

/// All conflicts are decided like this.
fn deciding(otherwise: OnConflict) -> Wish {
    Wish { resolutions: Resolutions { otherwise, ..Resolutions::default() }, ..Wish::default() }
}

/// One line for each action.
fn actions(report: &Assessment) -> Vec<String> {
    let lines = report.actions.iter().map(|planned| {
        let sign = match planned.action {
            Action::Delete => '-',
            Action::Create => '+',
            Action::Modify => '~',
            Action::Merge => '%',
            Action::Keep => '!',
            Action::Same => '=',
        };
        format!("{sign} {}", planned.path.display())
    });
    lines.collect()
}

/// One line for each conflict.
fn conflicts(report: &Assessment) -> Vec<String> {
    let lines = report.conflicts.iter().map(|conflict| {
        let (ours, theirs) = (conflict.ours.did, conflict.theirs.did);
        format!("{}: {:?}, {ours:?} and {theirs:?}", conflict.path.display(), conflict.reason)
    });
    lines.collect()
}

/// What the sandbox shows, but with the times from before where nothing was promoted: times alone are no change.
fn expected(before: &Tree, seen: &Tree, report: &Assessment) -> Tree {
    let mut touched: BTreeSet<&[u8]> = BTreeSet::new();
    for planned in &report.actions {
        let path: &[u8] = if planned.path.0 == b"." { b"" } else { &planned.path.0 };
        touched.insert(path);
        // A folder that stays moves nothing in the one above.
        let is_folder = |tree: &Tree| tree.get(path).is_some_and(|node| node.mode & 0o170_000 == 0o040_000);
        if !is_folder(before) || !is_folder(seen) {
            touched.insert(split(path).0);
        }
    }
    let mut expected = seen.clone();
    for (path, node) in expected.iter_mut().filter(|(path, _)| !touched.contains(path.as_slice())) {
        node.mtime = before[path].mtime;
    }
    expected
}

/// Says who commits.
const COMMIT: &str = "git -c user.name=a -c user.email=a@b commit -q";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
