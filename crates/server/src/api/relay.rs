//! Between a sandbox's init and a caller. Init shares its user with whatever runs in the sandbox, so it is
//! treated as hostile: a frame passes only if its kind may come from there, and what is JSON is read as its
//! type and written anew.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bytes::Bytes;
use control::{Hindsight, Keep};
use model::exec::{Exec, FrameKind, Outcome, Window};
use model::snapshot::SnapshotReason;
use model::{Code, Problem};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::Stop;
use super::peer::{Incoming, Message, Out};
use crate::frames::{FrameError, FrameReader, FrameWriter};

/// How a conversation came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The command ended, and the caller has been told.
    Ended(Keep),
    /// It could not go on, and the caller has been told; nothing may follow.
    Failed,
    /// The caller left or broke the protocol.
    CallerGone,
    /// The daemon ends; the command does not.
    Stopping,
}

pub(super) async fn relay(
    init: UnixStream,
    hindsight: &Hindsight,
    out: &mut Out,
    incoming: &mut Incoming,
    stop: &Stop,
) -> End {
    let (read, write) = init.into_split();
    let mut inwards = std::pin::pin!(inwards(incoming, FrameWriter::new(write)));
    let end = tokio::select! {
        end = outwards(FrameReader::new(read), hindsight, out, stop) => end,
        () = &mut inwards => return End::CallerGone,
    };
    // Output that nobody takes any more may be noticed before what the caller said last is read.
    if end == End::CallerGone && tokio::time::timeout(LAST_WORDS, inwards).await.is_err() {
        tracing::debug!("the caller left, but its connection stays");
    }
    end
}

async fn outwards(
    mut init: FrameReader<OwnedReadHalf>,
    hindsight: &Hindsight,
    out: &mut Out,
    stop: &Stop,
) -> End {
    let mut started = false;
    loop {
        let frame = tokio::select! {
            frame = init.next() => frame,
            () = stop.requested() => return End::Stopping,
        };
        let message = match from_init(frame, started) {
            Ok(Message::Ended(outcome)) => Message::Ended(hindsight.judge(outcome)),
            Ok(message) => message,
            Err(violation) => {
                tracing::warn!(error = &violation as &dyn std::error::Error, "init broke the protocol");
                Message::Problem(Problem::from_error(Code::Internal, &violation))
            }
        };
        started |= matches!(message, Message::Started(_));
        let end = match &message {
            Message::Ended(outcome) => Some(End::Ended(worth_keeping(outcome))),
            Message::Problem(_) => Some(End::Failed),
            Message::Progress(_)
            | Message::Sandbox(_)
            | Message::Started(_)
            | Message::Stdout(_)
            | Message::Stderr(_)
            | Message::Removed(_) => None,
        };
        if let Err(gone) = out.say(message).await {
            tracing::debug!(error = &gone as &dyn std::error::Error, "the caller left");
            return End::CallerGone;
        }
        if let Some(end) = end {
            return end;
        }
    }
}

/// Nobody wanted to lose what a command wrote that was not done.
pub(crate) fn worth_keeping(outcome: &Outcome) -> Keep {
    match outcome {
        Outcome::TimedOut => Keep::Because(SnapshotReason::Timeout),
        Outcome::OutOfMemory { .. } => Keep::Because(SnapshotReason::OutOfMemory),
        Outcome::SandboxEnded { .. } => Keep::IfExpired,
        Outcome::Exited { .. }
        | Outcome::Signaled { .. }
        | Outcome::OutputLimit
        | Outcome::NotStarted { .. } => Keep::Nothing,
    }
}

/// Returns when the caller has left or said what it may not.
async fn inwards(incoming: &mut Incoming, mut init: FrameWriter<OwnedWriteHalf>) {
    let (reader, hangup) = match incoming {
        Incoming::Frames { reader, hangup } => (reader, &*hangup),
        Incoming::Lines(sender) => return sender.closed().await,
    };
    let mut init_listens = true;
    loop {
        let passed = match reader.next().await {
            Ok(Some((kind, payload))) => to_init(kind, payload),
            Ok(None) => return,
            Err(error) => Err(Violation::Frame(error)),
        };
        let (kind, payload) = match passed {
            Ok(frame) => frame,
            Err(violation) => {
                tracing::debug!(
                    error = &violation as &dyn std::error::Error,
                    "the caller broke the protocol"
                );
                return;
            }
        };
        // A command that closed its input is no reason to end: its output still comes.
        if init_listens {
            match send_unless_hung_up(&mut init, kind, &payload, hangup.as_fd()).await {
                Sent::Whole => {}
                Sent::NobodyListens => init_listens = false,
                Sent::CallerGone => return,
            }
        }
    }
}

enum Sent {
    Whole,
    NobodyListens,
    CallerGone,
}

