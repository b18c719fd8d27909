//! What sandboxes tried to reach, as lines of JSON in a file: for tools that read files, and for when the store is gone.
//!
//! One line when an attempt begins and another when it has ended, with the same number; a refused one has only the first.
//! Nothing is in it that is not in the store. It is kept within bounds: the file before the current one, and no more.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::request::Request;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Cheap to clone. Written in order, by a thread of its own.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    lines: mpsc::Sender<Line>,
    /// For lines that wait, in KiB.
    room: Arc<Semaphore>,
}

/// One that waits to be written, and its room.
type Line = (Vec<u8>, OwnedSemaphorePermit);

impl Journal {
    pub(crate) fn open(home: &Path) -> Self {
        let (lines, waiting) = mpsc::channel(WAITING);
        let path = home.join(NAME);
        let writer = std::thread::Builder::new().name("requests".to_owned());
        if let Err(error) = writer.spawn(move || write(&path, waiting)) {
            tracing::warn!(%error, "requests are not written to a file");
        }
        Self { lines, room: Arc::new(Semaphore::new(ROOM as usize)) }
    }

    /// Waits only if the disk is far behind.
    pub(crate) async fn write(&self, request: &Request) {
        let mut line = match serde_json::to_vec(request) {
            Ok(line) => line,
            Err(error) => {
                return tracing::warn!(%error, id = request.id, "a request cannot be written as a line");
            }
        };
        line.push(b'\n');
        let size = u32::try_from(line.len() >> 10).unwrap_or(u32::MAX).saturating_add(1).min(ROOM);
        let room = Arc::clone(&self.room).acquire_many_owned(size).await.expect("never closed");
        if self.lines.send((line, room)).await.is_err() {
            tracing::debug!(id = request.id, "a request is in the store only");
        }
    }
}

fn write(path: &Path, mut waiting: mpsc::Receiver<Line>) {
    let mut current = None;
    while let Some((line, _room)) = waiting.blocking_recv() {
        let written = append(path, &mut current, &line);
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "a request is in the store only");
            current = None;
        }
    }
}

/// The file that is written to, and how long it is.
type Current = Option<(File, u64)>;

fn append(path: &Path, current: &mut Current, line: &[u8]) -> io::Result<()> {
    let (mut file, length) = match current.take() {
        Some(open) => open,
        None => open(path)?,
    };
    let length = if length > 0 && length + line.len() as u64 > LONGEST {
        fs::rename(path, earlier(path))?;
        let (next, length) = open(path)?;
        file = next;
        length
    } else {
        length
    };
    file.write_all(line)?;
    *current = Some((file, length + line.len() as u64));
    Ok(())
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn earlier(path: &Path) -> PathBuf {
    path.with_extension("jsonl.1")
}

const NAME: &str = "requests.jsonl";
/// A file becomes no longer than this, unless one line is.
const LONGEST: u64 = 64 << 20;
const WAITING: usize = 4096;
/// In KiB.
const ROOM: u32 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_long_gives_way_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let mut current = None;
        let long = vec![b'x'; (LONGEST - 1) as usize];
        for line in [&b"first\n"[..], &long, b"last\n"] {
            append(&path, &mut current, line).unwrap();
        }
        assert_eq!(fs::read(&path).unwrap().len() as u64, 5);
        assert_eq!(fs::read(earlier(&path)).unwrap().len() as u64, LONGEST - 1);
        // Another daemon goes on where this one ended.
        append(&path, &mut None, b"more\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "last\nmore\n");
    }
}
