//! A conversation with a command: its output to ours, our input and signals to it, until it ends.

mod input;
mod stream;

use std::convert::Infallible;

use model::Sandbox;
use model::exec::{FrameKind, Outcome};
use serde::de::DeserializeOwned;
use server::client::ClientError;
use tokio::sync::mpsc;

use crate::api::{Conversation, Incoming, Outgoing};
use crate::failure::Failure;
use crate::invocation::Form;
use crate::progress::Waiting;
use crate::request::Streams;
use crate::terminal::RawMode;

use self::input::Stdin;
use self::stream::Streaming;

/// How a conversation came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Command(Outcome),
    /// The user insisted on leaving: two interrupts within a second.
    Left,
}

/// What the conversation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// A command in a sandbox that is made for it and is gone afterwards.
    Throwaway,
    /// A command in a sandbox that stays.
    Command,
    /// A command that already runs.
    Joined,
}

/// Talks until the end. What is learnt of a sandbox made on the way is put into `sandbox`, however it ends.
pub(crate) async fn talk(
    conversation: Conversation,
    topic: Topic,
    streams: Streams,
    form: Form,
    sandbox: &mut Option<Sandbox>,
) -> Result<Ending, Failure> {
    let (incoming, outgoing) = conversation.split();
    let (controls, control) = mpsc::channel(16);
    let stdin = streams.stdin.then(Stdin::read).transpose().map_err(Failure::Stdin)?;
    let watched = input::Watched::listen(streams.tty.is_some()).map_err(Failure::Signals)?;
    tokio::select! {
        ending = listen(incoming, topic, streams, form, sandbox) => ending,
        () = watched.forward(controls) => Ok(Ending::Left),
        never = speak(outgoing, stdin, control) => match never {},
    }
}

/// What goes to the command besides its input.
#[derive(Debug)]
enum Control {
    Signal(crate::signal::SignalNumber),
    Resize(model::exec::Window),
}

async fn listen(
    mut incoming: Incoming,
    topic: Topic,
    streams: Streams,
    form: Form,
    sandbox: &mut Option<Sandbox>,
) -> Result<Ending, Failure> {
    let mut waiting = Waiting::begin("starting");
    let mut streaming = Streaming::new(form);
    let mut raw = None;
    let mut outcome = None;
    if topic == Topic::Joined {
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
                streaming.started(decode(&payload)?)?;
            }
            FrameKind::Stdout => streaming.stdout(&payload).await?,
            FrameKind::Stderr => streaming.stderr(&payload).await?,
            FrameKind::Ended => {
                let ended: Outcome = decode(&payload)?;
                streaming.ended(&ended)?;
                match topic {
                    Topic::Command | Topic::Joined => return Ok(Ending::Command(ended)),
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
                *sandbox = Some(made);
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

/// Sends until it cannot any more. Whoever listens learns why, so this side only falls silent.
async fn speak(
    mut outgoing: Outgoing,
    mut stdin: Option<Stdin>,
    mut control: mpsc::Receiver<Control>,
) -> Infallible {
    loop {
        let (kind, payload) = tokio::select! {
            Some(control) = control.recv() => control.frame(),
            bytes = next_input(&mut stdin) => (FrameKind::Stdin, bytes),
        };
        if outgoing.send(kind, &payload).await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// The next piece of input; an empty one, once, at its end.
async fn next_input(stdin: &mut Option<Stdin>) -> Vec<u8> {
    match stdin {
        Some(pieces) => {
            let bytes = pieces.next().await;
            if bytes.is_none() {
                *stdin = None;
            }
            bytes.unwrap_or_default()
        }
        None => std::future::pending().await,
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
