//! The launcher's main loop, and one launch from start to end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use model::Caveat;
use model::caveat::CaveatKind;
use model::net::Wiring;
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with, socketpair};
use rustix::process::Signal;

use super::overlay::Written;
use super::stage::{Stage, write};
use super::wire::{Answer, Answered, Begin, Given, Launch, LaunchError, PACKET};
use crate::init;
use crate::sys::{self, Clone3, Cloned};

/// The launcher's whole life. Standard input is its socket; it ends when the daemon closes that.
pub fn main() -> Result<(), LaunchError> {
    let socket = rustix::stdio::stdin();
    let failed = |e: io::Error| LaunchError::new("talk to the daemon", e);
    rustix::thread::set_name(c"zeno-launcher").map_err(|e| LaunchError::new("name the launcher", e))?;
    // Children are init processes that nobody waits for: the daemon watches their pidfds.
    ignore_children().map_err(failed)?;
    let Some(packet) = sys::receive(socket, PACKET).map_err(failed)? else { return Ok(()) };
    let mut stage = match begin(&packet.bytes) {
        Ok(stage) => {
            answer(socket, &Answer::Ready, &[]).map_err(failed)?;
            stage
        }
        Err(error) => return answer(socket, &Answer::Failed(error), &[]).map_err(failed),
    };
    let mut spare = None;
    loop {
        // Made while nobody waits, taken by the next launch. If it cannot be made now, that launch says why.
        if spare.is_none() && is_quiet(socket) {
            spare = bear(&stage, Wiring::None).ok();
        }
        let Some(packet) = sys::receive(socket, PACKET).map_err(failed)? else { return Ok(()) };
        match launch(&mut stage, &mut spare, &packet.bytes, packet.descriptors) {
            Ok((process, launched)) => {
                answer(socket, &Answer::Launched(launched), &[process.as_fd()]).map_err(failed)?;
            }
            Err(error) => answer(socket, &Answer::Failed(error), &[]).map_err(failed)?,
        }
    }
}

fn begin(message: &[u8]) -> Result<Stage, LaunchError> {
    let begin: Begin = serde_json::from_slice(message)
        .map_err(|e| LaunchError::new("read the order", io::Error::from(e)))?;
    for group in &begin.join {
        write(&group.to_string_lossy(), "0")?;
    }
    Stage::set_up(begin.home, begin.rights)
}

/// An init that has its namespaces and waits for a plan.
struct Infant {
    pid: i32,
    process: OwnedFd,
    socket: OwnedFd,
}

impl Infant {
    /// For a launch that failed half-way.
    fn abandon(self) {
        if let Err(error) = rustix::process::pidfd_send_signal(&self.process, Signal::KILL) {
            tracing::debug!(error = %io::Error::from(error), "a half-made init was already gone");
        }
    }
}

/// Clones an init into new namespaces and names its users. It prepares itself and then waits.
fn bear(stage: &Stage, net: Wiring) -> Result<Infant, LaunchError> {
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (socket, launcher) = pair.map_err(|e| LaunchError::new("make a socket for init", e))?;
    let mut namespaces = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP;
    if net != Wiring::Host {
        namespaces |= libc::CLONE_NEWNET;
    }
    let cloned = sys::clone3(&Clone3 { namespaces: namespaces as u64 })
        .map_err(|e| LaunchError::new("make the sandbox's namespaces", e))?;
    match cloned {
        Cloned::Child => {
            drop(socket);
            init::main(init::Birth { rights: stage.rights, net, launcher })
        }
        Cloned::Parent { pid, descriptor } => {
            let infant = Infant { pid: pid.as_raw_nonzero().get(), process: descriptor, socket };
            match name_users(stage, &infant) {
                Ok(()) => Ok(infant),
                Err(error) => {
                    infant.abandon();
                    Err(error)
                }
            }
        }
    }
}

/// Writes the id maps, and tells init so with the devices it needs.
fn name_users(stage: &Stage, infant: &Infant) -> Result<(), LaunchError> {
    let pid = infant.pid;
    if matches!(stage.rights, super::Rights::User { .. }) {
        write(&format!("/proc/{pid}/setgroups"), "deny")?;
    }
    write(&format!("/proc/{pid}/uid_map"), &stage.rights.uid_map())?;
    write(&format!("/proc/{pid}/gid_map"), &stage.rights.gid_map())?;
    let devices = stage.copy_devices()?;
    sys::send(infant.socket.as_fd(), b"{}", &[devices.as_fd()])
        .map_err(|e| LaunchError::new("write to init", e))
}

