//! What init does for each request.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use model::exec::{Exec, FrameKind, Outcome, Text, Window};
use model::files::FileOp;
use model::{Code, ExecId, Problem};
use rustix::process::{Pid, Signal};

use super::files::Whose;
use super::job::Job;
use super::serve::{Init, now};
use super::wire::{Command, Pong, Request, VERSION};
use super::{connect, files, spawn, unlinked, usage, user};
use crate::sys;
use crate::tree::{self, StopError};

impl Init {
    /// Answers one frame of conversation `at`.
    pub(super) fn answer(&mut self, at: usize, kind: FrameKind, payload: &[u8]) {
        match (kind, self.conversations[at].job) {
            (FrameKind::Request, None) => match serde_json::from_slice(payload) {
                Ok(request) => self.request(at, request),
                Err(error) => {
                    let problem = Problem::from_error(Code::BadRequest, &error);
                    self.say(at, FrameKind::Problem, &problem);
                }
            },
            (FrameKind::Stdin, Some(id)) => {
                if let Some(job) = self.job(id) {
                    job.feed(payload);
                }
            }
            (FrameKind::Resize, Some(id)) => {
                if let (Some(job), Ok(window)) = (self.job(id), serde_json::from_slice::<Window>(payload)) {
                    job.resize(window);
                }
            }
            (FrameKind::Signal, Some(id)) => {
                if let (Some(job), Ok(number)) = (self.job(id), serde_json::from_slice(payload)) {
                    // On a conversation there is no answer to a signal; the command's end is.
                    job.signal(number).unwrap_or_default();
                }
            }
            _ => self.conversations[at].closing = true,
        }
    }

    fn request(&mut self, at: usize, request: Request) {
        match request {
            Request::Begin(terms) => {
                // Without the name it serves just as well.
                rustix::thread::set_name(c"zeno-init").unwrap_or_default();
                self.terms = Some(terms);
                self.last_job = self.last_job.max(terms.last_exec);
                self.idle_since = now();
            }
            Request::Ping => self.say(at, FrameKind::Answer, &Pong { version: VERSION }),
            Request::Exec(command) => self.start(at, *command),
            Request::Attach { exec } => self.attach(at, exec),
            Request::Execs => {
                let execs: Vec<Exec> =
                    self.ended.iter().cloned().chain(self.jobs.iter().map(Job::exec)).collect();
                self.say(at, FrameKind::Answer, &execs);
            }
            Request::Signal { exec, signal } => match self.job(exec.0).map(|job| job.signal(signal)) {
                Some(Ok(())) => self.say(at, FrameKind::Answer, &()),
                Some(Err(error)) => {
                    let problem = Problem::from_error(Code::BadRequest, &io::Error::from(error));
                    self.say(at, FrameKind::Problem, &problem);
                }
                None => self.say(at, FrameKind::Problem, &no_command(exec)),
            },
            Request::Deadline { at: deadline } => {
                self.terms.get_or_insert_default().deadline = deadline;
                self.say(at, FrameKind::Answer, &());
            }
            Request::Freeze => match self.freeze() {
                Ok(()) => self.done(at, Ok(())),
                Err(error) => {
                    let code = match &error {
                        StopError::Restless(_) => Code::NotReady,
                        StopError::Signal(_) | StopError::Look(_) => Code::Internal,
                    };
                    self.say(at, FrameKind::Problem, &Problem::from_error(code, &error));
                }
            },
            Request::Thaw => {
                self.thaw();
                self.done(at, Ok(()));
            }
            Request::Processes => self.say(at, FrameKind::Answer, &tree::all().len()),
            Request::LastExec => {
                let last = self.last_job;
                self.say(at, FrameKind::Answer, &last);
            }
            Request::LargestProcess => match sys::largest_child() {
                Ok(bytes) => self.say(at, FrameKind::Answer, &bytes),
                Err(error) => self.done(at, Err(error)),
            },
            // An overlay answers for the file system of its upper folder, which all of them share.
            Request::DiskUse => match rustix::fs::statvfs(&self.overlay) {
                Ok(disk) => {
                    let used = disk.f_blocks.saturating_sub(disk.f_bfree) * disk.f_frsize;
                    self.say(at, FrameKind::Answer, &used);
                }
                Err(error) => self.done(at, Err(error.into())),
            },
            Request::Gateway => self.hand_out_gateway(at),
            Request::Connect { to } => self.connect(at, to),
            Request::Unlinked => self.say(at, FrameKind::Answer, &unlinked::bytes()),
            Request::Usage => self.say(at, FrameKind::Answer, &usage::now()),
            Request::File { user, file, home } => self.file(at, user.as_deref(), home, &file),
        }
    }

