//! Small facts read from `/proc` and asked of the kernel.

use std::fs;

use rustix::process::Resource;
use serde::{Deserialize, Serialize};

/// With whose rights sandboxes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rights {
    /// Root with CAP_SYS_ADMIN.
    Root,
    /// Anyone else; in an unprivileged container that may be user 0.
    User { uid: u32, gid: u32 },
}

impl Rights {
    #[must_use]
    pub fn probe() -> Self {
        const SYS_ADMIN: u32 = 21;
        let status = fs::read_to_string("/proc/thread-self/status");
        let effective = status.ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        });
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if uid.is_root() && effective.is_some_and(|mask| mask & 1 << SYS_ADMIN != 0) {
            Self::Root
        } else {
            Self::User { uid: uid.as_raw(), gid: gid.as_raw() }
        }
    }
}

/// How many inotify instances and watches one user may have; `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inotify {
    pub instances: Option<u64>,
    pub watches: Option<u64>,
}

impl Inotify {
    pub(super) fn probe() -> Self {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self { instances: number("max_user_instances"), watches: number("max_user_watches") }
    }
}

/// How far one process may raise its limit of open files.
pub(super) fn open_files() -> u64 {
    rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)
}

pub(super) fn boot_clock() -> Option<u64> {
    let time = rustix::time::clock_gettime_dynamic(rustix::time::DynamicClockId::Boottime).ok()?;
    u64::try_from(time.tv_sec).ok()
}
