//! What a sandbox reads live: the rest of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use model::exec::Text;
use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

use super::super::{apply, undo};
use super::{Wish, actions, assert_same, assessed, conflicts, reality};
use crate::diff::tests::plan_of;
use crate::diff::{self, Comparison};
use crate::launcher::Rights;
use crate::view::{Lower, Meta, Part};

/// A folder of the machine, and a sandbox that edited `a`, deleted `b` and the folder `d`, and created `new`.
struct Machine {
    dir: TempDir,
    since: Timestamp,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["machine/d", "upper/0"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in ["a", "b", "d/one", "d/two"] {
            fs::write(dir.path().join("machine").join(file), "old\n").unwrap();
        }
        for file in ["a", "new"] {
            fs::write(dir.path().join("upper/0").join(file), "sandbox\n").unwrap();
        }
        for gone in ["b", "d"] {
            let path = dir.path().join("upper/0").join(gone);
            rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        }
        // File times move in ticks: what was just made must be older than the sandbox.
        let made = Timestamp::now();
        let since = loop {
            fs::write(dir.path().join("tick"), "").unwrap();
            let tick = fs::metadata(dir.path().join("tick")).unwrap().modified().unwrap();
            let tick = Timestamp::try_from(tick).unwrap();
            if tick > made {
                break tick;
            }
        };
        Self { dir, since }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.dir.path().join("machine").join(path)
    }

    fn wish(&self) -> Wish {
        Wish { paths: vec![self.file("")], since: self.since, ..Wish::default() }
    }

    fn comparison(&self) -> Comparison {
        comparison_in(self.dir.path())
    }
}

/// What an upper folder beside a folder `machine` changed of it.
pub(super) fn comparison_in(dir: &Path) -> Comparison {
    let machine = dir.join("machine");
    let part = Part {
        name: "0".to_owned(),
        mountpoint: machine.clone(),
        lowers: vec![Lower::Machine { mount: machine.clone(), inside: PathBuf::new() }],
        data: None,
        inner: None,
        top: Meta::of(&fs::metadata(&machine).unwrap()),
        optional: false,
    };
    let plan = plan_of(part);
    diff::compare(&diff::Ask {
        home: dir,
        upper: Some(&dir.join("upper")),
        layers: &[],
        plan: &plan,
        workspace: None,
        rights: Rights::of_this_process(),
        paths: &[],
    })
    .unwrap()
}

#[test]
fn it_must_be_named() {
    let machine = Machine::new();
    let comparison = machine.comparison();
    let wish = Wish { since: machine.since, ..Wish::default() };
    let report = assessed(&comparison, &wish).unwrap().report;
    assert_eq!((actions(&report).len(), report.left_out.machine), (0, 6));
}

#[test]
fn named_it_is_promoted_and_undone() {
    let machine = Machine::new();
    let before = reality(&machine.file(""));
    let (comparison, wish) = (machine.comparison(), machine.wish());
    let assessed = assessed(&comparison, &wish).unwrap();
    let folder = machine.dir.path().join("promotions/prtest");
    apply(&assessed, &folder, &mut |_| {}).unwrap();
    assert_eq!(fs::read_to_string(machine.file("a")).unwrap(), "sandbox\n");
    assert_eq!(["b", "d", "new"].map(|path| machine.file(path).exists()), [false, false, true]);
    undo(&folder, &[], &mut |_| {}).unwrap();
    assert_same(&reality(&machine.file("")), &before);
}

#[track_caller]
fn check(outside: impl FnOnce(&Machine), expected: &[&str]) {
    let machine = Machine::new();
    outside(&machine);
    let (comparison, wish) = (machine.comparison(), machine.wish());
    let report = assessed(&comparison, &wish).unwrap().report;
    let start = format!("{}/", machine.dir.path().join("machine").display());
    let found: Vec<_> = conflicts(&report).iter().map(|line| line.replace(&start, "")).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_changed_since_the_sandbox_was_made_is_a_conflict() {
    check(|_| {}, &[]);
    check(|machine| fs::write(machine.file("a"), "reality\n").unwrap(), &["a: MovedOn, Edit and Something"]);
    check(|machine| fs::write(machine.file("b"), "old\n").unwrap(), &["b: MovedOn, Delete and Something"]);
    check(
        |machine| fs::write(machine.file("new"), "reality\n").unwrap(),
        &["new: MovedOn, Edit and Something"],
    );
    check(
        |machine| fs::write(machine.file("d/more"), "reality\n").unwrap(),
        &["d/more: MovedOn, Delete and Something"],
    );
    // Both made the same of it.
    check(|machine| fs::write(machine.file("a"), "sandbox\n").unwrap(), &[]);
    check(|machine| fs::remove_file(machine.file("d/one")).unwrap(), &[]);
}

#[test]
fn another_repository_s_own_files_are_never_promoted() {
    let machine = Machine::new();
    let upper = machine.dir.path().join("upper/0");
    for file in ["repo/.git/hooks/pre-commit", "repo/.git/config", "repo/file", ".Git/config"] {
        fs::create_dir_all(upper.join(file).parent().unwrap()).unwrap();
        fs::write(upper.join(file), "sandbox\n").unwrap();
    }
    let comparison = machine.comparison();
    let told = |paths: Vec<PathBuf>| {
        let wish = Wish { paths, since: machine.since, ..Wish::default() };
        let report = assessed(&comparison, &wish).unwrap().report;
        let actions: Vec<_> = actions(&report).into_iter().filter(|line| line.contains("repo")).collect();
        assert_eq!(report.caveats.len(), report.left_out.git.len(), "each is told why");
        (actions.len(), report.left_out.git, report.left_out.machine)
    };
    let git = |path: &str| Text::from(machine.file(path));
    assert_eq!(told(vec![]), (0, vec![], 6 + 8));
    assert_eq!(told(vec![machine.file("")]), (2, vec![git(".Git"), git("repo/.git")], 0));
    assert_eq!(told(vec![machine.file("repo/.git/config")]), (0, vec![git("repo/.git")], 6 + 7));

    let wish = machine.wish();
    let assessed = assessed(&comparison, &wish).unwrap();
    apply(&assessed, &machine.dir.path().join("promotions/prtest"), &mut |_| {}).unwrap();
    assert_eq!(
        ["repo/file", "repo/.git", ".Git"].map(|path| machine.file(path).exists()),
        [true, false, false]
    );
}
