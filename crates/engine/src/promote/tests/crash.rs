//! Killed at any moment, it is the old state or the new one, never anything between.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rustix::process::{Pid, Signal, WaitOptions};

use super::super::{AskCommits, Observe, PromoteError, Recovered, apply, find_commits, recover, undo};
use super::{COMMIT, Lab, Tree, Wish, assert_same, assessed, reality};

const FILES: [(&str, &str); 9] = [
    ("a", "alpha\n"),
    ("b", "beta\n"),
    ("c", "gamma\n"),
    ("d/one", "one\n"),
    ("d/two", "two\n"),
    ("d/sub/deep", "deep\n"),
    ("e/three", "three\n"),
    ("f/four", "four\n"),
    ("g/five", "five\n"),
];

/// Something of everything: files and folders that come, change, go and turn into each other.
const DEEDS: &str = "echo x > new; echo x > a; rm b; chmod 600 c; rm -r d; mkdir d; echo 1 > d/one; mkdir -p n/m; \
    echo x > n/m/x; rm -r e; echo e > e; rm -r f; chmod 700 g; ln -s a link; ln c further";
/// Two branches, and a tag.
const BRANCHES: &str = "git branch side; git tag mark HEAD";

/// What is being killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Promoting,
    Undoing,
}

/// What is promoted. Commits take several calls of git, so that two hundred times of them would take minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Files,
    Commits,
}

#[test]
fn killed_before_each_step_of_a_promotion() {
    killed_before_each_step(Doing::Promoting);
}

#[test]
fn killed_before_each_step_of_undoing() {
    killed_before_each_step(Doing::Undoing);
}

/// Kills before the first step, then before the second, and so on until there is none; each time the recovery is killed
/// as well, at another of its steps.
fn killed_before_each_step(doing: Doing) {
    let mut ends = Vec::new();
    let scene = Scene::new(doing, With::Commits);
    for step in 0.. {
        scene.rewind();
        let is_killed = scene.run(&Kill::Before(step));
        let mut recoveries = 0;
        while fork(|| recover_killed(&scene.lab.folder(), step % 7 + recoveries)) {
            recoveries += 1;
        }
        ends.push(scene.assert_whole());
        if !is_killed {
            break;
        }
    }
    // Both were seen, and after the first that went through there was no going back.
    assert!(ends.len() > 15, "{}", ends.len());
    assert!(ends.is_sorted() && ends[0] != ends[ends.len() - 1], "{ends:?}");
}

#[test]
fn promoting_killed_two_hundred_times_at_any_moment() {
    killed_at_any_moment(Doing::Promoting, With::Files, 160);
    killed_at_any_moment(Doing::Promoting, With::Commits, 40);
}

#[test]
fn undoing_killed_a_hundred_times_at_any_moment() {
    killed_at_any_moment(Doing::Undoing, With::Files, 80);
    killed_at_any_moment(Doing::Undoing, With::Commits, 20);
}

