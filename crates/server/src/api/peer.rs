//! The caller's end of a conversation: frames on an upgraded connection, or lines in a response body.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use model::exec::{Exec, FrameHead, FrameKind, Outcome, Progress};
use model::{Code, Problem, Sandbox, Snapshot};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::Wire;
use super::refusal::Refusal;
use super::route::LINES;
use crate::frames::{FrameReader, FrameWriter};
use crate::line::{self, Line, Output};

/// How a caller wants to be talked to.
#[derive(Debug)]
pub(super) enum Caller {
    Frames(OnUpgrade),
    Lines,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Ok(upgrade_to(parts, crate::FRAMES_PROTOCOL)?.map_or(Self::Lines, Self::Frames))
    }
}

/// The wish that this connection speak MCP from now on.
#[derive(Debug)]
pub(crate) struct ToMcp(pub(crate) OnUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for ToMcp {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let protocol = crate::MCP_PROTOCOL;
        let missing =
            || Refusal::bad_request(format!("this is answered after an upgrade to `{protocol}` only"));
        upgrade_to(parts, protocol)?.map(Self).ok_or_else(missing)
    }
}

/// The connection, if it is to speak this from now on.
fn upgrade_to(parts: &mut Parts, protocol: &str) -> Result<Option<OnUpgrade>, Refusal> {
    if !has_token(&parts.headers, &CONNECTION, "upgrade") || !has_token(&parts.headers, &UPGRADE, protocol) {
        return Ok(None);
    }
    match parts.extensions.remove::<OnUpgrade>() {
        Some(upgrade) => Ok(Some(upgrade)),
        None => Err(Refusal::bad_request("this connection cannot be upgraded")),
    }
}

/// A connection that was upgraded, and what has been read of it already.
pub(crate) async fn taken(upgrade: OnUpgrade) -> Result<(Wire, Bytes), NoPeer> {
    let upgraded = upgrade.await.map_err(NoPeer::Upgrade)?;
    match upgraded.downcast::<TokioIo<Wire>>() {
        Ok(parts) => Ok((parts.io.into_inner(), parts.read_buf)),
        Err(_foreign) => Err(NoPeer::Foreign),
    }
}

impl Caller {
    /// The response that opens the conversation, and the end of it that is still to be opened.
    pub(super) fn answer(self) -> (Response, Pending) {
        match self {
            Self::Frames(upgrade) => {
                let headers = [(CONNECTION, "upgrade"), (UPGRADE, crate::FRAMES_PROTOCOL)];
                ((StatusCode::SWITCHING_PROTOCOLS, headers).into_response(), Pending::Frames(upgrade))
            }
            Self::Lines => {
                let (sender, receiver) = mpsc::channel(QUEUE);
                (lines(receiver), Pending::Lines(sender))
            }
        }
    }
}

/// A response of lines that come from a queue and end when the last sender is dropped.
pub(super) fn lines(receiver: mpsc::Receiver<Bytes>) -> Response {
    let lines = stream::unfold(receiver, async |mut receiver| {
        let line = receiver.recv().await?;
        Some((Ok::<_, Infallible>(line), receiver))
    });
    ([(CONTENT_TYPE, LINES)], Body::from_stream(lines)).into_response()
}

#[derive(Debug)]
pub(super) enum Pending {
    Frames(OnUpgrade),
    Lines(mpsc::Sender<Bytes>),
}

impl Pending {
    /// Waits until the caller's connection is ours.
    pub(super) async fn open(self) -> Result<(Out, Incoming), NoPeer> {
        let upgrade = match self {
            Self::Frames(upgrade) => upgrade,
            Self::Lines(sender) => return Ok((Out::Lines(sender.clone()), Incoming::Lines(sender))),
        };
        let (wire, already) = taken(upgrade).await?;
        let hangup = wire.as_fd().try_clone_to_owned().map_err(NoPeer::Clone)?;
        let (read, write) = tokio::io::split(wire);
        let reader = FrameReader::after(read, already);
        Ok((Out::Frames(FrameWriter::new(write)), Incoming::Frames { reader, hangup }))
    }
}

