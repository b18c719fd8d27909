//! A command's conversation, seen from the client.

use std::io::Cursor;

use bytes::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use model::exec::FrameKind;
use tokio::io::{AsyncReadExt, Chain, ReadHalf, WriteHalf};
use tokio::net::UnixStream;

use super::ClientError;
use crate::frames::{FrameReader, FrameWriter};

/// Both directions. Dropping it is leaving: a throwaway sandbox is then removed.
#[derive(Debug)]
pub struct Conversation {
    incoming: Incoming,
    outgoing: Outgoing,
}

#[derive(Debug)]
pub struct Incoming(FrameReader<ReadHalf<UnixStream>>);

#[derive(Debug)]
pub struct Outgoing(FrameWriter<WriteHalf<UnixStream>>);

/// Both directions of a connection whose bytes are the caller's own business.
#[derive(Debug)]
pub struct Spoken {
    pub reader: Chain<Cursor<Bytes>, ReadHalf<UnixStream>>,
    pub writer: WriteHalf<UnixStream>,
}

impl Spoken {
    pub(super) fn new(upgraded: Upgraded) -> Result<Self, ClientError> {
        let (stream, already) = taken(upgraded)?;
        let (read, writer) = tokio::io::split(stream);
        Ok(Self { reader: Cursor::new(already).chain(read), writer })
    }
}

fn taken(upgraded: Upgraded) -> Result<(UnixStream, Bytes), ClientError> {
    match upgraded.downcast::<TokioIo<UnixStream>>() {
        Ok(parts) => Ok((parts.io.into_inner(), parts.read_buf)),
        Err(_foreign) => Err(ClientError::ForeignUpgrade),
    }
}

impl Conversation {
    pub(super) fn new(upgraded: Upgraded) -> Result<Self, ClientError> {
        let (stream, already) = taken(upgraded)?;
        // Not `into_split`: dropping one of those halves closes its direction, and a client that has nothing
        // more to say would seem to have left.
        let (read, write) = tokio::io::split(stream);
        let incoming = Incoming(FrameReader::after(read, already));
        Ok(Self { incoming, outgoing: Outgoing(FrameWriter::new(write)) })
    }

    #[must_use]
    pub fn split(self) -> (Incoming, Outgoing) {
        (self.incoming, self.outgoing)
    }

    pub async fn next(&mut self) -> Result<Option<(FrameKind, Bytes)>, ClientError> {
        self.incoming.next().await
    }

    pub async fn send(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), ClientError> {
        self.outgoing.send(kind, payload).await
    }
}

impl Incoming {
    /// The next frame; `None` when the daemon closed the conversation. Safe to cancel.
    pub async fn next(&mut self) -> Result<Option<(FrameKind, Bytes)>, ClientError> {
        self.0.next().await.map_err(ClientError::Frame)
    }
}

impl Outgoing {
    pub async fn send(&mut self, kind: FrameKind, payload: &[u8]) -> Result<(), ClientError> {
        self.0.send(kind, payload).await.map_err(ClientError::SendFrame)
    }
}
