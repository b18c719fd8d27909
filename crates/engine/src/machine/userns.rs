//! May this user make user namespaces? If not, whose decision is it?

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::DumpableBehavior;
use rustix::thread::NanosleepRelativeResult;
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};

use super::{child, sys};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Userns {
    Allowed,
    Refused { by: Refusal, errno: i32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// `kernel.unprivileged_userns_clone=0` (older Debian).
    Debian,
    /// `user.max_user_namespaces=0` (RHEL's hardening guide).
    Maximum,
    /// `kernel.apparmor_restrict_unprivileged_userns=1` (Ubuntu 23.10 and later).
    AppArmor,
    SeLinux,
    /// A container's filter, or a kernel without user namespaces.
    Unknown,
}

impl Refusal {
    /// The exact command or step that lifts it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Debian => "sudo sysctl -w kernel.unprivileged_userns_clone=1",
            Self::Maximum => "sudo sysctl -w user.max_user_namespaces=15000",
            Self::AppArmor => {
                "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (for all programs), or for zeno \
                 alone: printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile zeno /**/zeno \
                 flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/zeno && \
                 sudo apparmor_parser -r /etc/apparmor.d/zeno"
            }
            Self::SeLinux => {
                "sudo setsebool -P user_namespaces 1, or look for the refusal with `sudo ausearch -m avc`"
            }
            Self::Unknown => {
                "in a container: start it with `--security-opt seccomp=unconfined` or `--privileged`; else use a \
                 kernel with CONFIG_USER_NS=y"
            }
        }
    }
}

/// Makes one, with ids mapped: where AppArmor interferes, it is the mapping that fails. Returns it as well.
pub(super) fn probe() -> (Userns, Option<OwnedFd>) {
    match make() {
        Ok(namespace) => (Userns::Allowed, Some(namespace)),
        Err(errno) => (Userns::Refused { by: refusal(), errno: errno.raw_os_error() }, None),
    }
}

/// A child makes the namespace and stays until its descriptor is taken.
fn make() -> Result<OwnedFd, Errno> {
    let maps = Maps::own();
    let (ready, tell_ready) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let pid = child::fork(|| {
        maps.enter(libc::CLONE_NEWUSER)?;
        rustix::io::write(&tell_ready, b"r")?;
        // The parent ends this much sooner; should the parent die, the child does not stay for ever.
        match rustix::thread::nanosleep(&Timespec { tv_sec: 5, tv_nsec: 0 }) {
            NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => Ok(()),
            NanosleepRelativeResult::Err(errno) => Err(errno),
        }
    })?;
    drop(tell_ready);
    // One byte when the namespace is there, the end of the pipe when the child failed.
    let count = rustix::io::retry_on_intr(|| rustix::io::read(&ready, &mut [0; 1]));
    if count != Ok(1) {
        return Err(child::wait(pid).err().unwrap_or(Errno::PERM));
    }
    let path = format!("/proc/{}/ns/user", pid.as_raw_nonzero());
    let namespace = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
    child::reap(pid)?;
    namespace
}

/// What to write to map the current user to root in a new user namespace; made before the fork.
pub(super) struct Maps {
    uid: CString,
    gid: CString,
}

impl Maps {
    pub(super) fn own() -> Self {
        let line = |id: u32| CString::new(format!("0 {id} 1")).expect("digits and spaces");
        Self {
            uid: line(rustix::process::geteuid().as_raw()),
            gid: line(rustix::process::getegid().as_raw()),
        }
    }

    /// Enters new namespaces, a user namespace among them, as its root. In a forked child only.
    pub(super) fn enter(&self, namespaces: libc::c_int) -> Result<(), Errno> {
        // The maps of a process that may not be dumped, as a hardened daemon's child is, belong to root.
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        sys::unshare(namespaces)?;
        let files = [
            (c"/proc/self/setgroups", c"deny".to_bytes()),
            (c"/proc/self/uid_map", self.uid.to_bytes()),
            (c"/proc/self/gid_map", self.gid.to_bytes()),
        ];
        for (path, text) in files {
            let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(&file, text)?;
        }
        Ok(())
    }
}

fn refusal() -> Refusal {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/user/max_user_namespaces", "0") {
        Refusal::Maximum
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        Refusal::Debian
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Refusal::AppArmor
    } else if is("/sys/fs/selinux/enforce", "1") {
        Refusal::SeLinux
    } else {
        Refusal::Unknown
    }
}
