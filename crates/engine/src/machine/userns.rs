//! May this user make user namespaces? If not, whose decision is it?

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

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
    /// `kernel.unprivileged_userns_clone=0` (Debian before 11, hardened kernels).
    Debian,
    /// `user.max_user_namespaces=0` (RHEL's hardening guide), or as many as it allows.
    Maximum,
    /// `kernel.apparmor_restrict_unprivileged_userns=1` (Ubuntu's default since 24.04).
    AppArmor,
    /// A policy without `user_namespace create` for the caller's domain.
    SeLinux,
    /// A container's filter, or a kernel without user namespaces.
    Unknown,
}

impl Refusal {
    /// The exact command or step that lifts it.
    #[must_use]
    pub fn remedy(self) -> String {
        match self {
            Self::Debian => setting("kernel.unprivileged_userns_clone=1"),
            Self::Maximum => {
                let allowed = fs::read_to_string(MAXIMUM).ok().and_then(|text| text.trim().parse().ok());
                setting(&format!("user.max_user_namespaces={}", enough(allowed.unwrap_or(0))))
            }
            Self::AppArmor => {
                let program = std::env::current_exe().unwrap_or_default();
                format!(
                    "{}, or for all programs: {}",
                    profile(&program),
                    setting("kernel.apparmor_restrict_unprivileged_userns=0")
                )
            }
            // There is no boolean for it: a module made from the refusal itself allows just this.
            Self::SeLinux => {
                "sudo ausearch -m avc -ts recent | grep user_namespace | audit2allow -M zeno-userns && \
                              sudo semodule -i zeno-userns.pp"
                    .to_owned()
            }
            Self::Unknown => {
                "in a container: start it with `--security-opt seccomp=unconfined --security-opt \
                              apparmor=unconfined`; else use a kernel with CONFIG_USER_NS=y"
                    .to_owned()
            }
        }
    }
}

/// For now, and for after the next start of the machine.
fn setting(line: &str) -> String {
    format!("sudo sysctl -w {line} && echo {line} | sudo tee -a /etc/sysctl.d/60-zeno.conf")
}

/// Some for every sandbox and what else uses them.
fn enough(allowed: u64) -> u64 {
    allowed.saturating_mul(2).max(15_000)
}

/// As Ubuntu ships them for programs that need namespaces. What this program starts from memory keeps the
/// profile: the kernel leaves an unconfined one in place where a name has no other.
fn profile(program: &Path) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
    let name = program.as_os_str().as_encoded_bytes();
    let attached = match program.to_str() {
        Some(path) if program.is_absolute() && name.iter().all(is_plain) => path,
        // Neither the shell nor the profile would take the name as it is.
        _ => "/**/zeno",
    };
    format!(
        "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile zeno {attached} flags=(unconfined) {{\\n  \
         userns,\\n}}\\n' | sudo tee /etc/apparmor.d/zeno && sudo apparmor_parser -r /etc/apparmor.d/zeno"
    )
}

/// Makes one, with ids mapped: where AppArmor interferes, it is the mapping that fails. Returns it as well.
pub(super) fn probe() -> (Userns, Option<OwnedFd>) {
    match make() {
        Ok(namespace) => (Userns::Allowed, Some(namespace)),
        Err(errno) => (Userns::Refused { by: refusal(errno), errno: errno.raw_os_error() }, None),
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

fn refusal(errno: Errno) -> Refusal {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    // ENOSPC is what the kernel says when the number is reached.
    if is(MAXIMUM, "0") || errno == Errno::NOSPC {
        Refusal::Maximum
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        Refusal::Debian
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Refusal::AppArmor
    } else if errno == Errno::ACCESS && is("/sys/fs/selinux/enforce", "1") {
        Refusal::SeLinux
    } else {
        Refusal::Unknown
    }
}

const MAXIMUM: &str = "/proc/sys/user/max_user_namespaces";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_the_program_or_any_of_its_name() {
        let check = |program: &str, attached: &str| {
            let told = profile(Path::new(program));
            assert!(told.contains(&format!("profile zeno {attached} flags=(unconfined) {{")), "{told}");
        };
        check("/usr/local/bin/zeno", "/usr/local/bin/zeno");
        check("/home/o'hara/zeno", "/**/zeno");
        check("/opt/100%/zeno", "/**/zeno");
        check("", "/**/zeno");
    }

    #[test]
    fn a_maximum_is_never_lowered() {
        assert_eq!([0, 100, 62_000].map(enough), [15_000, 15_000, 124_000]);
    }

    #[test]
    fn a_maximum_that_is_reached_is_told_by_the_errno() {
        assert_eq!(refusal(Errno::NOSPC), Refusal::Maximum);
    }
}