    /// All or nobody: if one cannot be stopped, the others go on.
    fn freeze(&mut self) -> Result<(), StopError> {
        self.stopped_before.get_or_insert_with(|| {
            let stopped = tree::all().into_iter().filter(|process| process.stopped);
            stopped.map(|process| process.pid).collect()
        });
        tree::stop_everyone().inspect_err(|_| self.thaw())
    }

    fn thaw(&mut self) {
        let Some(before) = self.stopped_before.take() else { return };
        let woken = tree::all().into_iter().filter(|process| !before.contains(&process.pid));
        for pid in woken.filter_map(|process| Pid::from_raw(process.pid)) {
            // One that ended meanwhile needs no waking.
            rustix::process::kill_process(pid, Signal::CONT).unwrap_or_default();
        }
    }

    fn hand_out_gateway(&mut self, at: usize) {
        match &self.gateway {
            Some(gateway) => {
                let sent = self.conversations[at].send_with(&(), &gateway.sockets.descriptors());
                // Whoever asked sees its conversation end, and asks again.
                sent.unwrap_or_default();
                self.conversations[at].closing = true;
            }
            None => {
                let problem = Problem::new(Code::NotReady, "this sandbox was made without a gateway");
                self.say(at, FrameKind::Problem, &problem);
            }
        }
    }

    fn connect(&mut self, at: usize, to: SocketAddr) {
        match connect::begin(to) {
            Ok(socket) => {
                let sent = self.conversations[at].send_with(&(), &[socket.as_fd()]);
                // Whoever asked sees its conversation end.
                sent.unwrap_or_default();
                self.conversations[at].closing = true;
            }
            Err(error) => self.done(at, Err(error)),
        }
    }

    fn start(&mut self, at: usize, command: Command) {
        self.last_job += 1;
        let id = self.last_job;
        match spawn::spawn(&command, self.rights) {
            Ok(spawned) => {
                self.jobs.push(Job::new(id, spawned, command, now()));
                self.conversations[at].job = Some(id);
            }
            Err(outcome) => {
                let exec = Exec {
                    id: ExecId(id),
                    argv: command.argv,
                    pid: 0,
                    tty: false,
                    outcome: Some(outcome.clone()),
                };
                self.ended.push_back(exec);
                self.say(at, FrameKind::Ended, &outcome);
            }
        }
    }

    fn attach(&mut self, at: usize, exec: ExecId) {
        let running = self.jobs.iter().find(|job| job.id == exec.0).map(Job::exec);
        let known = running.or_else(|| self.ended.iter().find(|ended| ended.id == exec).cloned());
        match known {
            Some(Exec { outcome: Some(outcome), .. }) => self.say(at, FrameKind::Ended, &outcome),
            Some(exec) => {
                self.conversations[at].job = Some(exec.id.0);
                self.conversations[at].send_json(FrameKind::Started, &exec);
            }
            None => self.say(at, FrameKind::Problem, &no_command(exec)),
        }
    }

    /// A child does the work and has the conversation from now on.
    fn file(&mut self, at: usize, user: Option<&str>, home: Option<Text>, file: &FileOp) {
        let identity = match user.map(user::find).transpose() {
            Ok(identity) => identity,
            Err(error) => {
                let code = if file.is_at_home() { Code::Unauthorized } else { Code::BadRequest };
                return self.say(at, FrameKind::Problem, &Problem::from_error(code, &error));
            }
        };
        if let Err(Outcome::NotStarted { reason, .. }) =
            spawn::refuse_foreign_user(identity.as_ref(), self.rights)
        {
            return self.say(at, FrameKind::Problem, &Problem::new(Code::Refused, reason));
        }
        match sys::fork() {
            Ok(Some(_child)) => self.conversations[at].closing = true,
            Ok(None) => {
                let (socket, early) = self.conversations.swap_remove(at).into_parts();
                files::serve(socket, early, Whose { identity, home }, file)
            }
            Err(error) => {
                // The workload has all processes or all memory that the sandbox may have.
                let is_full = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory);
                let code = if is_full { Code::NotReady } else { Code::Internal };
                self.say(at, FrameKind::Problem, &Problem::from_error(code, &error));
            }
        }
    }

    fn done(&mut self, at: usize, result: io::Result<()>) {
        match result {
            Ok(()) => self.say(at, FrameKind::Answer, &()),
            Err(error) => self.say(at, FrameKind::Problem, &Problem::from_error(Code::Internal, &error)),
        }
    }

    /// Says the last word of a conversation.
    fn say(&mut self, at: usize, kind: FrameKind, value: &impl serde::Serialize) {
        self.conversations[at].send_json(kind, value);
        self.conversations[at].closing = true;
    }

    fn job(&mut self, id: u32) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.id == id)
    }
}

fn no_command(exec: ExecId) -> Problem {
    Problem::new(Code::NotFound, format!("no command {exec} runs or ran in this sandbox"))
}
