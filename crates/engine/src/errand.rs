//! An errand: a command on the real machine, for as long as somebody waits for its end.
//!
//! A stage of a promotion runs on this machine as it is, with the user's own rights: no namespaces here. What must hold all
//! the same is that it does not go on unseen when its daemon is killed. So a small process stands between the two, the
//! daemon's own (sealed) executable again. It adopts whoever loses its parent among what the command started, and when its
//! socket closes it ends all of them. What a command leaves behind when it ends by itself is left alone: starting
//! something may be what it was for.

use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use model::exec::{Outcome, Text, Variable};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{Pid, PidfdFlags};
use serde::{Deserialize, Serialize};

use crate::{sys, tree};

/// The hidden first argument with which the executable goes on an errand.
pub const VERB: &str = "errand";

/// A line for `sh`, and where it finds itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub line: String,
    pub cwd: Text,
    /// All there is; of two of the same name the later one counts.
    pub env: Vec<Variable>,
    pub umask: Option<u32>,
}

/// A command under way. Closing `conversation` ends it, and all that it started.
#[derive(Debug)]
pub struct Errand {
    /// Says how it ended, as one line of JSON: an [`Outcome`]. Silent where it was ended.
    pub conversation: UnixStream,
    pub stdout: PipeReader,
    pub stderr: PipeReader,
    /// Ends when nothing is left to be ended. Has to be waited for.
    pub process: Child,
}

#[derive(Debug, thiserror::Error)]
pub enum ErrandError {
    #[error("could not make a socket and pipes for a command")]
    Ends(#[source] io::Error),
    #[error("could not start zeno's own program")]
    Start(#[source] io::Error),
    #[error("could not write down what is to be run")]
    Encode(#[source] serde_json::Error),
    #[error("could not say what is to be run")]
    Send(#[source] io::Error),
    #[error("could not hear what is to be run")]
    Receive(#[source] io::Error),
    #[error("what is to be run is not as expected")]
    Decode(#[source] serde_json::Error),
    #[error("could not become a process that others are left to")]
    Adopt(#[source] io::Error),
    #[error("could not wait for the end of a command")]
    Wait(#[source] io::Error),
}

/// Starts a command.
pub fn start(order: &Order) -> Result<Errand, ErrandError> {
    let (mut conversation, theirs) = UnixStream::pair().map_err(ErrandError::Ends)?;
    let (stdout, out) = io::pipe().map_err(ErrandError::Ends)?;
    let (stderr, err) = io::pipe().map_err(ErrandError::Ends)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(VERB).env_clear().current_dir("/");
    command.stdin(OwnedFd::from(theirs)).stdout(out).stderr(err);
    let mut message = serde_json::to_vec(order).map_err(ErrandError::Encode)?;
    message.push(b'\n');
    let mut process = command.spawn().map_err(ErrandError::Start)?;
    // It holds the other ends, and would keep them open here.
    drop(command);
    if let Err(error) = conversation.write_all(&message) {
        drop(conversation);
        process.wait().map_err(ErrandError::Wait)?;
        return Err(ErrandError::Send(error));
    }
    Ok(Errand { conversation, stdout, stderr, process })
}

/// The whole life of the process in between. Standard input is its socket, the other two are the command's.
pub fn main() -> Result<(), ErrandError> {
    rustix::thread::set_name(c"zeno-errand").map_err(|error| ErrandError::Adopt(error.into()))?;
    sys::default_signals().map_err(ErrandError::Adopt)?;
    // A session of its own: no signal meant for the daemon's terminal reaches it.
    rustix::process::setsid().map_err(|error| ErrandError::Adopt(error.into()))?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| ErrandError::Adopt(error.into()))?;
    let order = hear()?;
    let outcome = match spawn(&order) {
        Ok(child) => match wait(child)? {
            Ended::ByItself(status) => outcome(status),
            Ended::Left => {
                tree::end_descendants();
                return Ok(());
            }
        },
        Err(error) => not_started(&order, &error),
    };
    let mut line = serde_json::to_vec(&outcome).map_err(ErrandError::Encode)?;
    line.push(b'\n');
    // Shorter than any socket's buffer, so it goes in one piece.
    rustix::net::send(rustix::stdio::stdin(), &line, SendFlags::NOSIGNAL)
        .map(drop)
        .map_err(|error| ErrandError::Send(error.into()))
}

/// The order is all that ever comes.
fn hear() -> Result<Order, ErrandError> {
    let socket = rustix::stdio::stdin().try_clone_to_owned().map_err(ErrandError::Receive)?;
    let mut line = Vec::new();
    BufReader::new(UnixStream::from(socket)).read_until(b'\n', &mut line).map_err(ErrandError::Receive)?;
    serde_json::from_slice(&line).map_err(ErrandError::Decode)
}

fn spawn(order: &Order) -> io::Result<Child> {
    let Order { line, cwd, env, umask } = order;
    if let Some(umask) = umask {
        rustix::process::umask(Mode::from_raw_mode(umask & 0o777));
    }
    Command::new("/bin/sh")
        .args(["-c", line])
        .env_clear()
        .envs(env.iter().map(|variable| (variable.name.as_os_str(), variable.value.as_os_str())))
        .current_dir(Path::new(cwd.as_os_str()))
        .stdin(Stdio::null())
        // Apart, so that a script that signals its own group does not hit us.
        .process_group(0)
        .spawn()
}

enum Ended {
    ByItself(ExitStatus),
    /// Nobody waits for it any more.
    Left,
}

fn wait(mut child: Child) -> Result<Ended, ErrandError> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| ErrandError::Wait(io::ErrorKind::InvalidData.into()))?;
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty())
        .map_err(|error| ErrandError::Wait(error.into()))?;
    let socket = rustix::stdio::stdin();
    loop {
        let mut ends = [
            PollFd::from_borrowed_fd(socket, PollFlags::IN),
            PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ends, None) {
            Err(Errno::INTR) => continue,
            other => other.map_err(|error| ErrandError::Wait(error.into()))?,
        };
        let [daemon, command] = ends.map(|end| !end.revents().is_empty());
        if command {
            return child.wait().map(Ended::ByItself).map_err(ErrandError::Wait);
        }
        if daemon {
            return Ok(Ended::Left);
        }
    }
}

fn outcome(status: ExitStatus) -> Outcome {
    match (status.code(), status.signal()) {
        (Some(code), _) => Outcome::Exited { code },
        (None, signal) => Outcome::Signaled { signal: signal.unwrap_or(0) },
    }
}

fn not_started(order: &Order, error: &io::Error) -> Outcome {
    let folder = order.cwd.display();
    Outcome::NotStarted { code: 125, reason: format!("could not start `sh` in `{folder}`: {error}") }
}
