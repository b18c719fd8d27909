//! Changes in a folder, as they happen.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{Stream, stream};
use model::files::{Change, FileOp};
use model::{Code, Problem};
use serde::de::IgnoredAny;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::wire::{Told, WatchRequest};
use crate::api::Stop;
use crate::api::files::{answer, next_answer};
use crate::e2b::connect::{Error, ErrorCode};
use crate::e2b::envd::inside::{Files, path, patiently};
use crate::frames::FrameReader;

/// What a sandbox's init tells of a folder. It goes on looking until this is dropped.
#[derive(Debug)]
pub(super) struct Changes(FrameReader<UnixStream>);

impl Changes {
    /// Returns when changes are seen.
    pub(super) async fn of(files: &Files<'_>, wanted: &WatchRequest) -> Result<Self, Problem> {
        let operation = FileOp::Watch {
            path: path(&wanted.path)?,
            recursive: wanted.recursive,
            entries: wanted.include_entry,
        };
        let mut reader = FrameReader::new(files.open(&operation).await?);
        patiently(answer::<IgnoredAny>(&mut reader)).await?;
        Ok(Self(reader))
    }

    /// The next ones. Safe to cancel.
    pub(super) async fn next(&mut self) -> Result<Vec<Change>, Problem> {
        let next = next_answer(&mut self.0).await?;
        next.ok_or_else(|| Problem::new(Code::NotReady, "the sandbox ended, or was made anew"))
    }
}

/// Tells them to a client, and that this goes on where nothing happens for so long.
pub(super) fn told(
    changes: Changes,
    pause: Duration,
    timeout: Option<Duration>,
    stop: Stop,
) -> impl Stream<Item = Result<Told, Error>> + use<> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let telling = Telling { changes, untold: VecDeque::new(), has_begun: false, pause, deadline, stop };
    stream::unfold(Some(telling), |telling| async move {
        let mut telling = telling?;
        match telling.next().await {
            Ok(told) => Some((Ok(told), Some(telling))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

struct Telling {
    changes: Changes,
    untold: VecDeque<Change>,
    has_begun: bool,
    pause: Duration,
    deadline: Option<Instant>,
    stop: Stop,
}

impl Telling {
    async fn next(&mut self) -> Result<Told, Error> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Ok(Told::Start {});
        }
        loop {
            if let Some(change) = self.untold.pop_front() {
                return Ok(Told::Filesystem(Box::new(change.into())));
            }
            let quiet = Instant::now() + self.pause;
            let until = self.deadline.map_or(quiet, |deadline| deadline.min(quiet));
            tokio::select! {
                changes = self.changes.next() => self.untold.extend(changes?),
                () = tokio::time::sleep_until(until) => {
                    if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        return Err(Error::new(ErrorCode::DeadlineExceeded, "the time of the watch is over"));
                    }
                    return Ok(Told::Keepalive {});
                }
                () = self.stop.requested() => {
                    return Err(Error::new(ErrorCode::Unavailable, "the daemon ends"));
                }
            }
        }
    }
}