/// Where messages to the caller go.
#[derive(Debug)]
pub(super) enum Out {
    Frames(FrameWriter<WriteHalf<Wire>>),
    Lines(mpsc::Sender<Bytes>),
}

impl Out {
    pub(super) async fn say(&mut self, message: Message) -> Result<(), Gone> {
        match self {
            Self::Frames(writer) => {
                let (kind, payload) = message.frame();
                writer.send(kind, &payload).await.map_err(Gone::Write)
            }
            Self::Lines(sender) => sender.send(line::encode(&message.line())).await.map_err(Gone::Queue),
        }
    }
}

/// Where frames from the caller come from. Who gets lines says nothing, but can leave.
#[derive(Debug)]
pub(super) enum Incoming {
    Frames { reader: FrameReader<ReadHalf<Wire>>, hangup: OwnedFd },
    Lines(mpsc::Sender<Bytes>),
}

/// All that is ever said to a caller.
#[derive(Debug)]
pub(super) enum Message {
    Progress(Progress),
    Sandbox(Box<Sandbox>),
    Started(Exec),
    Stdout(Bytes),
    Stderr(Bytes),
    Ended(Outcome),
    Problem(Problem),
    Removed(Option<Box<Snapshot>>),
}

impl Message {
    fn frame(&self) -> (FrameKind, Bytes) {
        let (kind, json) = match self {
            Self::Stdout(bytes) => return (FrameKind::Stdout, bytes.clone()),
            Self::Stderr(bytes) => return (FrameKind::Stderr, bytes.clone()),
            Self::Removed(None) => return (FrameKind::Removed, Bytes::new()),
            Self::Removed(Some(snapshot)) => (FrameKind::Removed, serde_json::to_vec(snapshot)),
            Self::Progress(progress) => (FrameKind::Progress, serde_json::to_vec(progress)),
            Self::Sandbox(sandbox) => (FrameKind::Answer, serde_json::to_vec(sandbox)),
            Self::Started(exec) => (FrameKind::Started, serde_json::to_vec(exec)),
            Self::Ended(outcome) => (FrameKind::Ended, serde_json::to_vec(outcome)),
            Self::Problem(problem) => (FrameKind::Problem, serde_json::to_vec(problem)),
        };
        let json = json.expect("wire types have string keys and cannot fail to serialise");
        // Written out again, an argument list can grow: control characters take six bytes each.
        if json.len() > FrameHead::MAX as usize {
            let problem = Problem::new(Code::Internal, "the answer is larger than a frame can be");
            return Self::Problem(problem).frame();
        }
        (kind, json.into())
    }

    fn line(self) -> Line {
        match self {
            Self::Progress(progress) => Line::Progress { progress },
            Self::Sandbox(sandbox) => Line::Sandbox { sandbox },
            Self::Started(exec) => Line::Started { exec },
            Self::Stdout(bytes) => Line::Stdout(Output::of(&bytes)),
            Self::Stderr(bytes) => Line::Stderr(Output::of(&bytes)),
            Self::Ended(outcome) => Line::Ended { outcome },
            Self::Problem(problem) => Line::Problem { problem },
            Self::Removed(snapshot) => Line::Removed { snapshot },
        }
    }
}

/// The caller could not be reached after it had been answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPeer {
    #[error("the connection was not upgraded")]
    Upgrade(#[source] hyper::Error),
    #[error("the connection is of a kind this server does not make")]
    Foreign,
    #[error("failed to duplicate the connection's descriptor")]
    Clone(#[source] io::Error),
}

/// The caller left.
#[derive(Debug, thiserror::Error)]
pub(super) enum Gone {
    #[error("failed to write to the caller")]
    Write(#[source] io::Error),
    #[error("the caller no longer reads the response")]
    Queue(#[source] mpsc::error::SendError<Bytes>),
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// Lines waiting for a slow reader; each at most a frame.
pub(super) const QUEUE: usize = 4;
