//! The log of a sandbox's output: records appended by init to one file that it was born with.
//!
//! A record: data length (u32), stream (u8: 1 output, 2 error output, 0 a note of init's), command (u32), unix time in
//! milliseconds (u64), all little endian, then the data. The reader must expect anything: init is not to be trusted.

use std::fs::File;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use model::limits::Defaults;

/// Init's last words when its time ran out, as the last record's data.
pub const EXPIRED: &[u8] = b"EXPIRED\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    Note = 0,
    Out = 1,
    Err = 2,
}

#[derive(Debug)]
pub(super) struct Writer {
    file: File,
    written: u64,
}

impl Writer {
    pub(super) fn new(file: File) -> Self {
        let written = file.metadata().map_or(0, |stat| stat.len());
        Self { file, written }
    }

    /// Appends a record, unless the log is full; notes are always taken.
    pub(super) fn append(&mut self, exec: u32, stream: Stream, data: &[u8]) {
        if self.written > Defaults::LOG.0 && stream != Stream::Note {
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let mut record = Vec::with_capacity(17 + data.len());
        record.extend((data.len() as u32).to_le_bytes());
        record.push(stream as u8);
        record.extend(exec.to_le_bytes());
        record.extend(time.to_le_bytes());
        record.extend(data);
        // A full disk must not stop the command: its output still reaches whoever is attached.
        if self.file.write_all(&record).is_ok() {
            self.written += record.len() as u64;
        }
    }
}
