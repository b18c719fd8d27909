//! The output of a sandbox's commands, as its init wrote it to a file.
//!
//! Each record: length of the data (u32), stream (u8: 1 stdout, 2 stderr), exec (u32), Unix time in
//! milliseconds (u64), all little endian, then the data. The file's writer lives in the sandbox, so nothing in
//! it is believed: a record may be torn or nonsense, and then reading goes on at the next thing that looks
//! like one.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::{Buf, Bytes, BytesMut};
use jiff::Timestamp;
use model::ExecId;
use rustix::fs::{Mode, OFlags};

use crate::line::{LogLine, Output, Stream};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub stream: Stream,
    pub exec: ExecId,
    pub time: Timestamp,
    pub data: Bytes,
}

impl Record {
    #[must_use]
    pub fn to_line(&self) -> LogLine {
        LogLine { time: self.time, exec: self.exec, stream: self.stream, output: Output::of(&self.data) }
    }
}

/// Opens a log for reading from its start.
pub fn records(path: &Path) -> Result<Records<File>, LogError> {
    // A link or a pipe in the log's place would read something else, or for ever.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let open = |source: io::Error| LogError::Open { path: path.to_owned(), source };
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| open(errno.into()))?);
    if !file.metadata().map_err(open)?.is_file() {
        return Err(LogError::NotAFile { path: path.to_owned() });
    }
    Ok(Records::new(file))
}

/// Reads records one after the other; at the end of the file it can be asked again later.
#[derive(Debug)]
pub struct Records<R> {
    source: R,
    buffer: BytesMut,
}

impl<R: Read> Records<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: BytesMut::new() }
    }

    /// The next whole record, or `None` where the file ends for now.
    pub fn read(&mut self) -> Result<Option<Record>, LogError> {
        loop {
            if let Some(record) = self.take() {
                return Ok(Some(record));
            }
            let mut chunk = [0; CHUNK];
            match self.source.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LogError::Read(error)),
            }
        }
    }

    fn take(&mut self) -> Option<Record> {
        while let Some(head) = self.buffer.first_chunk::<HEAD>() {
            let Some((length, stream, exec, time)) = plausible(*head) else {
                self.buffer.advance(1);
                continue;
            };
            if self.buffer.len() < HEAD + length {
                return None;
            }
            self.buffer.advance(HEAD);
            let data = self.buffer.split_to(length).freeze();
            return Some(Record { stream, exec, time, data });
        }
        None
    }
}

impl Records<File> {
    /// Has the file been removed? Then nothing more will come.
    pub fn is_removed(&self) -> Result<bool, LogError> {
        Ok(self.source.metadata().map_err(LogError::Read)?.nlink() == 0)
    }
}

fn plausible(head: [u8; HEAD]) -> Option<(usize, Stream, ExecId, Timestamp)> {
    let [a, b, c, d, stream, e, f, g, h, time @ ..] = head;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
    let stream = match stream {
        1 => Stream::Stdout,
        2 => Stream::Stderr,
        _ => return None,
    };
    let millis = i64::try_from(u64::from_le_bytes(time)).ok()?;
    let time = Timestamp::from_millisecond(millis).ok()?;
    (length <= MAX).then_some((length, stream, ExecId(u32::from_le_bytes([e, f, g, h])), time))
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("failed to open the log `{}`", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the log `{}` is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error("failed to read a log")]
    Read(#[source] io::Error),
}

const HEAD: usize = 17;
/// The longest record: a frame's worth, since init logs what it frames.
const MAX: usize = model::exec::FrameHead::MAX as usize;
const CHUNK: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(stream: u8, exec: u32, millis: u64, data: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(data.len()).unwrap().to_le_bytes().to_vec();
        bytes.push(stream);
        bytes.extend(exec.to_le_bytes());
        bytes.extend(millis.to_le_bytes());
        bytes.extend(data);
        bytes
    }

    fn read(bytes: &[u8]) -> Vec<Record> {
        let mut records = Records::new(bytes);
        std::iter::from_fn(|| records.read().unwrap()).collect()
    }

    fn record(stream: Stream, exec: u32, millis: i64, data: &[u8]) -> Record {
        let time = Timestamp::from_millisecond(millis).unwrap();
        Record { stream, exec: ExecId(exec), time, data: Bytes::copy_from_slice(data) }
    }

    #[test]
    fn records_read_back_and_a_torn_end_is_left_out() {
        let mut bytes = encode(1, 1, 1000, b"one");
        bytes.extend(encode(2, 7, 2000, b""));
        bytes.extend(&encode(1, 7, 3000, b"torn")[..19]);
        let expected = [record(Stream::Stdout, 1, 1000, b"one"), record(Stream::Stderr, 7, 2000, b"")];
        assert_eq!(read(&bytes), expected);
    }

    #[test]
    fn reading_goes_on_after_garbage() {
        let mut bytes = vec![0xff; 40];
        bytes.extend(encode(1, 1, 1000, b"one"));
        assert_eq!(read(&bytes), [record(Stream::Stdout, 1, 1000, b"one")]);
    }

    #[test]
    fn a_link_in_the_logs_place_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("log")).unwrap();
        assert!(matches!(records(&folder.path().join("log")), Err(LogError::Open { .. })));
        assert!(matches!(records(folder.path()), Err(LogError::NotAFile { .. })));
    }

    #[test]
    fn a_record_finished_later_is_found_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let bytes = encode(1, 1, 1000, b"late");
        std::fs::write(&path, &bytes[..18]).unwrap();
        let mut records = records(&path).unwrap();
        assert_eq!(records.read().unwrap(), None);
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(records.read().unwrap(), Some(record(Stream::Stdout, 1, 1000, b"late")));
        assert!(!records.is_removed().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(records.is_removed().unwrap());
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let taken: usize = read(&bytes).iter().map(|record| HEAD + record.data.len()).sum();
            prop_assert!(taken <= bytes.len());
        }

        #[test]
        fn what_was_written_is_read(written in proptest::collection::vec((1u8..=2, any::<u32>(), 0u64..4_000_000_000_000, any::<Vec<u8>>()), 0..20)) {
            let bytes: Vec<u8> = written.iter().flat_map(|(s, e, t, d)| encode(*s, *e, *t, d)).collect();
            let got: Vec<_> = read(&bytes).into_iter().map(|record| (record.exec.0, record.data.to_vec())).collect();
            let expected: Vec<_> = written.into_iter().map(|(_, exec, _, data)| (exec, data)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
