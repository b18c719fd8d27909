//! Messages to the kernel's network configuration, as few kinds of them as a sandbox needs.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// A socket to one part of the kernel.
pub(super) fn open(part: Option<Protocol>) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, part)?)
}

/// Messages that are sent at once.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    messages: u32,
}

impl Batch {
    /// Appends a message; `fill` writes what follows its head.
    pub(super) fn message(&mut self, kind: u16, flags: u16, fill: impl FnOnce(&mut Body<'_>)) -> &mut Self {
        let start = self.bytes.len();
        self.messages += 1;
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags | REQUEST).to_ne_bytes());
        self.bytes.extend(self.messages.to_ne_bytes());
        self.bytes.extend([0; 4]);
        fill(&mut Body(&mut self.bytes));
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        self
    }

    /// Sends all of it and waits until each message that asked for it was acknowledged.
    pub(super) fn send(&self, socket: &OwnedFd) -> io::Result<()> {
        send(socket, &self.bytes, SendFlags::NOSIGNAL)?;
        let mut acknowledged = false;
        let mut buffer = vec![0; 32 << 10];
        // The kernel has answered before `send` returns.
        loop {
            match recv(socket, &mut buffer, RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    for answer in messages(&buffer[..length]) {
                        acknowledged |= answer.acknowledges()?;
                    }
                }
                Err(Errno::AGAIN) if acknowledged => return Ok(()),
                Err(Errno::AGAIN) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// What follows a message's head: fixed fields, then attributes.
#[derive(Debug)]
pub(super) struct Body<'a>(&'a mut Vec<u8>);

impl Body<'_> {
    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        self.nested(kind, |body| {
            body.raw(value);
        })
    }

    /// A text with the zero at its end that the kernel wants.
    pub(super) fn text(&mut self, kind: u16, text: &str) -> &mut Self {
        self.nested(kind, |body| {
            body.raw(text.as_bytes()).raw(&[0]);
        })
    }

    /// A number as netfilter wants it.
    pub(super) fn number(&mut self, kind: u16, number: u32) -> &mut Self {
        self.attribute(kind, &number.to_be_bytes())
    }

    /// An attribute made of others. Of its own length only the part before the padding counts.
    pub(super) fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Body<'_>)) -> &mut Self {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        fill(&mut Body(self.0));
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// One message from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    pub(super) kind: u16,
    pub(super) payload: &'a [u8],
}

impl Answer<'_> {
    fn acknowledges(&self) -> io::Result<bool> {
        if self.kind != ERROR {
            return Ok(false);
        }
        match self.payload.first_chunk().map(|code| i32::from_ne_bytes(*code)) {
            Some(0) => Ok(true),
            Some(code) => Err(io::Error::from_raw_os_error(-code)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The messages in what was received. What makes no sense ends the list.
pub(super) fn messages(bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    pieces(bytes, HEAD, |head| {
        let length = u32::from_ne_bytes(*head.first_chunk()?) as usize;
        Some((length, u16::from_ne_bytes(*head.get(4..)?.first_chunk()?)))
    })
    .map(|(kind, payload)| Answer { kind, payload })
}

/// The attributes in a message, by their kind.
pub(super) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    pieces(bytes, 4, |head| {
        let length = u16::from_ne_bytes(*head.first_chunk()?).into();
        // The two highest bits say how the value is written.
        Some((length, u16::from_ne_bytes(*head.get(2..)?.first_chunk()?) & 0x3fff))
    })
}

/// What has a head that begins with its length and is padded to four bytes.
fn pieces(
    bytes: &[u8],
    head: usize,
    read: impl Fn(&[u8]) -> Option<(usize, u16)>,
) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (length, kind) = read(rest.get(..head)?)?;
        let payload = rest.get(head..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

const HEAD: usize = 16;
const ERROR: u16 = 2;
const REQUEST: u16 = 1;
pub(super) const ACK: u16 = 4;
pub(super) const CREATE: u16 = 0x400;
pub(super) const APPEND: u16 = 0x800;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut batch = Batch::default();
        batch.message(7, ACK, |body| {
            body.attribute(1, b"abc").nested(2, |body| {
                body.number(3, 4);
            });
        });
        batch.message(8, 0, |_| ());
        let read: Vec<_> = messages(batch.bytes()).collect();
        assert_eq!(read.iter().map(|message| message.kind).collect::<Vec<_>>(), [7, 8]);
        let inside: Vec<_> = attributes(read[0].payload).collect();
        assert_eq!(inside[0], (1, &b"abc"[..]));
        assert_eq!(attributes(inside[1].1).collect::<Vec<_>>(), [(3, &[0, 0, 0, 4][..])]);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_survived(bytes: Vec<u8>) {
            for message in messages(&bytes) {
                prop_assert!(attributes(message.payload).count() <= bytes.len());
            }
        }
    }
}
