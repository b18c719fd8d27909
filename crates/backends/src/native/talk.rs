//! Conversations with a sandbox's init. Whatever it says is checked: the workload may have become it.

use std::os::fd::AsFd;
use std::path::Path;

use engine::init::wire::Request;
use model::exec::{FrameHead, FrameKind};
use model::{Code, Problem};
use rustix::net::RecvFlags;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::{Duration, timeout};

use super::problem::NativeError;

/// Init answers at once or is not well.
const PATIENCE: Duration = Duration::from_secs(20);

/// The frame that opens a conversation.
pub(super) fn opening(request: &Request) -> Result<Vec<u8>, Problem> {
    let json = serde_json::to_vec(request).map_err(|e| Problem::from_error(Code::Internal, &e))?;
    if json.len() > FrameHead::MAX as usize {
        return Err(Problem::new(Code::TooLarge, "the command with its environment is larger than 1 MiB"));
    }
    let mut frame = FrameHead { kind: FrameKind::Request, length: json.len() as u32 }.encode().to_vec();
    frame.extend(json);
    Ok(frame)
}

/// Connects to the sandbox whose folder this is.
pub(super) async fn connect(folder: &Path) -> std::io::Result<UnixStream> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder, flags, rustix::fs::Mode::empty())?;
    UnixStream::connect(engine::through(folder.as_fd(), "control.sock")).await
}

/// Opens a conversation and leaves it open.
pub(super) async fn open(folder: &Path, request: &Request) -> Result<UnixStream, Problem> {
    let frame = opening(request)?;
    let mut stream = connect(folder).await.map_err(NativeError::Talk)?;
    stream.write_all(&frame).await.map_err(NativeError::Talk)?;
    Ok(stream)
}

/// Asks something that has one answer.
pub(super) async fn ask<T: DeserializeOwned>(folder: &Path, request: &Request) -> Result<T, Problem> {
    let mut stream = open(folder, request).await?;
    answer(&mut stream).await
}

/// Reads the one answer of a conversation.
pub(super) async fn answer<T: DeserializeOwned>(stream: &mut UnixStream) -> Result<T, Problem> {
    let (kind, payload) = timeout(PATIENCE, read(stream)).await.map_err(|_elapsed| silent())??;
    match kind {
        FrameKind::Answer => {
            serde_json::from_slice(&payload).map_err(|e| Problem::from_error(Code::Internal, &e))
        }
        FrameKind::Problem => Err(problem(&payload)),
        _ => Err(Problem::new(Code::Internal, "the sandbox gave an answer that makes no sense")),
    }
}

/// Waits for a conversation's first frame without taking it, unless it is a problem: then that is returned.
pub(super) async fn first_word(stream: &mut UnixStream) -> Result<(), Problem> {
    let peek = async {
        loop {
            stream.ready(Interest::READABLE).await?;
            let peeked = stream.try_io(Interest::READABLE, || {
                let mut kind = [0; 1];
                let (length, _) =
                    rustix::net::recv(stream.as_fd(), &mut kind, RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
                Ok((length > 0).then_some(kind[0]))
            });
            match peeked {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                other => return other,
            }
        }
    };
    let kind = timeout(PATIENCE, peek).await.map_err(|_elapsed| silent())?.map_err(NativeError::Talk)?;
    match kind.and_then(FrameKind::from_byte) {
        Some(FrameKind::Problem) => match read(stream).await {
            Ok((_, payload)) => Err(problem(&payload)),
            Err(error) => Err(error),
        },
        Some(_) => Ok(()),
        None => Err(Problem::new(Code::Internal, "the sandbox ended while it was being made")),
    }
}

async fn read(stream: &mut UnixStream) -> Result<(FrameKind, Vec<u8>), Problem> {
    let mut head = [0; FrameHead::SIZE];
    stream.read_exact(&mut head).await.map_err(NativeError::Talk)?;
    let head = FrameHead::decode(head).map_err(|e| Problem::from_error(Code::Internal, &e))?;
    let mut payload = vec![0; head.length as usize];
    stream.read_exact(&mut payload).await.map_err(NativeError::Talk)?;
    Ok((head.kind, payload))
}

pub(super) fn problem(payload: &[u8]) -> Problem {
    serde_json::from_slice(payload)
        .unwrap_or_else(|_garbled| Problem::new(Code::Internal, "the sandbox failed and could not say why"))
}

fn silent() -> Problem {
    Problem::new(Code::Internal, format!("the sandbox did not answer within {} s", PATIENCE.as_secs()))
}
