//! Messages with descriptors over a Unix socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Descriptors in one message, at most. The kernel's own limit is 253.
const MOST: usize = 250;

#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Sends one packet.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors for one message"));
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Waits for a packet and tells its size, so that the buffer for it is no larger: a large one, cleared for every
/// packet, is what a launch would spend most of its time on.
fn waiting(socket: BorrowedFd<'_>) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket, &mut [0; 0], RecvFlags::PEEK | RecvFlags::TRUNC) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?.1),
        }
    }
}

/// Receives one packet of a socket that keeps packets apart. `None`: the other side is gone.
pub(crate) fn receive(socket: BorrowedFd<'_>, limit: usize) -> io::Result<Option<Packet>> {
    receive_at_most(socket, waiting(socket)?.min(limit))
}

/// Receives what is there, no more than this. `None`: the other side is gone.
pub(crate) fn receive_at_most(socket: BorrowedFd<'_>, size: usize) -> io::Result<Option<Packet>> {
    let mut bytes = vec![0; size];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            descriptors.extend(fds);
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) || received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message was larger than agreed"));
    }
    bytes.truncate(received.bytes);
    Ok((received.bytes > 0).then_some(Packet { bytes, descriptors }))
}
