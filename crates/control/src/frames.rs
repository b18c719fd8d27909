//! Frames on a byte stream, for both sides. Knows their shape, not who may say what.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use model::exec::{BadFrame, FrameHead, FrameKind};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Takes frames from a stream. Holds at most one frame and one read beyond it.
#[derive(Debug)]
pub struct FrameReader<R> {
    stream: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(stream: R) -> Self {
        Self::after(stream, Bytes::new())
    }

    /// A stream of which `read` was already taken.
    pub fn after(stream: R, read: Bytes) -> Self {
        Self { stream, buffer: BytesMut::from(read) }
    }

    /// The next frame; `None` when the stream ended between two frames. Safe to cancel: what was read stays.
    pub async fn next(&mut self) -> Result<Option<(FrameKind, Bytes)>, FrameError> {
        loop {
            let missing = match self.head()? {
                Some(head) => {
                    let whole = FrameHead::SIZE + head.length as usize;
                    if self.buffer.len() >= whole {
                        self.buffer.advance(FrameHead::SIZE);
                        return Ok(Some((head.kind, self.buffer.split_to(head.length as usize).freeze())));
                    }
                    whole - self.buffer.len()
                }
                None => FrameHead::SIZE - self.buffer.len(),
            };
            self.buffer.reserve(missing.max(READ));
            if self.stream.read_buf(&mut self.buffer).await.map_err(FrameError::Read)? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::Torn) };
            }
        }
    }

    fn head(&self) -> Result<Option<FrameHead>, FrameError> {
        match self.buffer.first_chunk() {
            Some(bytes) => FrameHead::decode(*bytes).map(Some).map_err(FrameError::Bad),
            None => Ok(None),
        }
    }
}

/// Puts frames on a stream.
#[derive(Debug)]
pub struct FrameWriter<W> {
    stream: W,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub fn new(stream: W) -> Self {
        Self { stream }
    }

    /// Sends `payload`, as several frames where it does not fit into one; only bytes for the command's
    /// input and from its output may be that long.
    pub async fn send(&mut self, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
        let (first, mut rest) = payload.split_at(payload.len().min(FrameHead::MAX as usize));
        self.send_one(kind, first).await?;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(FrameHead::MAX as usize));
            self.send_one(kind, piece).await?;
            rest = after;
        }
        self.stream.flush().await
    }

    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    async fn send_one(&mut self, kind: FrameKind, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).expect("cut to FrameHead::MAX by send");
        // One buffer, one system call: a short frame sent in two would wake the reader twice.
        let mut frame = BytesMut::with_capacity(FrameHead::SIZE + payload.len());
        frame.extend_from_slice(&FrameHead { kind, length }.encode());
        frame.extend_from_slice(payload);
        self.stream.write_all(&frame).await
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("failed to read a frame")]
    Read(#[source] io::Error),
    #[error("malformed frame")]
    Bad(#[source] BadFrame),
    #[error("the stream ended within a frame")]
    Torn,
}

/// What one read asks for at least: a pipe's worth.
const READ: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    async fn read_all(bytes: &[u8]) -> (Vec<(FrameKind, Bytes)>, Result<(), FrameError>) {
        let mut reader = FrameReader::new(bytes);
        let mut frames = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return (frames, Ok(())),
                Err(error) => return (frames, Err(error)),
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_is_read(payloads in proptest::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let mut wire = Vec::new();
            block_on(async {
                let mut writer = FrameWriter::new(&mut wire);
                for payload in &payloads {
                    writer.send(FrameKind::Stdout, payload).await.unwrap();
                }
            });
            let (frames, end) = block_on(read_all(&wire));
            prop_assert!(end.is_ok());
            let got: Vec<_> = frames.into_iter().map(|(_, payload)| payload.to_vec()).collect();
            prop_assert_eq!(got, payloads);
        }

        #[test]
        fn any_bytes_end_in_frames_or_an_error_and_nothing_is_invented(bytes: Vec<u8>) {
            let (frames, end) = block_on(read_all(&bytes));
            let taken: usize = frames.iter().map(|(_, payload)| FrameHead::SIZE + payload.len()).sum();
            prop_assert!(taken <= bytes.len());
            prop_assert_eq!(end.is_ok(), taken == bytes.len());
        }
    }

    #[test]
    fn a_long_payload_travels_in_pieces() {
        let long = vec![7; FrameHead::MAX as usize + 3];
        let mut wire = Vec::new();
        block_on(FrameWriter::new(&mut wire).send(FrameKind::Stdin, &long)).unwrap();
        let (frames, end) = block_on(read_all(&wire));
        assert!(end.is_ok());
        let lengths: Vec<_> = frames.iter().map(|(_, payload)| payload.len()).collect();
        assert_eq!(lengths, [FrameHead::MAX as usize, 3]);
    }
}
