//! One command and its descriptors, from start to last output.

use std::os::fd::OwnedFd;

use model::ExecId;
use model::exec::{Exec, Outcome, Text};
use rustix::process::{Pid, Signal, WaitStatus};

use super::log::Stream;
use super::spawn::{self, Spawned};
use super::wire::Command;
use crate::tree;

/// Input waiting for a command that does not read it; beyond this its conversations are not read either.
const INPUT_FULL: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: u32,
    pid: Pid,
    argv: Vec<Text>,
    cwd: Text,
    terminal: bool,
    pub(super) phase: Phase,
    /// Says why the command could not start, or closes when it has.
    pub(super) failure: Option<OwnedFd>,
    pub(super) stdin: Option<OwnedFd>,
    input: Vec<u8>,
    input_ended: bool,
    /// Stay open after the command's end if something it started holds the other side.
    pub(super) outputs: Vec<Output>,
    /// On the boot clock.
    pub(super) deadline: Option<u64>,
    limit: Option<u64>,
    written: u64,
    /// Decided by us, before its processes are reaped.
    verdict: Option<Outcome>,
}

/// One stream of a command's output.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) pipe: OwnedFd,
    pub(super) stream: Stream,
    pub(super) closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    Running,
    Ended(Outcome),
}

impl Job {
    pub(super) fn new(id: u32, spawned: Spawned, command: Command, now: u64) -> Self {
        Self {
            id,
            pid: spawned.pid,
            terminal: spawned.terminal,
            phase: Phase::Starting,
            failure: Some(spawned.failure),
            stdin: spawned.stdin,
            input: Vec::new(),
            input_ended: false,
            outputs: spawned
                .outputs
                .into_iter()
                .map(|(pipe, stream)| Output { pipe, stream, closed: false })
                .collect(),
            deadline: command.timeout.map(|timeout| now.saturating_add(timeout)),
            limit: command.output_limit,
            written: 0,
            verdict: None,
            argv: command.argv,
            cwd: command.cwd,
        }
    }

    pub(super) fn exec(&self) -> Exec {
        let outcome = match &self.phase {
            Phase::Starting | Phase::Running => None,
            Phase::Ended(outcome) => Some(outcome.clone()),
        };
        Exec {
            id: ExecId(self.id),
            argv: self.argv.clone(),
            pid: self.pid.as_raw_nonzero().get(),
            tty: self.terminal,
            outcome,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        match self.phase {
            Phase::Starting | Phase::Running => true,
            Phase::Ended(_) => false,
        }
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.pid == pid && self.is_running()
    }

    /// The failure pipe speaks or closes: the command runs, or will never.
    pub(super) fn hear_start(&mut self) {
        let Some(failure) = self.failure.take() else { return };
        let mut bytes = [0; 8];
        let length = rustix::io::read(&failure, &mut bytes).unwrap_or_default();
        match spawn::failure(&bytes[..length], &self.argv, &self.cwd) {
            Some(outcome) => self.verdict = Some(outcome),
            None => self.phase = Phase::Running,
        }
    }

    /// Its process is reaped.
    pub(super) fn end(&mut self, status: WaitStatus) {
        self.hear_start();
        let natural = match (status.exit_status(), status.terminating_signal()) {
            (_, Some(signal)) => Outcome::Signaled { signal },
            (code, None) => Outcome::Exited { code: code.unwrap_or(0) },
        };
        self.phase = Phase::Ended(self.verdict.take().unwrap_or(natural));
        self.stdin = None;
        self.input = Vec::new();
    }

    /// Takes bytes for standard input; none means the end of it.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            self.input_ended = true;
        } else if !self.input_ended {
            self.input.extend_from_slice(bytes);
        }
        self.push_input();
    }

    pub(super) fn wants_input(&self) -> bool {
        self.input.len() < INPUT_FULL
    }

    pub(super) fn has_input(&self) -> bool {
        !self.input.is_empty() && self.stdin.is_some()
    }

    /// Writes as much input as the command takes.
    pub(super) fn push_input(&mut self) {
        let Some(stdin) = &self.stdin else {
            self.input.clear();
            return;
        };
        while !self.input.is_empty() {
            match rustix::io::write(stdin, &self.input) {
                Ok(length) => drop(self.input.drain(..length)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                // It reads no more, as with a closed pipe in a shell.
                Err(_) => {
                    self.input.clear();
                    self.stdin = None;
                    return;
                }
            }
        }
        if self.input_ended {
            if self.terminal {
                // A terminal has no end, only the character that says so.
                self.input_ended = false;
                self.input.push(4);
                self.push_input();
            } else {
                self.stdin = None;
            }
        }
    }

    pub(super) fn resize(&self, window: model::exec::Window) {
        if let (true, Some(master)) = (self.terminal, &self.stdin) {
            // A terminal whose other side is gone has no size.
            rustix::termios::tcsetwinsize(master, spawn::winsize(window)).unwrap_or_default();
        }
    }

    /// Signals the process group; as `kill` does, it may be gone already.
    pub(super) fn signal(&self, number: i32) -> Result<(), rustix::io::Errno> {
        let signal = Signal::from_named_raw(number).ok_or(rustix::io::Errno::INVAL)?;
        match rustix::process::kill_process_group(self.pid, signal) {
            Err(rustix::io::Errno::SRCH) => Ok(()),
            other => other,
        }
    }

    /// Counts output. Past the limit the command and all it started are ended.
    pub(super) fn count(&mut self, bytes: usize) {
        self.written += bytes as u64;
        if self.limit.is_some_and(|limit| self.written > limit) {
            self.kill(Outcome::OutputLimit);
        }
    }

    /// Ends the command and all it started, for this reason.
    pub(super) fn kill(&mut self, why: Outcome) {
        if self.is_running() && self.verdict.is_none() {
            self.verdict = Some(why);
            self.deadline = None;
            tree::end_family(self.pid);
        }
    }
}
