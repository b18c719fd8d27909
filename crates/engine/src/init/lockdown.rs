//! Giving up everything init and its children do not need.

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::launcher::{LaunchError, Rights};
use crate::seccomp;
use crate::view::Plan;
use model::limits::Defaults;

/// What root inside keeps, over its own namespaces only: what installing packages, running servers and debugging take.
/// No SYS_ADMIN, NET_ADMIN, SYS_MODULE, MKNOD, BPF: those are the kernel's widest doors.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::AUDIT_WRITE);

pub(super) fn lock(plan: &Plan, rights: Rights) -> Result<(), LaunchError> {
    limit(Resource::Nproc, plan.pids)?;
    limit(Resource::Nofile, Defaults::OPEN_FILES)?;
    // One byte is too little for a file, and the only limit at which the kernel does not start the host's crash handler.
    limit(Resource::Core, 1)?;
    let kept = match rights {
        Rights::Root => KEPT,
        // The workload is an ordinary user here too, and init needs only to signal its own children.
        Rights::User { .. } => CapabilitySet::KILL,
    };
    // One right that the workload can never have: whoever has less than a process may not slow it down.
    drop_capabilities(kept, kept.union(CapabilitySet::SYS_NICE))?;
    let failed = |e| LaunchError::new("set no_new_privs", e);
    rustix::thread::set_no_new_privs(true).map_err(failed)?;
    // So that nothing with our user id can trace us or look into our /proc entry.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|e| LaunchError::new("become undumpable", e))?;
    let program = seccomp::program(seccomp::Policy { nested: plan.nested });
    seccomp::install(&program).map_err(|e| LaunchError::new("install the system call filter", e))
}

/// Keeps `inherited` for whatever is started, and `own` until then.
fn drop_capabilities(inherited: CapabilitySet, own: CapabilitySet) -> Result<(), LaunchError> {
    let failed = |e| LaunchError::new("drop capabilities", e);
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if !inherited.contains(capability) {
            match rustix::thread::remove_capability_from_bounding_set(capability) {
                // The kernel knows fewer capabilities than fit.
                Ok(()) | Err(rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
    rustix::thread::clear_ambient_capability_set().map_err(failed)?;
    let sets = CapabilitySets { effective: own, permitted: own, inheritable: CapabilitySet::empty() };
    rustix::thread::set_capabilities(None, sets).map_err(failed)
}

/// Lowers a limit, never above what we have.
fn limit(resource: Resource, value: u64) -> Result<(), LaunchError> {
    let have = getrlimit(resource);
    let least = |have: Option<u64>| Some(have.map_or(value, |have| have.min(value)));
    setrlimit(resource, Rlimit { current: least(have.maximum), maximum: least(have.maximum) })
        .map_err(|e| LaunchError::new("set a limit", e))
}
