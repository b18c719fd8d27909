//! The daemon's side of the launcher.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use model::Caveat;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::VERB;
use super::rights::Rights;
use super::wire::{Answer, Answered, Begin, Given, Launch, LaunchError, PACKET};
use crate::sys;
use crate::view::{Plan, mounts};

/// A running launcher. When it dies it is started again at the next order.
#[derive(Debug)]
pub struct Launcher {
    begin: Begin,
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    socket: OwnedFd,
    /// The machine's mounts when it was started. It has a namespace of its own, which later ones may never reach.
    mounts: Vec<u8>,
}

/// A sandbox to launch.
#[derive(Debug)]
pub struct Order<'a> {
    pub plan: &'a Plan,
    /// The sandbox's folder, relative to the home.
    pub folder: PathBuf,
    /// The folder in it that takes what it writes.
    pub upper: String,
    /// Becomes init's first conversation.
    pub conversation: &'a UnixStream,
    pub log: &'a File,
    /// `cgroup.procs` files to enter.
    pub join: Vec<PathBuf>,
    /// The block device for a plan whose disk is an image.
    pub disk: Option<PathBuf>,
    /// Files that are put over those of its view.
    pub given: Vec<Given>,
}

#[derive(Debug)]
pub struct Launched {
    pub pid: i32,
    pub process: OwnedFd,
    pub caveats: Vec<Caveat>,
    /// A mount that the plan names was gone by then: what it shows is right now, but not what the plan says.
    pub is_outdated: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum LauncherError {
    #[error("could not start the launcher")]
    Start(#[source] io::Error),
    #[error("could not read the list of mounts")]
    Mounts(#[source] io::Error),
    #[error("could not talk to the launcher")]
    Talk(#[source] io::Error),
    #[error("the launcher's message could not be read")]
    Message(#[source] serde_json::Error),
    #[error("the launcher went away")]
    Gone,
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl Launcher {
    /// Starts a launcher for this home. `join` are `cgroup.procs` files of the caps all sandboxes share.
    pub fn start(home: &Path, rights: Rights, join: Vec<PathBuf>) -> Result<Self, LauncherError> {
        let begin = Begin { home: home.to_owned(), rights, join };
        let process = Process::start(&begin)?;
        Ok(Self { begin, process: Mutex::new(Some(process)) })
    }

    /// Ends the launcher and its spare. Sandboxes live on.
    pub fn end(&self) {
        let mut slot = self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(process) = slot.take() {
            process.end();
        }
    }

    /// Makes a sandbox. Returns when its init exists; init says on the conversation when it is ready.
    pub fn launch(&self, order: Order<'_>) -> Result<Launched, LauncherError> {
        let mut slot = self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = mounts::table().map_err(LauncherError::Mounts)?;
        // One that somebody killed costs nobody a sandbox.
        let is_fit =
            |process: &mut Process| process.mounts == now && matches!(process.child.try_wait(), Ok(None));
        let mut process = match slot.take_if(is_fit) {
            Some(process) => process,
            None => {
                if let Some(process) = slot.take() {
                    process.end();
                }
                Process::start(&self.begin)?
            }
        };
        let Order { plan, folder, upper, join, disk, given, .. } = order;
        let message = Launch { plan: Cow::Borrowed(plan), folder, upper, join, disk, given };
        let answer = process.ask(&message, &[order.conversation.as_fd(), order.log.as_fd()]);
        match &answer {
            Err(LauncherError::Talk(_) | LauncherError::Gone | LauncherError::Message(_)) => process.end(),
            Ok(_) | Err(LauncherError::Start(_) | LauncherError::Mounts(_) | LauncherError::Launch(_)) => {
                *slot = Some(process)
            }
        }
        match answer? {
            (Answer::Launched(Answered { pid, caveats, is_outdated }), Some(process)) => {
                Ok(Launched { pid, process, caveats, is_outdated })
            }
            (Answer::Launched(_) | Answer::Ready, _) => Err(LauncherError::Gone),
            (Answer::Failed(error), _) => Err(error.into()),
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    fn start(begin: &Begin) -> Result<Self, LauncherError> {
        // Before it copies them: one too early costs another start, one too late would never be noticed.
        let mounts = mounts::table().map_err(LauncherError::Mounts)?;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (socket, theirs) = pair.map_err(|error| LauncherError::Start(error.into()))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(VERB).env_clear().current_dir("/").stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let child = command.spawn().map_err(LauncherError::Start)?;
        // It holds their end, too: one that is killed before it is ready would be waited for for ever.
        drop(command);
        let mut process = Self { child, socket, mounts };
        match process.ask(begin, &[])? {
            (Answer::Ready, _) => Ok(process),
            (Answer::Failed(error), _) => Err(error.into()),
            (Answer::Launched(_), _) => Err(LauncherError::Gone),
        }
    }

    fn ask(
        &mut self,
        message: &impl serde::Serialize,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(Answer, Option<OwnedFd>), LauncherError> {
        let bytes = serde_json::to_vec(message).map_err(LauncherError::Message)?;
        sys::send(self.socket.as_fd(), &bytes, descriptors).map_err(LauncherError::Talk)?;
        let packet = sys::receive(self.socket.as_fd(), PACKET / 64).map_err(LauncherError::Talk)?;
        let packet = packet.ok_or(LauncherError::Gone)?;
        let answer = serde_json::from_slice(&packet.bytes).map_err(LauncherError::Message)?;
        Ok((answer, packet.descriptors.into_iter().next()))
    }

    /// Closing the socket ends the launcher; it is reaped here.
    fn end(mut self) {
        drop(self.socket);
        match self.child.wait() {
            Ok(status) => tracing::debug!(%status, "launcher ended"),
            Err(error) => tracing::warn!(%error, "launcher could not be reaped"),
        }
    }
}
