//! The logs route: a sandbox's log file as lines.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use model::{Code, ExecId, Problem};
use tokio::sync::mpsc;

use super::body::Which;
use super::peer::{QUEUE, lines};
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::{App, Stop};
use crate::line;
use crate::logs::{LogError, Records, records};

pub(super) const QUERY: &[Param] = &[
    Param { name: "follow", kind: ParamKind::Flag, about: "Go on with what is written next" },
    Param { name: "exec", kind: ParamKind::Number, about: "Only this command" },
];

pub(super) async fn logs(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Response, Refusal> {
    let query = query.only(QUERY)?;
    let follow = query.flag("follow")?.unwrap_or(false);
    let exec = query.number("exec")?.map(ExecId);
    let path = app.control.log_path(&which).await?;
    read(&path, exec, follow.then_some(app.stop))
}

/// Answers with the records of a file; with a stop to watch, it goes on until that, the file's removal or
/// the caller's leaving.
pub(super) fn read(path: &Path, exec: Option<ExecId>, follow: Option<Stop>) -> Result<Response, Refusal> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    match records(path) {
        Ok(records) => {
            tokio::spawn(async move {
                if let Err(error) = copy(records, exec, follow, &sender).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "reading a log ended early");
                }
            });
        }
        // Nothing has been written yet.
        Err(LogError::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Problem::from_error(Code::Internal, &error).into()),
    }
    Ok(lines(receiver))
}

async fn copy(
    mut records: Records<File>,
    exec: Option<ExecId>,
    follow: Option<Stop>,
    sender: &mpsc::Sender<Bytes>,
) -> Result<(), CopyError> {
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let batch = batch(&mut records, exec);
            (records, batch)
        });
        let (back, batch) = read.await.map_err(CopyError::Thread)?;
        records = back;
        let batch = batch.map_err(CopyError::Log)?;
        if !batch.lines.is_empty() && sender.send(batch.lines).await.is_err() {
            return Ok(());
        }
        if !batch.at_end {
            continue;
        }
        let Some(stop) = &follow else { return Ok(()) };
        if records.is_removed().map_err(CopyError::Log)? {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = stop.requested() => return Ok(()),
            () = sender.closed() => return Ok(()),
        }
    }
}

struct Batch {
    lines: Bytes,
    at_end: bool,
}

fn batch(records: &mut Records<File>, exec: Option<ExecId>) -> Result<Batch, LogError> {
    let mut lines = Vec::new();
    while lines.len() < BATCH {
        match records.read()? {
            Some(record) if exec.is_none_or(|exec| exec == record.exec) => {
                lines.extend_from_slice(&line::encode(&record.to_line()));
            }
            Some(_) => {}
            None => return Ok(Batch { lines: lines.into(), at_end: true }),
        }
    }
    Ok(Batch { lines: lines.into(), at_end: false })
}

#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error("the reading thread ended")]
    Thread(#[source] tokio::task::JoinError),
    #[error("failed to take a record")]
    Log(#[source] LogError),
}

const BATCH: usize = 64 << 10;
const POLL: Duration = Duration::from_millis(100);
