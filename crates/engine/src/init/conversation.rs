//! One connection to init: frames in, frames out, never blocking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::exec::{BadFrame, FrameHead, FrameKind};
use serde::Serialize;

use crate::sys;

/// A conversation with more than this waiting is not given more output: the command blocks, as on a slow terminal.
const FULL: usize = 256 << 10;

#[derive(Debug)]
pub(super) struct Conversation {
    socket: OwnedFd,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
    /// The command it is attached to.
    pub(super) job: Option<u32>,
    /// Close when the outbox is empty.
    pub(super) closing: bool,
    /// The other side will send no more.
    pub(super) deaf: bool,
    /// The other side takes no more. What it said before may still be unread.
    mute: bool,
}

impl Conversation {
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket,
            inbox: Vec::new(),
            outbox: Vec::new(),
            job: None,
            closing: false,
            deaf: false,
            mute: false,
        })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn is_full(&self) -> bool {
        self.outbox.len() > FULL
    }

    pub(super) fn has_output(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Nothing is left to be said or heard.
    pub(super) fn is_over(&self) -> bool {
        let said_all = self.closing && !self.has_output();
        let heard_all = self.deaf && (self.mute || self.job.is_none());
        said_all || heard_all
    }

    /// Reads what is there.
    pub(super) fn fill(&mut self) {
        let mut buffer = [0; 16 << 10];
        match rustix::io::read(&self.socket, &mut buffer) {
            Ok(length) if length > 0 => self.inbox.extend_from_slice(&buffer[..length]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => self.deaf = true,
        }
    }

    /// Takes one whole frame, if it has arrived.
    pub(super) fn take(&mut self) -> Result<Option<(FrameKind, Vec<u8>)>, BadFrame> {
        let Some(head) = self.inbox.first_chunk::<{ FrameHead::SIZE }>() else { return Ok(None) };
        let head = FrameHead::decode(*head)?;
        let end = FrameHead::SIZE + head.length as usize;
        if self.inbox.len() < end {
            return Ok(None);
        }
        let payload = self.inbox[FrameHead::SIZE..end].to_vec();
        self.inbox.drain(..end);
        if self.inbox.is_empty() {
            self.inbox = Vec::new();
        }
        Ok(Some((head.kind, payload)))
    }

    pub(super) fn send(&mut self, kind: FrameKind, payload: &[u8]) {
        if self.mute {
            return;
        }
        let head = FrameHead { kind, length: payload.len() as u32 };
        self.outbox.extend_from_slice(&head.encode());
        self.outbox.extend_from_slice(payload);
        self.flush();
    }

    pub(super) fn send_json(&mut self, kind: FrameKind, value: &impl Serialize) {
        match serde_json::to_vec(value) {
            Ok(json) => self.send(kind, &json),
            // None of our types can fail to become JSON; if one did, a closed conversation is the honest answer.
            Err(_) => self.closing = true,
        }
    }

    /// Sends an answer with descriptors beside it. For a conversation on which nothing else was said.
    pub(super) fn send_with(&self, value: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        sys::send(self.socket.as_fd(), &frame(FrameKind::Answer, value)?, descriptors)
    }

    /// Writes as much as the socket takes.
    pub(super) fn flush(&mut self) {
        while !self.outbox.is_empty() {
            match rustix::net::send(&self.socket, &self.outbox, rustix::net::SendFlags::NOSIGNAL) {
                Ok(length) => drop(self.outbox.drain(..length)),
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    self.outbox.clear();
                    self.mute = true;
                }
            }
        }
        self.outbox = Vec::new();
    }

    /// Gives up the socket and what was read beyond the last frame, for a child that goes on with it alone.
    pub(super) fn into_parts(self) -> (OwnedFd, Vec<u8>) {
        (self.socket, self.inbox)
    }
}

/// A whole frame with a JSON payload.
pub(super) fn frame(kind: FrameKind, value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    let mut frame = FrameHead { kind, length: json.len() as u32 }.encode().to_vec();
    frame.extend(json);
    Ok(frame)
}
