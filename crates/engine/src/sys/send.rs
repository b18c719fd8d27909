//! Messages with descriptors over a Unix socket.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// What every socket takes in one packet.
const SMALL: usize = 64 << 10;
/// No JSON begins so: the message is in the file that comes last among the descriptors.
const IN_FILE: &[u8] = &[0];
/// Descriptors in one message, at most. The kernel's own limit is 253.
const MOST: usize = 250;

#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) bytes: Vec<u8>,
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Sends one packet. What is larger than a socket surely takes goes as a file beside it: a plan for a machine with many homes
/// has thousands of entries.
pub(crate) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    if bytes.len() <= SMALL {
        return send_packet(socket, bytes, descriptors);
    }
    let mut file = File::from(super::memory_file(c"message")?);
    file.write_all(bytes)?;
    let all: Vec<BorrowedFd<'_>> = descriptors.iter().copied().chain([file.as_fd()]).collect();
    send_packet(socket, IN_FILE, &all)
}

fn send_packet(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
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
    let packet = receive_at_most(socket, waiting(socket)?.min(limit))?;
    match packet {
        Some(Packet { bytes, mut descriptors }) if bytes == IN_FILE => {
            let file = File::from(descriptors.pop().ok_or(io::ErrorKind::InvalidData)?);
            let mut bytes =
                vec![0; usize::try_from(file.metadata()?.len()).map_or(limit, |size| size.min(limit))];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(Some(Packet { bytes, descriptors }))
        }
        packet => Ok(packet),
    }
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

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn what_no_socket_takes_arrives_whole_with_its_descriptors() {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (here, there) = pair.unwrap();
        let beside = File::open("/dev/null").unwrap();
        for size in [1, SMALL, SMALL + 1, 3 << 20] {
            let bytes = vec![b'x'; size];
            send(here.as_fd(), &bytes, &[beside.as_fd()]).unwrap();
            let packet = receive(there.as_fd(), 4 << 20).unwrap().unwrap();
            assert_eq!((packet.bytes == bytes, packet.descriptors.len()), (true, 1), "{size}");
        }
    }
}
