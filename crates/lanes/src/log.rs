//! What a command wrote: kept in a file, with its beginning and its last lines at hand.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{self, File};
use tokio::io::{AsyncWriteExt, BufWriter};

/// Takes what a command writes. The file has an end; what comes after is counted.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    room: u64,
    left_out: u64,
    heads: [Vec<u8>; 2],
    tail: VecDeque<u8>,
}

/// Which of the two it wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// All that is known of it once it is whole.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) log: Option<PathBuf>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// The last lines of both.
    pub(crate) tail: Vec<String>,
}

impl Log {
    pub(crate) async fn create(path: &Path) -> Result<Self, LogError> {
        let failed = |source| LogError::Create { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).await.map_err(failed)?;
        }
        let file = File::create(path).await.map_err(failed)?;
        let (left_out, heads, tail) = Default::default();
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), room: KEPT, left_out, heads, tail })
    }

    pub(crate) async fn take(&mut self, stream: Stream, bytes: &[u8]) -> Result<(), LogError> {
        let head = &mut self.heads[stream as usize];
        head.extend(bytes.iter().take(HEAD - head.len()));
        self.tail.extend(bytes);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        let fits = usize::try_from(self.room).map_or(bytes.len(), |room| room.min(bytes.len()));
        self.room -= fits as u64;
        self.left_out += (bytes.len() - fits) as u64;
        self.write(&bytes[..fits]).await
    }

    pub(crate) async fn finish(mut self) -> Result<Written, LogError> {
        if self.left_out > 0 {
            let note = format!("\n[{} more bytes are not kept]\n", self.left_out);
            self.write(note.as_bytes()).await?;
        }
        let path = self.path.clone();
        self.file.flush().await.map_err(|source| LogError::Write { path, source })?;
        let tail: Vec<u8> = self.tail.into();
        let text = String::from_utf8_lossy(&tail);
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(LINES)..].iter().map(|line| (*line).to_owned()).collect();
        let [stdout, stderr] = self.heads;
        Ok(Written { log: Some(self.path), stdout, stderr, tail })
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let written = self.file.write_all(bytes).await;
        written.map_err(|source| LogError::Write { path: self.path.clone(), source })
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("failed to make the log `{}`", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("failed to write the log `{}`", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Bytes of a log that are kept.
const KEPT: u64 = 16 << 20;
/// Bytes of each stream that expectations are held against.
const HEAD: usize = 4 << 20;
/// Bytes in which the last lines are looked for.
const TAIL: usize = 8 << 10;
/// The last lines that are told.
const LINES: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_has_an_end_and_the_last_lines_are_known_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/er/log");
        let mut log = Log::create(&path).await.unwrap();
        let line = [b'x'; 1024];
        for _ in 0..(KEPT / 1024) + 2 {
            log.take(Stream::Out, &line).await.unwrap();
        }
        log.take(Stream::Err, b"\nlast\xff\nwords").await.unwrap();
        let written = log.finish().await.unwrap();
        assert_eq!((written.stdout.len(), written.stderr.as_slice()), (HEAD, &b"\nlast\xff\nwords"[..]));
        assert_eq!(written.tail[1..], ["last\u{fffd}", "words"]);
        let kept = std::fs::read(&path).unwrap();
        assert!(kept.ends_with(b"\n[2060 more bytes are not kept]\n"), "{}", kept.len());
    }
}
