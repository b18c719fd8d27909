//! What the daemon asks of init. Each conversation opens with one `Request` frame; see [`model::exec::FrameKind`].

use std::net::SocketAddr;

use model::ExecId;
use model::exec::{Text, Variable, Window};
use model::files::FileOp;
use serde::{Deserialize, Serialize};

/// Grows with every addition. Nothing is ever taken away or given another meaning.
pub const VERSION: u32 = 6;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    /// Makes a sandbox of what was only ready to become one. Said once, first, and followed by another request.
    Begin(Terms),
    /// Answered with [`Pong`].
    Ping,
    /// Start a command and stay with it: `Started`, output, `Ended`.
    Exec(Box<Command>),
    /// Join a command: output from now on, `Ended`.
    Attach { exec: ExecId },
    /// Answered with a list of [`model::exec::Exec`].
    Execs,
    /// Signal a command's process group. Answered with null.
    Signal { exec: ExecId, signal: i32 },
    /// End everything at this time on the boot clock. Answered with null.
    Deadline { at: Option<u64> },
    /// Stop every process but init, so that the clock goes on. Answered with null when all stand still; if one does not,
    /// with a problem, and all go on.
    Freeze,
    /// Let those go on that `Freeze` stopped, if it did. Answered with null.
    Thaw,
    /// Answered with a number.
    Processes,
    /// The number of the last command. Answered with a number.
    LastExec,
    /// Bytes of memory that the largest process used, of all that have ended. Answered with a number.
    LargestProcess,
    /// Bytes in use on the file system that takes what the sandbox writes. Answered with a number.
    DiskUse,
    /// The sockets of the gateway. Answered with null, and the descriptors of [`crate::gateway::Sockets`] beside it.
    Gateway,
    /// A connection to this port of the sandbox's own loopback. Answered with null, and the socket beside it, on which the
    /// connection has only begun.
    Connect { to: SocketAddr },
    /// Bytes of files that processes have deleted and still hold open. Answered with a number.
    Unlinked,
    /// What the processes use. Answered with [`Used`].
    Usage,
    /// Work on a file as this user. See [`FileOp`].
    File {
        user: Option<String>,
        file: FileOp,
        /// The home of whoever works where no user is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        home: Option<Text>,
    },
}

/// What the processes of a sandbox use, init not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// Of the processor, in nanoseconds, by those that have ended too.
    pub cpu: u64,
    /// Bytes of memory; what they share counts for each.
    pub memory: u64,
}

/// How long a sandbox lives.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Terms {
    /// On the boot clock, in nanoseconds.
    pub deadline: Option<u64>,
    /// Nanoseconds without a command before it ends by itself.
    pub idle: Option<u64>,
    /// When its first command ends, everyone inside does, before that end is told.
    #[serde(default)]
    pub throwaway: bool,
    /// The number of the last command that the sandbox had before: numbers go on from there.
    #[serde(default)]
    pub last_exec: u32,
}

/// A command with everything decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Command {
    pub argv: Vec<Text>,
    pub env: Vec<Variable>,
    pub cwd: Text,
    pub user: Option<String>,
    pub umask: Option<u32>,
    pub tty: Option<Window>,
    pub stdin: bool,
    /// Nanoseconds.
    pub timeout: Option<u64>,
    pub output_limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Pong {
    pub version: u32,
}