/// Only what was really killed under way counts.
fn killed_at_any_moment(doing: Doing, with: With, kills: u32) {
    let mut runner = TestRunner::deterministic();
    let scene = Scene::new(doing, with);
    scene.rewind();
    let started = Instant::now();
    scene.run(&Kill::Never);
    let mut whole = started.elapsed();
    let (mut killed, mut seen) = (0, [0; 2]);
    for _ in 0..kills * 5 {
        // The last one comes through: on a machine that got busy since, none of the others may.
        let kill = if killed < kills {
            let after = (0..whole.as_micros() as u64).new_tree(&mut runner).unwrap().current();
            Kill::After(Duration::from_micros(after))
        } else {
            Kill::Never
        };
        scene.rewind();
        let started = Instant::now();
        if scene.run(&kill) {
            killed += 1;
        } else {
            whole = whole.min(started.elapsed());
        }
        recover(&scene.lab.folder(), &mut |_| {}).unwrap();
        seen[usize::from(scene.assert_whole())] += 1;
        if matches!(kill, Kill::Never) {
            break;
        }
    }
    assert_eq!(killed, kills, "{doing:?} with {with:?} was not killed as often: {whole:?}");
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

enum Kill {
    Never,
    Before(usize),
    After(Duration),
}

/// A workspace, what it is before, and what it is to become.
struct Scene {
    lab: Lab,
    doing: Doing,
    with: With,
    old: State,
    new: State,
}

/// The files, and where the refs of the repository stand. Objects that nothing refers to do not count.
struct State {
    files: Tree,
    refs: String,
}

impl State {
    fn of(root: &Path) -> Self {
        let mut files = reality(root);
        if !files.contains_key(b".git".as_slice()) {
            return Self { files, refs: String::new() };
        }
        files.retain(|path, _| !path.starts_with(b".git"));
        let refs = Command::new("git").arg("for-each-ref").current_dir(root).output().unwrap();
        assert!(refs.status.success(), "{refs:?}");
        Self { files, refs: String::from_utf8(refs.stdout).unwrap() }
    }
}

impl Scene {
    fn new(doing: Doing, with: With) -> Self {
        let (lab, script) = match with {
            With::Files => (Lab::new(&FILES), DEEDS.to_owned()),
            With::Commits => {
                let script = format!("{DEEDS}; git add -A; {COMMIT} -m inside; {BRANCHES}");
                (Lab::repository(&FILES), script)
            }
        };
        let old = State::of(&lab.real());
        lab.inside(&script);
        copy(&lab.real(), &lab.bed.path("copy"));
        promote(&lab, with, &mut |_| {}).unwrap();
        let new = State::of(&lab.real());
        let commits = if with == With::Commits { 3 } else { 0 };
        assert_eq!(new.refs.matches("refs/zeno/").count(), commits, "{}", new.refs);
        match doing {
            Doing::Promoting => Self { lab, doing, with, old, new },
            Doing::Undoing => Self { lab, doing, with, old: new, new: old },
        }
    }

    /// Once more from the beginning, in the same place.
    fn rewind(&self) {
        super::super::forget(&self.lab.folder()).unwrap();
        crate::remove::tree(&self.lab.real()).unwrap();
        copy(&self.lab.bed.path("copy"), &self.lab.real());
        crate::remove::tree(&scratch(&self.lab)).unwrap();
        if self.doing == Doing::Undoing {
            promote(&self.lab, self.with, &mut |_| {}).unwrap();
        }
    }

    /// Does it in another process, and says whether that was killed.
    fn run(&self, kill: &Kill) -> bool {
        let folder = self.lab.folder();
        let work = || {
            let mut step = 0;
            let mut observe = |_: super::super::Step<'_>| {
                if matches!(kill, Kill::Before(at) if *at == step) {
                    rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
                }
                step += 1;
            };
            self.do_it(&folder, &mut observe)
        };
        match kill {
            Kill::Never | Kill::Before(_) => fork(|| work().unwrap()),
            Kill::After(delay) => {
                let child = start(|| work().unwrap());
                let started = Instant::now();
                while started.elapsed() < *delay {
                    std::hint::spin_loop();
                }
                // It may have ended by itself; it is not reaped yet, so the number is still its own.
                rustix::process::kill_process(child, Signal::KILL).unwrap();
                wait(child)
            }
        }
    }

    fn do_it(&self, folder: &Path, observe: &mut Observe<'_>) -> Result<(), PromoteError> {
        match self.doing {
            Doing::Promoting => promote(&self.lab, self.with, observe),
            Doing::Undoing => undo(folder, &[], observe),
        }
    }

    /// It is one or the other, whole, and nothing lies about. Says whether it is the new one.
    #[track_caller]
    fn assert_whole(&self) -> bool {
        let recovered =
            recover(&self.lab.folder(), &mut |_| panic!("recovering twice does nothing more")).unwrap();
        let is_new = match (&recovered, self.doing) {
            (Recovered::New, Doing::Promoting) | (Recovered::Undone, Doing::Undoing) => true,
            (Recovered::Old { left }, Doing::Promoting) => {
                assert_eq!(left, &[]);
                false
            }
            (Recovered::New, Doing::Undoing) => false,
            other => panic!("{other:?}"),
        };
        let (state, expected) = (State::of(&self.lab.real()), if is_new { &self.new } else { &self.old });
        assert_same(&state.files, &expected.files);
        assert_eq!(state.refs, expected.refs);
        self.lab.assert_tidy();
        is_new
    }
}

fn promote(lab: &Lab, with: With, observe: &mut Observe<'_>) -> Result<(), PromoteError> {
    let (comparison, wish, scratch) = (lab.comparison(), Wish::default(), scratch(lab));
    let mut assessed = assessed(&comparison, &wish)?;
    if with == With::Commits {
        let sandbox = model::SandboxId::from_bits(1);
        let ask = AskCommits { comparison: &comparison, sandbox, frozen: None, scratch: &scratch };
        assessed = assessed.with_commits(find_commits(&ask).unwrap());
    }
    apply(&assessed, &lab.folder(), observe).map(drop)
}

fn scratch(lab: &Lab) -> PathBuf {
    lab.bed.path("scratch")
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

fn recover_killed(folder: &Path, at: usize) {
    let mut step = 0;
    recover(folder, &mut |_| {
        if step == at {
            rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).unwrap();
        }
        step += 1;
    })
    .unwrap();
}

/// Does something in another process. Says whether it was killed; whatever else ends it early is a failure.
#[track_caller]
fn fork(work: impl FnOnce()) -> bool {
    wait(start(work))
}

fn start(work: impl FnOnce()) -> Pid {
    // SAFETY: glibc leaves its allocator usable in the child of a threaded process, the child touches no other lock
    // that a thread of this process may hold, and it leaves only by `_exit` or by being killed.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: `_exit` has no conditions.
        unsafe { libc::_exit(i32::from(outcome.is_err())) };
    }
    Pid::from_raw(child).unwrap()
}

#[track_caller]
fn wait(child: Pid) -> bool {
    let (_, status) = rustix::process::waitpid(Some(child), WaitOptions::empty()).unwrap().unwrap();
    let is_killed = status.terminating_signal() == Some(Signal::KILL.as_raw());
    assert!(is_killed || status.exit_status() == Some(0), "{status:?}");
    is_killed
}