fn launch(
    stage: &mut Stage,
    spare: &mut Option<Infant>,
    message: &[u8],
    descriptors: Vec<OwnedFd>,
) -> Result<(OwnedFd, Answered), LaunchError> {
    let order: Launch<'_> = serde_json::from_slice(message)
        .map_err(|e| LaunchError::new("read the order", io::Error::from(e)))?;
    let listener = control_socket(&stage.home.join(&order.folder))?;
    let infant = match spare.take_if(|_| order.plan.net == Wiring::None) {
        Some(infant) => infant,
        None => bear(stage, order.plan.net)?,
    };
    let mut given = vec![listener];
    given.extend(descriptors);
    match prepare(stage, order, &infant, given) {
        Ok(launched) => Ok((infant.process, launched)),
        Err(error) => {
            infant.abandon();
            Err(error)
        }
    }
}

/// Gives a waiting init what it is to become: its cgroups, its plan, its mounts.
fn prepare(
    stage: &mut Stage,
    order: Launch<'_>,
    infant: &Infant,
    mut given: Vec<OwnedFd>,
) -> Result<Answered, LaunchError> {
    for group in &order.join {
        write(&group.to_string_lossy(), &infant.pid.to_string())?;
    }
    let disk = order.plan.disk.map(|size| stage.make_disk(&order, size)).transpose()?;
    let written = match &disk {
        Some(disk) => Written::new(&disk.folder, "upper"),
        None => Written::new(&stage.in_store(&order.folder), &order.upper),
    };
    let (mut caveats, mut is_outdated) = (Vec::new(), false);
    let mut mounted = Vec::new();
    for (place, part) in order.plan.parts.iter().enumerate() {
        match stage.mount_part(part, &written) {
            Ok(mount) => {
                mounted.push(place);
                given.push(mount);
            }
            // It is no mount any more: the folder that it was mounted on is there instead.
            Err(error) if part.optional && error.is_outdated() => is_outdated = true,
            Err(error) if part.optional => {
                let text = format!("a mount of this machine is left out: {error}");
                caveats.push(Caveat::at(CaveatKind::View, part.mountpoint.to_string_lossy(), text));
            }
            Err(error) => return Err(error),
        }
    }
    let mut covered = Vec::new();
    for Given { file, at } in order.given {
        given.push(stage.given_file(&file)?);
        covered.push(at);
    }
    let mut plan = order.plan.into_owned();
    // By far the most of a plan, and mounted already.
    plan.parts.iter_mut().for_each(|part| part.lowers.clear());
    let go = serde_json::to_vec(&init::Destiny { plan, mounted, covered })
        .map_err(|e| LaunchError::new("write to init", io::Error::from(e)))?;
    let descriptors: Vec<_> = given.iter().map(AsFd::as_fd).collect();
    sys::send(infant.socket.as_fd(), &go, &descriptors).map_err(|e| LaunchError::new("write to init", e))?;
    Ok(Answered { pid: infant.pid, caveats, is_outdated })
}

/// Does nobody want anything of us for a moment? A spare made at once would take the processor from the sandbox that
/// was launched just now.
fn is_quiet(socket: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 2_500_000 };
    rustix::event::poll(&mut fds, Some(&moment)).is_ok_and(|ready| ready == 0)
}

/// Binds, but does not listen: init listens itself, so that its peers see init's credentials.
fn control_socket(folder: &Path) -> Result<OwnedFd, LaunchError> {
    let failed = |e: rustix::io::Errno| LaunchError::new("make the control socket", e);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)?;
    let open = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, open, rustix::fs::Mode::empty()).map_err(failed)?;
    // A socket's path holds 108 bytes, a home's may be longer: go through the descriptor.
    let path = crate::through(folder.as_fd(), "control.sock");
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    bind(&socket, &address).map_err(failed)?;
    Ok(socket)
}

fn answer(socket: BorrowedFd<'_>, answer: &Answer, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    sys::send(socket, &serde_json::to_vec(answer)?, descriptors)
}

fn ignore_children() -> io::Result<()> {
    // SAFETY: SIG_IGN is a valid disposition, and no handler of ours is replaced.
    let old = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    if old == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}
