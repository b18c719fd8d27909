//! A command of a stage, on the real machine, from its start to its end, with all that it writes.
//!
//! Dropped half-way, it is ended, and all that it started.

use std::path::Path;
use std::time::{Duration, Instant};

use engine::errand::{self, ErrandError, Order};
use model::exec::Outcome;
use model::units::Span;
use model::{Code, Problem};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::task::JoinError;

use crate::command::Ran;
use crate::log::{Log, LogError, Stream};

/// Runs it to its end, or until its time is over, or `left` says that nobody waits for it any more.
pub(super) async fn run(
    order: Order,
    timeout: Span,
    log: &Path,
    left: impl Future<Output = ()>,
) -> Result<(Ran, Heard), StageError> {
    let began = Instant::now();
    let mut log = Log::create(log).await.map_err(StageError::Log)?;
    let started = tokio::task::spawn_blocking(move || errand::start(&order)).await;
    let started = started.map_err(StageError::Lost)?.map_err(StageError::Start)?;
    let mut process = started.process;
    // In a thread of its own, so that it is reaped even if this is dropped.
    let reaped = tokio::task::spawn_blocking(move || process.wait());
    started.conversation.set_nonblocking(true).map_err(StageError::Connect)?;
    let mut conversation = UnixStream::from_std(started.conversation).map_err(StageError::Connect)?;
    let mut output = Output {
        out: Some(pipe::Receiver::from_owned_fd(started.stdout.into()).map_err(StageError::Connect)?),
        err: Some(pipe::Receiver::from_owned_fd(started.stderr.into()).map_err(StageError::Connect)?),
    };
    let (mut said, mut left) = (Vec::new(), std::pin::pin!(left));
    let mut over = std::pin::pin!(tokio::time::sleep(timeout.0));
    let (exit, heard) = loop {
        tokio::select! {
            heard = conversation.read_buf(&mut said) => {
                let more = heard.map_err(StageError::Hear)?;
                if more == 0 || said.ends_with(b"\n") {
                    break (outcome(&said)?, Heard::Out);
                }
            }
            Some((stream, piece)) = output.next() => {
                log.take(stream, &piece).await.map_err(StageError::Log)?;
            }
            () = &mut over => break (Outcome::TimedOut, Heard::Out),
            () = &mut left => break (Outcome::Signaled { signal: KILL }, Heard::Left),
        }
    };
    // Closing it ends what still runs, where the command did not end by itself. Whoever comes next must not meet it.
    drop(conversation);
    match tokio::time::timeout(GRACE, reaped).await {
        Ok(reaped) => drop(reaped.map_err(StageError::Lost)?.map_err(StageError::Reap)?),
        Err(_elapsed) => tracing::warn!("a command of a stage does not end"),
    }
    // What it left running may hold its output for ever.
    while let Ok(Some((stream, piece))) = tokio::time::timeout(LAST_WORDS, output.next()).await {
        log.take(stream, &piece).await.map_err(StageError::Log)?;
    }
    let duration = began.elapsed();
    let written = log.finish().await.map_err(StageError::Log)?;
    Ok((Ran { exit, duration, written }, heard))
}

/// How long a command was listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Until its end, or until its time was over.
    Out,
    /// Until nobody waited for it any more.
    Left,
}

/// What a command writes, as long as somebody holds the other ends.
struct Output {
    out: Option<pipe::Receiver>,
    err: Option<pipe::Receiver>,
}

impl Output {
    /// `None`: there will be no more.
    async fn next(&mut self) -> Option<(Stream, Vec<u8>)> {
        loop {
            let (stream, piece) = tokio::select! {
                piece = piece(self.out.as_mut()), if self.out.is_some() => (Stream::Out, piece),
                piece = piece(self.err.as_mut()), if self.err.is_some() => (Stream::Err, piece),
                else => return None,
            };
            match (piece, stream) {
                (Some(piece), stream) => return Some((stream, piece)),
                (None, Stream::Out) => self.out = None,
                (None, Stream::Err) => self.err = None,
            }
        }
    }
}

/// `None`: it is closed, or cannot be read any more, which comes to the same.
async fn piece(pipe: Option<&mut pipe::Receiver>) -> Option<Vec<u8>> {
    let mut piece = Vec::with_capacity(PIECE);
    match pipe?.read_buf(&mut piece).await {
        Ok(0) => None,
        Ok(_) => Some(piece),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to read what a command wrote");
            None
        }
    }
}

fn outcome(said: &[u8]) -> Result<Outcome, StageError> {
    if said.is_empty() {
        let reason = "what kept it was killed before it ended".to_owned();
        return Ok(Outcome::NotStarted { code: 125, reason });
    }
    serde_json::from_slice(said).map_err(StageError::Garbled)
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StageError {
    #[error("could not keep what a command of a stage wrote")]
    Log(#[source] LogError),
    #[error("lost track of a command of a stage")]
    Lost(#[source] JoinError),
    #[error("could not run a command of a stage")]
    Start(#[source] ErrandError),
    #[error("could not listen to a command of a stage")]
    Connect(#[source] std::io::Error),
    #[error("could not hear how a command of a stage ended")]
    Hear(#[source] std::io::Error),
    #[error("it was not said how a command of a stage ended")]
    Garbled(#[source] serde_json::Error),
    #[error("could not wait for the end of a command of a stage")]
    Reap(#[source] std::io::Error),
}

impl From<StageError> for Problem {
    fn from(error: StageError) -> Self {
        Self::from_error(Code::Internal, &error)
    }
}

/// SIGKILL has this number everywhere.
const KILL: i32 = 9;
/// How long what a command started may take to be gone.
const GRACE: Duration = Duration::from_secs(15);
/// What a command wrote before it ended is there already; this is for a busy machine.
const LAST_WORDS: Duration = Duration::from_millis(300);
const PIECE: usize = 64 << 10;
