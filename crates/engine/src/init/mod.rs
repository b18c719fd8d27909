//! Init: the first process of every sandbox. It spawns, reaps, opens terminals, writes logs, keeps the clock.
//!
//! A fork of the launcher, so it shares that one's pages; single-threaded, no async runtime. It shares its user with the
//! workload and is a target: not dumpable, no capability beyond its own namespaces, no descriptor of a folder
//! outside its root. Whatever it says, the daemon treats as hostile.
//!
//! The protocol ([`wire`]) only grows: an old init goes on serving a new daemon.

mod answer;
mod conversation;
mod files;
mod job;
mod lockdown;
pub mod log;
mod serve;
mod setup;
mod spawn;
mod tree;
mod user;
pub mod wire;

use std::fs::File;
use std::os::fd::OwnedFd;

use model::exec::FrameKind;
use model::{Code, Problem};

use crate::launcher::{LaunchError, Rights};
use crate::sys;
use crate::view::Plan;

/// What init is born with.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) plan: Plan,
    pub(crate) rights: Rights,
    /// On it the launcher hands over the mounts.
    pub(crate) launcher: OwnedFd,
    pub(crate) listener: OwnedFd,
    /// The first conversation.
    pub(crate) conversation: OwnedFd,
    pub(crate) log: OwnedFd,
}

/// The whole life of init.
pub(crate) fn main(birth: Birth) -> ! {
    live(birth);
    sys::leave(0)
}

fn live(birth: Birth) {
    let keep = [&birth.launcher, &birth.listener, &birth.conversation, &birth.log];
    let keep: Vec<_> = keep.into_iter().map(std::os::fd::AsFd::as_fd).collect();
    let set_up = sys::close_all_but(&keep)
        .map_err(|e| LaunchError::new("close inherited descriptors", e))
        .and_then(|()| name())
        .and_then(|()| setup::build(&birth))
        .and_then(|()| lockdown::lock(&birth.plan, birth.rights));
    if let Err(error) = set_up {
        report(&birth.conversation, &error);
        return;
    }
    drop(birth.launcher);
    let log = log::Writer::new(File::from(birth.log));
    // On failure nobody is left to tell: the daemon sees its conversation end.
    if let Ok(mut init) = serve::Init::new(birth.listener, birth.conversation, log, &birth.plan, birth.rights)
    {
        init.serve();
    }
}

/// What `ps` and `top` call it; otherwise that would be the last part of the path it was started by.
fn name() -> Result<(), LaunchError> {
    rustix::thread::set_name(c"zeno-init").map_err(|e| LaunchError::new("name init", e))
}

/// Tells the daemon, on the first conversation, why there will be no sandbox.
fn report(conversation: &OwnedFd, error: &LaunchError) {
    let mut problem = Problem::from_error(Code::MachineUnable, error);
    problem.causes.extend(error.kernel.clone());
    if let Ok(frame) = conversation::frame(FrameKind::Problem, &problem) {
        // If even this fails, the daemon sees the conversation end.
        rustix::io::write(conversation, &frame).unwrap_or_default();
    }
}

/// The boot clock in nanoseconds.
pub(crate) fn boot_clock() -> u64 {
    serve::now()
}
