//! From the lists to one answer per system call number.

use std::collections::BTreeMap;

use libc::c_long;

use super::Policy;
use super::calls::{ALLOWED, ALLOWED_HERE, ALLOWED_NEW, KERNEL, KERNEL_HERE, MOUNTING};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Allow,
    Refuse(Errno),
    /// It depends on one argument.
    Ask(Question),
}

/// Looks at the low 32 bits of argument `argument`, which are all that the kernel looks at for these calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) argument: u32,
    pub(super) test: Test,
    pub(super) refusal: Errno,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// Refuse if any of these bits is set.
    NoBits(u32),
    /// Refuse these values.
    NoneOf(&'static [u32]),
    /// Refuse every other value.
    OnlyOf(&'static [u32]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Errno {
    Perm = libc::EPERM as u16,
    NoSys = libc::ENOSYS as u16,
    NoFamily = libc::EAFNOSUPPORT as u16,
}

/// Every call that is known, by number; what is not in here is answered with ENOSYS.
pub(super) fn rules(policy: Policy) -> BTreeMap<u32, Answer> {
    let mut rules = BTreeMap::new();
    let mut put = |calls: &[c_long], answer| {
        for call in calls {
            rules.insert(u32::try_from(*call).expect("system call numbers are small"), answer);
        }
    };
    let refuse = Answer::Refuse(Errno::Perm);
    put(ALLOWED, Answer::Allow);
    put(ALLOWED_NEW, Answer::Allow);
    put(ALLOWED_HERE, Answer::Allow);
    put(KERNEL, refuse);
    put(KERNEL_HERE, refuse);
    put(&[libc::SYS_ioctl], Answer::Ask(TERMINAL));
    put(&[libc::SYS_prlimit64], Answer::Ask(INIT));
    put(&[libc::SYS_socket, libc::SYS_socketpair], Answer::Ask(FAMILY));
    if policy.nested {
        put(MOUNTING, Answer::Allow);
        put(&[libc::SYS_clone, libc::SYS_clone3, libc::SYS_setns, libc::SYS_unshare], Answer::Allow);
    } else {
        put(MOUNTING, refuse);
        put(&[libc::SYS_setns], refuse);
        put(&[libc::SYS_clone], Answer::Ask(CLONE));
        put(&[libc::SYS_unshare], Answer::Ask(UNSHARE));
        // libc falls back to `clone` on ENOSYS only.
        put(&[libc::SYS_clone3], Answer::Refuse(Errno::NoSys));
    }
    rules
}

/// Typing into a terminal one did not open, and the virtual console's own way to do the same.
const TERMINAL: Question = Question {
    argument: 1,
    test: Test::NoneOf(&[libc::TIOCSTI as u32, libc::TIOCLINUX as u32]),
    refusal: Errno::Perm,
};

/// Init has the workload's user, so the kernel would let the workload set init's limits: no file size, no log.
const INIT: Question = Question { argument: 0, test: Test::NoneOf(&[1]), refusal: Errno::Perm };

/// The families programs use. The others are rarely exercised kernel code, and AF_VSOCK leads out of the
/// network namespace to the hypervisor.
const FAMILY: Question = Question {
    argument: 0,
    test: Test::OnlyOf(&[
        libc::AF_UNIX as u32,
        libc::AF_INET as u32,
        libc::AF_INET6 as u32,
        libc::AF_NETLINK as u32,
    ]),
    refusal: Errno::NoFamily,
};

/// In `clone` the lowest byte is the exit signal, so CLONE_NEWTIME cannot be asked for there.
const CLONE: Question = Question { argument: 0, test: Test::NoBits(NAMESPACES), refusal: Errno::Perm };

const UNSHARE: Question =
    Question { argument: 0, test: Test::NoBits(NAMESPACES | CLONE_NEWTIME), refusal: Errno::Perm };

const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

const CLONE_NEWTIME: u32 = 0x80;