/// While a command does not read its input, the caller's frames are not read either, so that its leaving has
/// to be looked for.
async fn send_unless_hung_up(
    init: &mut FrameWriter<OwnedWriteHalf>,
    kind: FrameKind,
    payload: &[u8],
    caller: BorrowedFd<'_>,
) -> Sent {
    let mut sending = std::pin::pin!(init.send(kind, payload));
    loop {
        match tokio::time::timeout(HANGUP_CHECK, &mut sending).await {
            Ok(Ok(())) => return Sent::Whole,
            Ok(Err(error)) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "init takes no more input");
                return Sent::NobodyListens;
            }
            Err(_still_waiting) if is_hung_up(caller) => return Sent::CallerGone,
            Err(_still_waiting) => {}
        }
    }
}

fn is_hung_up(descriptor: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::RDHUP)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(_) => polled[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR),
        Err(errno) => {
            tracing::debug!(error = &errno as &dyn std::error::Error, "poll for a hang-up");
            false
        }
    }
}

/// What init may say in a command's conversation.
fn from_init(
    frame: Result<Option<(FrameKind, Bytes)>, FrameError>,
    started: bool,
) -> Result<Message, Violation> {
    let Some((kind, payload)) = frame.map_err(Violation::Frame)? else {
        let reason = "its first process closed the conversation".to_owned();
        return Ok(Message::Ended(Outcome::SandboxEnded { reason }));
    };
    match kind {
        FrameKind::Stdout => Ok(Message::Stdout(payload)),
        FrameKind::Stderr => Ok(Message::Stderr(payload)),
        FrameKind::Started if !started => Ok(Message::Started(typed::<Exec>(kind, &payload)?)),
        FrameKind::Ended => Ok(Message::Ended(plain_outcome(typed(kind, &payload)?))),
        FrameKind::Problem => Ok(Message::Problem(plain_problem(&typed(kind, &payload)?))),
        FrameKind::Started
        | FrameKind::Stdin
        | FrameKind::Resize
        | FrameKind::Signal
        | FrameKind::Request
        | FrameKind::Progress
        | FrameKind::Removed
        | FrameKind::Answer => Err(Violation::Kind { kind }),
    }
}

/// What a caller may say.
fn to_init(kind: FrameKind, payload: Bytes) -> Result<(FrameKind, Bytes), Violation> {
    match kind {
        FrameKind::Stdin => Ok((kind, payload)),
        FrameKind::Resize => Ok((kind, json(&typed::<Window>(kind, &payload)?))),
        FrameKind::Signal => match typed::<i32>(kind, &payload)? {
            signal @ 1..=LAST_SIGNAL => Ok((kind, json(&signal))),
            signal => Err(Violation::Signal { signal }),
        },
        FrameKind::Request
        | FrameKind::Stdout
        | FrameKind::Stderr
        | FrameKind::Started
        | FrameKind::Ended
        | FrameKind::Progress
        | FrameKind::Problem
        | FrameKind::Removed
        | FrameKind::Answer => Err(Violation::Kind { kind }),
    }
}

pub(crate) fn typed<T: DeserializeOwned>(kind: FrameKind, payload: &[u8]) -> Result<T, Violation> {
    serde_json::from_slice(payload).map_err(|source| Violation::Json { kind, source })
}

fn json<T: serde::Serialize>(value: &T) -> Bytes {
    serde_json::to_vec(value).expect("wire types cannot fail to serialise").into()
}

pub(crate) fn plain_outcome(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::NotStarted { code, reason } => Outcome::NotStarted { code, reason: plain(&reason) },
        Outcome::SandboxEnded { reason } => Outcome::SandboxEnded { reason: plain(&reason) },
        // Init cannot know; the daemon asks the kernel.
        Outcome::OutOfMemory { code, .. } => Outcome::Exited { code },
        Outcome::Exited { .. } | Outcome::Signaled { .. } | Outcome::TimedOut | Outcome::OutputLimit => {
            outcome
        }
    }
}

/// A problem as init tells it, without the hints: those are commands people run.
pub(crate) fn plain_problem(problem: &Problem) -> Problem {
    let causes = problem.causes.iter().take(MAX_CAUSES).map(|cause| plain(cause)).collect();
    Problem { causes, ..Problem::new(problem.code, plain(&problem.detail)) }
}

/// Text a terminal can show without obeying it.
fn plain(text: &str) -> String {
    text.chars()
        .take(MAX_TEXT)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Violation {
    #[error("the sandbox's first process sent a frame that is not one")]
    Frame(#[source] FrameError),
    #[error("a frame of kind {kind:?} may not come here")]
    Kind { kind: FrameKind },
    #[error("a frame of kind {kind:?} does not hold what it should")]
    Json {
        kind: FrameKind,
        #[source]
        source: serde_json::Error,
    },
    #[error("there is no signal {signal}")]
    Signal { signal: i32 },
}

/// SIGRTMAX on Linux.
pub(super) const LAST_SIGNAL: i32 = 64;
/// How long a caller that takes no more may still be talking.
const LAST_WORDS: Duration = Duration::from_secs(1);
const HANGUP_CHECK: Duration = Duration::from_millis(250);
const MAX_TEXT: usize = 4096;
const MAX_CAUSES: usize = 16;
