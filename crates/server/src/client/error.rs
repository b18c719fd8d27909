//! What can go wrong between a client and the daemon.

use std::io;
use std::path::PathBuf;

use hyper::StatusCode;
use model::Problem;

use crate::frames::FrameError;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The daemon understood and says no.
    #[error(transparent)]
    Problem(#[from] Problem),
    #[error("no daemon: there is no socket `{}`", socket.display())]
    NoDaemon { socket: PathBuf },
    #[error("the socket `{}` belongs to user {owner}, or is no socket; not connecting", socket.display())]
    ForeignSocket { socket: PathBuf, owner: u32 },
    #[error("no daemon listens on `{}`", socket.display())]
    Refused {
        socket: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to connect to `{}`", socket.display())]
    Connect {
        socket: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to open an HTTP connection to the daemon")]
    Handshake(#[source] hyper::Error),
    #[error("not a path of the API")]
    Path(#[source] hyper::http::uri::InvalidUri),
    #[error("failed to write the request as JSON")]
    Encode(#[source] serde_json::Error),
    #[error("failed to send the request")]
    Send(#[source] hyper::Error),
    #[error("the answer broke off")]
    Receive(#[source] hyper::Error),
    #[error("the daemon's answer is not what was expected")]
    Decode(#[source] serde_json::Error),
    #[error("the daemon answered {status} instead of a conversation")]
    NotUpgraded { status: StatusCode },
    #[error("the upgraded connection is not the one that was opened")]
    ForeignUpgrade,
    #[error("the conversation broke off")]
    Frame(#[source] FrameError),
    #[error("failed to send in the conversation")]
    SendFrame(#[source] io::Error),
    #[error("failed to start the daemon `{}`", exe.display())]
    Spawn {
        exe: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to look at the lock `{}`", lock.display())]
    Lock {
        lock: PathBuf,
        #[source]
        source: io::Error,
    },
    /// With what it said last, or the last lines of its log.
    #[error("the daemon did not start{}", if reason.is_empty() { String::new() } else { format!("; it said last:\n{reason}") })]
    NotStarted { reason: String },
    #[error("the daemon was told to end and does not")]
    NotStopped,
}
