//! A conversation with a command: its output to ours, our input and signals to it, until it ends.

mod input;
mod stream;

use model::exec::{Exec, FrameKind, Outcome, Window};
use model::{ExecId, Sandbox};
use serde::de::DeserializeOwned;
use server::client::ClientError;
use tokio::sync::mpsc;

use crate::api::{Conversation, Incoming, Outgoing};
use crate::failure::Failure;
use crate::invocation::Form;
use crate::keys::{DetachKeys, Typed};
use crate::progress::Waiting;
use crate::request::Streams;
use crate::terminal::{self, Input, RawMode, Terminals};

use self::input::{Stdin, Typing};
use self::stream::Streaming;

/// How a conversation came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Command(Outcome),
    /// The user insisted on leaving: two interrupts within a second.
    Left,
    /// The user left by the keys for it, and the command goes on. It has no number yet if it had not started.
    Detached(Option<ExecId>),
}

/// What the conversation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic<'a> {
    /// A command in a sandbox that is made for it and is gone afterwards, or as soon as nobody is there.
    Throwaway,
    /// A command in a sandbox that stays, and the keys that leave it running.
    Command(&'a DetachKeys),
    /// The same of one that already runs.
    Joined(&'a DetachKeys),
}

impl Topic<'_> {
    /// The keys to look out for. Only a person has keys: from a pipe the same bytes mean themselves.
    fn keys(self, streams: Streams) -> DetachKeys {
        match self {
            Self::Command(keys) | Self::Joined(keys)
                if streams.tty.is_some() && Terminals::look().stdin == Input::Terminal =>
            {
                keys.clone()
            }
            Self::Throwaway | Self::Command(_) | Self::Joined(_) => DetachKeys::none(),
        }
    }
}

/// Talks until the end. What is learnt of a sandbox made on the way is put into `sandbox`, however it ends.
pub(crate) async fn talk(
    conversation: Conversation,
    topic: Topic<'_>,
    streams: Streams,
    form: Form,
    sandbox: &mut Option<Sandbox>,
) -> Result<Ending, Failure> {
    let (incoming, outgoing) = conversation.split();
    let (controls, control) = mpsc::channel(16);
    let stdin = streams.stdin.then(Stdin::read).transpose().map_err(Failure::Stdin)?;
    let watched = input::Watched::listen(streams.tty.is_some()).map_err(Failure::Signals)?;
    if let (Topic::Joined(_), Some(_)) = (topic, streams.tty) {
        fit_window(&controls);
    }
    let typing = Typing::new(stdin, topic.keys(streams));
    let mut heard = Heard { sandbox, exec: None };
    tokio::select! {
        ending = listen(incoming, topic, streams, form, &mut heard) => ending,
        () = watched.forward(controls) => Ok(Ending::Left),
        () = speak(outgoing, typing, control) => Ok(Ending::Detached(heard.exec)),
    }
}

/// Gives the command the size of our terminal. A size of its own first: only one that changes makes a program draw its
/// screen again, and ours is empty.
fn fit_window(controls: &mpsc::Sender<Control>) {
    let Some(window) = terminal::window() else { return };
    let other = Window { rows: window.rows.saturating_add(1), ..window };
    for window in [other, window] {
        controls
            .try_send(Control::Resize(window))
            .expect("the queue is empty yet, and its other end is held");
    }
}

/// What is learnt on the way, however it ends.
struct Heard<'a> {
    /// The sandbox that was made for it.
    sandbox: &'a mut Option<Sandbox>,
    /// The number of the command.
    exec: Option<ExecId>,
}

/// What goes to the command besides its input.
#[derive(Debug)]
enum Control {
    Signal(crate::signal::SignalNumber),
    Resize(Window),
}

async fn listen(
    mut incoming: Incoming,
    topic: Topic<'_>,
    streams: Streams,
    form: Form,
    heard: &mut Heard<'_>,
) -> Result<Ending, Failure> {
    let mut waiting = Waiting::begin("starting");
    let mut streaming = Streaming::new(form);
    let mut raw = None;
    let mut outcome = None;
    if let Topic::Joined(_) = topic {
        waiting.end();
        raw = raw_mode(streams)?;
    }
    while let Some((kind, payload)) = waiting.watch(incoming.next()).await? {
        if !matches!(kind, FrameKind::Progress) {
            waiting.end();
        }
        match kind {
            FrameKind::Progress => waiting.report(&decode(&payload)?),
            FrameKind::Started => {
                // Not earlier: until then an interrupt from the keyboard has to reach zeno itself.
                if raw.is_none() {
                    raw = raw_mode(streams)?;
                }
                let exec: Exec = decode(&payload)?;
                heard.exec = Some(exec.id);
                streaming.started(exec)?;
            }
            FrameKind::Stdout => streaming.stdout(&payload).await?,
            FrameKind::Stderr => streaming.stderr(&payload).await?,
            FrameKind::Ended => {
                let ended: Outcome = decode(&payload)?;
                streaming.ended(&ended)?;
                match topic {
                    Topic::Command(_) | Topic::Joined(_) => return Ok(Ending::Command(ended)),
                    Topic::Throwaway => outcome = Some(ended),
                }
            }
            FrameKind::Removed => {
                let kept = if payload.is_empty() { None } else { Some(decode(&payload)?) };
                streaming.removed(kept)?;
                break;
            }
            FrameKind::Problem => return Err(ClientError::Problem(decode(&payload)?).into()),
            FrameKind::Answer => {
                let made: Sandbox = decode(&payload)?;
                streaming.sandbox(&made)?;
                *heard.sandbox = Some(made);
            }
            FrameKind::Stdin | FrameKind::Resize | FrameKind::Signal | FrameKind::Request => {
                return Err(Failure::WrongFrame);
            }
        }
    }
    outcome.map(Ending::Command).ok_or(Failure::BrokenOff)
}

fn raw_mode(streams: Streams) -> Result<Option<RawMode<'static>>, Failure> {
    if streams.tty.is_some() { RawMode::of_stdin().map_err(Failure::Terminal) } else { Ok(None) }
}

/// Sends until the user leaves. When it cannot any more, whoever listens learns why, so this side only falls silent.
async fn speak(mut outgoing: Outgoing, mut typing: Typing, mut control: mpsc::Receiver<Control>) {
    loop {
        let (frame, leaves) = tokio::select! {
            // In this order, so that what is typed first meets a window that fits.
            biased;
            Some(control) = control.recv() => (Some(control.frame()), false),
            typed = typing.next() => match typed {
                Typed::On(bytes) => (Some((FrameKind::Stdin, bytes)), false),
                Typed::Leave(bytes) => ((!bytes.is_empty()).then_some((FrameKind::Stdin, bytes)), true),
            },
        };
        if let Some((kind, payload)) = frame
            && outgoing.send(kind, &payload).await.is_err()
        {
            return std::future::pending().await;
        }
        if leaves {
            return;
        }
    }
}

impl Control {
    fn frame(&self) -> (FrameKind, Vec<u8>) {
        let encoded = |result: serde_json::Result<Vec<u8>>| result.expect("numbers can be written as JSON");
        match self {
            Self::Signal(signal) => (FrameKind::Signal, encoded(serde_json::to_vec(signal))),
            Self::Resize(window) => (FrameKind::Resize, encoded(serde_json::to_vec(window))),
        }
    }
}

fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(payload).map_err(Failure::Decode)
}
