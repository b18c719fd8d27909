//! One zeno with a home of its own: started by its first command, stopped and looked after at the end.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use model::exec::{Context, ExecRequest, Outcome, RunRequest, Variable};
use model::sandbox::CreateRequest;
use model::{Sandbox, SandboxId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde::Deserialize;

use super::proc::{self, Cpu};
use super::{Connection, RigError, interrupt};

/// How long a daemon may take to end in order.
const GRACE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Zeno {
    binary: PathBuf,
    home: PathBuf,
}

impl Zeno {
    pub(crate) fn new(binary: &Path, home: PathBuf) -> Self {
        Self { binary: binary.to_owned(), home }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// `zeno run -- WORDS...` in this folder.
    pub(crate) fn run(&self, folder: &Path, words: &[&str]) -> Command {
        self.run_with(folder, &[], words)
    }

    /// The same with options of `run` in front.
    pub(crate) fn run_with(&self, folder: &Path, options: &[&str], words: &[&str]) -> Command {
        let mut command = self.command();
        command.arg("run").args(options).arg("--").args(words).current_dir(folder);
        command
    }

    /// `zeno`, to be told what to do.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("ZENO_HOME", &self.home);
        command
    }

    pub(crate) fn connect(&self) -> Result<Connection, RigError> {
        Connection::open(&self.home.join("daemon.sock"))
    }

    /// The daemon, as the kernel names the other end of its socket.
    pub(crate) fn daemon(&self) -> Result<i32, RigError> {
        let connection = self.connect()?;
        let peer = rustix::net::sockopt::socket_peercred(connection.socket())
            .map_err(|errno| RigError::Peer(errno.into()))?;
        Ok(peer.pid.as_raw_nonzero().get())
    }

    /// CPU time used so far by the daemon, the launcher and the inits that are there. The launcher waits for nobody, so
    /// that what an init spent goes with it.
    pub(crate) fn cpu(&self) -> Result<Cpu, RigError> {
        Ok(Cpu::of(&proc::tree(self.daemon()?)?))
    }

    /// Ends every sandbox and then the daemon, and waits until both are gone. Fine if none ever ran.
    pub(crate) fn stop(&self) -> Result<(), RigError> {
        if !self.home.join("daemon.sock").exists() {
            return Ok(());
        }
        let daemon = match self.daemon() {
            Err(RigError::Connect { source, .. }) if source.kind() == io::ErrorKind::ConnectionRefused => {
                return Ok(());
            }
            other => other?,
        };
        let mut connection = self.connect()?;
        for sandbox in list(&mut connection)? {
            destroy(&mut connection, &sandbox)?;
        }
        // A connection that stays open would hold the daemon up.
        drop(connection);
        end(daemon, Signal::TERM)
    }

    /// Kills the daemon as a crash would.
    pub(crate) fn crash(&self) -> Result<(), RigError> {
        end(self.daemon()?, Signal::KILL)
    }
}

/// Makes a sandbox of the workspace around this folder.
pub(crate) fn create(connection: &mut Connection, folder: &Path) -> Result<SandboxId, RigError> {
    interrupt::check()?;
    let body = serde_json::to_string(&around(folder)).expect("a request is plain data");
    let answer = connection.send("POST", "/v1/sandboxes", &body)?;
    let sandbox: Sandbox = read("/v1/sandboxes", &answer)?;
    Ok(sandbox.id)
}

fn around(folder: &Path) -> CreateRequest {
    let path = Variable { name: "PATH".into(), value: "/usr/local/bin:/usr/bin:/bin".into() };
    let context = Context { env: vec![path], cwd: folder.to_owned().into(), ..Context::default() };
    CreateRequest { context, ..CreateRequest::default() }
}

pub(crate) fn run_body(folder: &Path, words: &[&str]) -> String {
    let argv = words.iter().map(|word| (*word).into()).collect();
    let exec = ExecRequest { argv, ..ExecRequest::default() };
    let request = RunRequest { create: around(folder), exec, keep: false };
    serde_json::to_string(&request).expect("a request is plain data")
}

/// Makes a sandbox, runs a command in it and removes it, in one call.
pub(crate) fn run(connection: &mut Connection, body: &str) -> Result<(), RigError> {
    let answer = connection.send("POST", "/v1/run", body)?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    match answer.trim_end().strip_suffix(r#"{"kind":"removed"}"#) {
        Some(rest) if succeeded(rest) => Ok(()),
        _ => Err(RigError::Command { sandbox: "a throwaway".to_owned(), answer }),
    }
}

/// Runs a command to its end; anything but exit 0 is an error.
pub(crate) fn exec(connection: &mut Connection, sandbox: &SandboxId, words: &[&str]) -> Result<(), RigError> {
    let answer = exec_raw(connection, sandbox, &exec_body(words))?;
    if succeeded(&answer) { Ok(()) } else { Err(RigError::Command { sandbox: sandbox.to_string(), answer }) }
}

pub(crate) fn exec_body(words: &[&str]) -> String {
    let request =
        ExecRequest { argv: words.iter().map(|word| (*word).into()).collect(), ..ExecRequest::default() };
    serde_json::to_string(&request).expect("a request is plain data")
}

/// The answer's lines as they came: one JSON value each, the outcome in the last.
pub(crate) fn exec_raw(
    connection: &mut Connection,
    sandbox: &SandboxId,
    body: &str,
) -> Result<String, RigError> {
    let answer = connection.send("POST", &format!("/v1/sandboxes/{sandbox}/exec"), body)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

pub(crate) fn destroy(connection: &mut Connection, sandbox: &SandboxId) -> Result<(), RigError> {
    connection.send("DELETE", &format!("/v1/sandboxes/{sandbox}"), "").map(drop)
}

/// Sandboxes that still hold something.
pub(crate) fn list(connection: &mut Connection) -> Result<Vec<SandboxId>, RigError> {
    let sandboxes: Vec<Sandbox> = read("/v1/sandboxes", &connection.send("GET", "/v1/sandboxes", "")?)?;
    let held = sandboxes.into_iter().filter(|sandbox| sandbox.state != model::State::Destroyed);
    Ok(held.map(|sandbox| sandbox.id).collect())
}

/// Does the last line say that the command exited with 0?
fn succeeded(answer: &str) -> bool {
    #[derive(Deserialize)]
    struct Ended {
        outcome: Outcome,
    }
    let last = answer.trim_end().lines().last().unwrap_or("");
    matches!(serde_json::from_str(last), Ok(Ended { outcome: Outcome::Exited { code: 0 } }))
}

pub(super) fn read<T: serde::de::DeserializeOwned>(path: &str, answer: &[u8]) -> Result<T, RigError> {
    serde_json::from_slice(answer).map_err(|source| RigError::Answer { path: path.to_owned(), source })
}

/// Signals a process and waits for its end.
pub(crate) fn end(pid: i32, signal: Signal) -> Result<(), RigError> {
    let failed = |errno: rustix::io::Errno| RigError::Signal { pid, source: errno.into() };
    let process = Pid::from_raw(pid).expect("the kernel's ids are positive");
    let handle = pidfd_open(process, PidfdFlags::empty()).map_err(failed)?;
    kill_process(process, signal).map_err(failed)?;
    let timeout = Timespec::try_from(GRACE).expect("a few seconds");
    let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).map_err(failed)?;
    if ended == 0 { Err(RigError::Survives { pid, seconds: GRACE.as_secs() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exit_0_in_the_last_line_is_success() {
        let started = r#"{"kind":"started","exec":{}}"#;
        let ended = |code| {
            format!("{started}\n{{\"kind\":\"ended\",\"outcome\":{{\"kind\":\"exited\",\"code\":{code}}}}}\n")
        };
        assert!(succeeded(&ended(0)));
        assert!(!succeeded(&ended(1)));
        assert!(!succeeded(started) && !succeeded(""));
    }
}
