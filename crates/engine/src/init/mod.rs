//! Init: the first process of every sandbox. It spawns, reaps, opens terminals, writes logs, keeps the clock.
//!
//! A fork of the launcher, so it shares that one's pages; single-threaded, no async runtime. It shares its user with the
//! workload and is a target: not dumpable, no capability beyond its own namespaces, no descriptor of a folder
//! outside its root. Whatever it says, the daemon treats as hostile.
//!
//! The protocol ([`wire`]) only grows: an old init goes on serving a new daemon.

mod answer;
mod connect;
mod conversation;
mod files;
mod job;
mod lockdown;
pub mod log;
mod serve;
mod setup;
mod spawn;
mod unlinked;
mod usage;
mod user;
pub mod wire;

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use model::exec::FrameKind;
use model::net::Wiring;
use model::{Code, Problem};

use serde::{Deserialize, Serialize};

use crate::launcher::{LaunchError, PACKET, Rights};
use crate::sys;
use crate::view::Plan;

/// What init is born with.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) rights: Rights,
    pub(crate) net: Wiring,
    /// On it the launcher hands over everything else.
    pub(crate) launcher: OwnedFd,
}

/// What a waiting init becomes. Beside it come descriptors: listener, first conversation, log, and one mount for each
/// place of `mounted` and `covered`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Destiny {
    pub(crate) plan: Plan,
    /// Places in the plan's parts.
    pub(crate) mounted: Vec<usize>,
    /// After those, a mount for each file of the view that another one is put over.
    pub(crate) covered: Vec<PathBuf>,
}

/// The whole life of init.
pub(crate) fn main(birth: Birth) -> ! {
    live(birth);
    sys::leave(0)
}

fn live(birth: Birth) {
    let prepared = sys::close_all_but(&[birth.launcher.as_fd()])
        .map_err(|e| LaunchError::new("close inherited descriptors", e))
        .and_then(|()| name(c"zeno-spare"))
        .and_then(|()| setup::prepare(&birth));
    // Without a destiny the launcher has ended, or gone mad; there is nobody to tell.
    let Some((destiny, given)) = await_destiny(&birth.launcher) else { return };
    let mut given = given.into_iter();
    let (Some(listener), Some(conversation), Some(log)) = (given.next(), given.next(), given.next()) else {
        return;
    };
    let plan = &destiny.plan;
    let built = prepared
        .and_then(|prepared| {
            let parts = destiny.mounted.into_iter().zip(given.by_ref()).collect();
            setup::build(prepared, plan, parts, destiny.covered.into_iter().zip(given))
        })
        .and_then(|gateway| lockdown::lock(plan, birth.rights).map(|()| gateway));
    let gateway = match built {
        Ok(gateway) => gateway,
        Err(error) => return report(&conversation, &error),
    };
    drop(birth.launcher);
    let log = log::Writer::new(File::from(log));
    // On failure nobody is left to tell: the daemon sees its conversation end.
    if let Ok(mut init) = serve::Init::new(listener, conversation, log, plan, birth.rights) {
        init.gateway = gateway;
        init.serve();
    }
}

fn await_destiny(launcher: &OwnedFd) -> Option<(Destiny, Vec<OwnedFd>)> {
    let packet = sys::receive(launcher.as_fd(), PACKET).ok()??;
    Some((serde_json::from_slice(&packet.bytes).ok()?, packet.descriptors))
}

/// What `ps` and `top` call it; otherwise that would be the last part of the path it was started by.
fn name(name: &CStr) -> Result<(), LaunchError> {
    rustix::thread::set_name(name).map_err(|e| LaunchError::new("name init", e))
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

/// Reads an answer that may have descriptors beside it, from the daemon's end: its bytes, and them.
pub fn receive(conversation: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let packet = sys::receive_at_most(conversation, LONGEST_ANSWER)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((packet.bytes, packet.descriptors))
}

/// The boot clock in nanoseconds.
pub(crate) fn boot_clock() -> u64 {
    serve::now()
}

/// Of those that have descriptors beside them, or a problem in their place.
const LONGEST_ANSWER: usize = 4096;
