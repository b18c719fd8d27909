//! Every pair of the matrix on what a sandbox reads live, done on real files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jiff::Timestamp;
use model::promotion::{Action, Assessment, Deed, Ground, OnConflict, Outcome, live_outcome};
use tempfile::TempDir;

use super::super::{apply, undo};
use super::live::comparison_in;
use super::matrix::{TEXT, Who, assert_done, script};
use super::{Wish, assert_same, assessed, conflicts, reality};
use crate::capture::tests::tree::Tree;
use crate::diff::Comparison;

/// A folder of the machine with a sandbox over it.
struct Machine {
    dir: TempDir,
    since: Timestamp,
}

impl Machine {
    /// The sandbox does its deed, and then reality.
    fn new(ground: Ground, sandbox: Deed, reality: Deed) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["machine", "upper/0", "work", "mount"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let it = dir.path().join("machine/it");
        match ground {
            Ground::Nothing => {}
            Ground::File => fs::write(it, TEXT).unwrap(),
            Ground::Folder => {
                fs::create_dir(&it).unwrap();
                fs::write(it.join("file"), TEXT).unwrap();
            }
        }
        let mut machine = Self { dir, since: Timestamp::UNIX_EPOCH };
        machine.since = machine.tick();
        machine.inside(&script(ground, sandbox, Who::Sandbox));
        machine.tick();
        let script = script(ground, reality, Who::Reality);
        let done = Command::new("sh").args(["-ec", &script]).current_dir(machine.root()).status().unwrap();
        assert!(done.success(), "{script}");
        machine
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("machine")
    }

    fn tree(&self) -> Tree {
        reality(&self.root())
    }

    /// File times move in ticks: what was just made is older than the time that is returned.
    fn tick(&self) -> Timestamp {
        let (file, now) = (self.dir.path().join("tick"), Timestamp::now());
        loop {
            fs::write(&file, "").unwrap();
            let tick = Timestamp::try_from(fs::metadata(&file).unwrap().modified().unwrap()).unwrap();
            if tick > now {
                return tick;
            }
        }
    }

    fn inside(&self, script: &str) {
        let is_root = rustix::process::geteuid().is_root();
        let (options, flags) = if is_root { ("redirect_dir=on", "-m") } else { ("userxattr", "-Urm") };
        let dir = self.dir.path().display();
        let mount = format!(
            "set -e; mount -t overlay zeno -o lowerdir={dir}/machine,upperdir={dir}/upper/0,workdir={dir}/work,{options} \
             {dir}/mount; cd {dir}/mount\n"
        );
        let output = Command::new("unshare").args([flags, "sh", "-c", &(mount + script)]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn wish(&self, otherwise: OnConflict) -> Wish {
        Wish { paths: vec![self.root()], since: self.since, ..super::deciding(otherwise) }
    }

    fn comparison(&self) -> Comparison {
        comparison_in(self.dir.path())
    }

    fn assess(&self, otherwise: OnConflict) -> Assessment {
        assessed(&self.comparison(), &self.wish(otherwise)).unwrap().report
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("promotions/prtest")
    }

    fn promote(&self, otherwise: OnConflict) {
        let (comparison, wish) = (self.comparison(), self.wish(otherwise));
        apply(&assessed(&comparison, &wish).unwrap(), &self.folder(), &mut |_| {}).unwrap();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // Overlay's own folder in `work` has no permissions.
        if let Err(error) = crate::remove::tree(self.dir.path()) {
            println!("{} stays: {error}", self.dir.path().display());
        }
    }
}

fn really(report: &Assessment, sandbox: Deed, reality: Deed) -> Outcome {
    let has = |action| report.actions.iter().any(|planned| planned.action == action);
    assert!(!has(Action::Merge), "there is nothing to merge with");
    if !report.conflicts.is_empty() {
        Outcome::Conflict
    } else if [Action::Create, Action::Modify, Action::Delete].into_iter().any(has) {
        Outcome::Taken
    } else if sandbox == Deed::None && reality == Deed::None {
        Outcome::Nothing
    } else if sandbox == Deed::None {
        Outcome::Kept
    } else {
        Outcome::Same
    }
}

#[test]
fn every_pair_on_what_is_read_live_ends_as_stated() {
    let mut wrong = Vec::new();
    for ground in Ground::ALL {
        for (sandbox, reality) in Deed::ALL.into_iter().flat_map(|one| Deed::ALL.map(|other| (one, other))) {
            let Some(stated) = live_outcome(ground, sandbox, reality) else { continue };
            let machine = Machine::new(ground, sandbox, reality);
            let (before, report) = (machine.tree(), machine.assess(OnConflict::Abort));
            let really = really(&report, sandbox, reality);
            if really != stated {
                let conflicts = conflicts(&report);
                wrong.push(format!(
                    "{ground:?}: {sandbox:?} x {reality:?}: {really:?}, not {stated:?} {conflicts:?}"
                ));
                continue;
            }
            match stated {
                Outcome::Nothing | Outcome::Kept | Outcome::Same => {
                    machine.promote(OnConflict::Abort);
                    assert_same(&machine.tree(), &before);
                }
                Outcome::Merged => panic!("there is nothing to merge with"),
                Outcome::Taken => {
                    machine.promote(OnConflict::Abort);
                    assert_done(&machine.root(), ground, sandbox, Who::Sandbox);
                    undo(&machine.folder(), &[], &mut |_| {}).unwrap();
                    assert_same(&machine.tree(), &before);
                }
                Outcome::Conflict => decided(&machine, ground, sandbox, reality),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Either side can be chosen, and chosen it can be undone.
fn decided(machine: &Machine, ground: Ground, sandbox: Deed, reality: Deed) {
    let before = machine.tree();
    let is_open = machine.assess(OnConflict::Abort).conflicts.iter().all(|conflict| conflict.ours_possible);
    if is_open {
        machine.promote(OnConflict::Ours);
        assert_done(&machine.root(), ground, sandbox, Who::Sandbox);
        undo(&machine.folder(), &[], &mut |_| {}).unwrap();
        assert_same(&machine.tree(), &before);
        super::super::forget(&machine.folder()).unwrap();
    }
    machine.promote(OnConflict::Theirs);
    assert_done(&machine.root(), ground, reality, Who::Reality);
}

/// The time tells that reality changed something, whatever it did: not even the same bytes again pass for nothing.
#[test]
fn what_is_saved_again_without_a_change_is_a_conflict_unless_it_is_the_same() {
    let machine = Machine::new(Ground::File, Deed::Edit, Deed::None);
    let file = machine.root().join("it");
    fs::write(&file, TEXT).unwrap();
    assert_eq!(machine.assess(OnConflict::Abort).conflicts.len(), 1);
    fs::copy(machine.dir.path().join("upper/0/it"), &file).unwrap();
    assert_eq!(machine.assess(OnConflict::Abort).conflicts.len(), 0);
    assert!(Path::new(&file).exists());
}
