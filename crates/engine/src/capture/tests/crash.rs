//! Killed at any moment, the next freeze is right, byte for byte.

use std::io::Read;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rustix::process::{Pid, Signal, WaitOptions};

use super::edits::Edit;
use super::tree::{assert_current, assert_same, merged};
use super::{Frozen, Holder, Lab, SandboxId, open};

#[test]
fn killed_sixty_times_it_is_right_sixty_times() {
    let mut lab = Lab::new();
    for number in 0..300 {
        lab.write(
            format!("{}/{}/{number}", ["a", "b", "c"][number % 3], number % 10),
            "x".repeat(number * 20),
        );
    }
    let mut runner = TestRunner::deterministic();
    let (holder, pinned) = lab.freeze();
    let before = merged(&pinned);
    // At first something is held, so that changes pile up; then nothing is, so that they are worked in.
    let mut alive = vec![holder];
    for turn in 0..60 {
        if turn == 30 {
            lab.captures.release(holder);
            alive.clear();
        }
        // Its threads and watches must not be there when the process is forked.
        lab.restart();
        let (mut progress, child) = start_freezing(&lab, &alive, &pinned);
        // From right at the start to after some freezes, and then anywhere within one.
        let mut byte = [0];
        for _ in 0..turn % 6 {
            edit(&lab, &mut runner);
            progress.read_exact(&mut byte).unwrap();
        }
        (0..turn * 7 % 40).for_each(|_| edit(&lab, &mut runner));
        rustix::process::kill_process(child, Signal::KILL).unwrap();
        rustix::process::waitpid(Some(child), WaitOptions::empty()).unwrap();

        alive.iter().for_each(|holder| lab.captures.adopt(*holder, &pinned).unwrap());
        let (_, frozen) = lab.freeze();
        assert_current(&frozen, &lab.work());
        lab.captures.sweep(&alive).unwrap();
        let (last, frozen) = lab.freeze();
        assert_current(&frozen, &lab.work());
        lab.captures.release(last);
        if !alive.is_empty() {
            assert_same(&before, &merged(&pinned));
        }
    }
}

fn edit(lab: &Lab, runner: &mut TestRunner) {
    let edit = Edit::any().new_tree(runner).unwrap().current();
    // An edit that the tree does not allow is no edit.
    drop(edit.try_in(&lab.work()));
}

/// Another process that freezes, releases and sweeps until it is killed, and writes a byte after each freeze.
fn start_freezing(lab: &Lab, alive: &[Holder], pinned: &Frozen) -> (std::fs::File, Pid) {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    // SAFETY: glibc leaves its allocator usable in the child of a threaded process, the child touches no other lock
    // that a thread of this process may hold, and it leaves only by `_exit` or by being killed.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let keep_freezing = || {
            let captures = open(&lab.outside("store"), lab.live);
            alive.iter().for_each(|holder| captures.adopt(*holder, pinned).unwrap());
            captures.sweep(alive).unwrap();
            for turn in 0_u64.. {
                let holder = SandboxId::from_bits(1000 + turn);
                if captures.freeze(&lab.work(), holder, &[], &|_| ()).is_ok() {
                    rustix::io::write(&writer, b"x").unwrap();
                }
                // Three states are held at a time, and now and then none.
                let released = if turn % 7 == 0 {
                    turn.saturating_sub(3)..=turn
                } else {
                    turn.saturating_sub(3)..=turn.saturating_sub(3)
                };
                released.for_each(|turn| captures.release(SandboxId::from_bits(1000 + turn)));
            }
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(keep_freezing));
        // SAFETY: `_exit` has no conditions.
        unsafe { libc::_exit(i32::from(outcome.is_err())) };
    }
    (reader.into(), Pid::from_raw(child).unwrap())
}
