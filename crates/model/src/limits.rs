//! What a sandbox may use. The defaults that protect a laptop stand here and nowhere else.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Cpus, Size, Span};

/// What the user asked for. A field that is set is enforced hard or the request is refused
/// (unless `best_effort`); a field that is not set takes the default of [`Defaults`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Processors, for example `1.5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Memory, page cache and what it writes to a tmpfs included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Processes and threads at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// Bytes the sandbox may write: all it writes is on a file system of this size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<Size>,
    /// Lifetime of the sandbox from its creation, measured through suspend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// Lifetime after the last command ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// What happens when `ttl` or `idle` is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_expire: Option<OnExpire>,
    /// Accept a limit that this machine cannot enforce; it becomes a caveat.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub best_effort: bool,
}

impl Limits {
    /// These, and where nothing is said, those below.
    #[must_use]
    pub fn over(self, below: &Self) -> Self {
        let Self { cpus, memory, pids, disk, ttl, idle, on_expire, best_effort } = self;
        Self {
            cpus: cpus.or(below.cpus),
            memory: memory.or(below.memory),
            pids: pids.or(below.pids),
            disk: disk.or(below.disk),
            ttl: ttl.or(below.ttl),
            idle: idle.or(below.idle),
            on_expire: on_expire.or(below.on_expire),
            best_effort: best_effort || below.best_effort,
        }
    }

    /// The first limit that is zero: nothing could run under it.
    #[must_use]
    pub fn zero(&self) -> Option<&'static str> {
        let limits = [
            ("cpus", self.cpus == Some(Cpus(0))),
            ("memory", self.memory == Some(Size(0))),
            ("pids", self.pids == Some(0)),
            ("disk", self.disk == Some(Size(0))),
        ];
        limits.into_iter().find_map(|(name, is_zero)| is_zero.then_some(name))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnExpire {
    /// End every process, keep the layers: `zeno start` brings it back.
    Stop,
    /// Remove it.
    Destroy,
}

impl FromStr for OnExpire {
    type Err = BadOnExpire;

    fn from_str(text: &str) -> Result<Self, BadOnExpire> {
        match text {
            "stop" => Ok(Self::Stop),
            "destroy" => Ok(Self::Destroy),
            _ => Err(BadOnExpire { text: text.to_owned() }),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not an action: write `stop` or `destroy`")]
pub struct BadOnExpire {
    text: String,
}

/// Defaults that keep a laptop usable whatever a sandbox does.
#[derive(Clone, Copy, Debug)]
pub struct Defaults;

impl Defaults {
    /// Processes of one user inside one sandbox (RLIMIT_NPROC, which counts per user namespace and costs
    /// nothing at create; `--pids` is the hard, cgroup-counted one).
    pub const PIDS: u32 = 4096;
    /// Of the machine's memory, what all sandboxes of one daemon together may use, in percent.
    pub const SHARED_MEMORY_PERCENT: u64 = 80;
    /// Of the machine's process table, what all sandboxes of one daemon together may use, in percent.
    pub const SHARED_PIDS_PERCENT: u64 = 75;
    /// Bytes written by one sandbox before it is stopped. Watched, so soft.
    pub const DISK: Size = Size(16 << 30);
    /// Open files of one process, or what the caller is allowed if that is less.
    pub const OPEN_FILES: u64 = 65_536;
    /// Bytes of output kept in a sandbox's log; what comes after is streamed, not kept.
    pub const LOG: Size = Size(64 << 20);
    /// Lifetime of a sandbox nobody gave one: forgotten ones do not live for ever.
    pub const TTL: Span = Span::from_secs(7 * 86_400);
    /// How long a snapshot is kept that nobody asked for: of a sandbox whose time was over, or that was forked.
    pub const UNASKED_SNAPSHOT: Span = Span::from_secs(7 * 86_400);
    pub const ON_EXPIRE: OnExpire = OnExpire::Stop;
}
