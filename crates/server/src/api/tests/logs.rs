//! A log read through the real server while it is written.

use std::io::Write;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use model::ExecId;

use super::super::{Stop, log};
use super::{served, soon};
use crate::client::{Client, ClientError};
use crate::line::{LogLine, Output, Stream as OutputStream};

struct Stage {
    log: PathBuf,
    stop: Stop,
    client: Client,
    home: tempfile::TempDir,
}

async fn stage() -> Stage {
    let stop = Stop::new();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (all, followed, until) = (log.clone(), log.clone(), stop.clone());
    let router = Router::new()
        .route("/all", get(async move || log::read(&all, Some(ExecId(1)), None)))
        .route("/follow", get(async move || log::read(&followed, None, Some(until))));
    let (_socket, client) = served(router, &stop).await;
    Stage { log, stop, client, home: folder }
}

fn append(path: &Path, exec: u32, data: &str) {
    let mut record = u32::try_from(data.len()).unwrap().to_le_bytes().to_vec();
    record.push(1);
    record.extend(exec.to_le_bytes());
    record.extend(1000_u64.to_le_bytes());
    record.extend(data.as_bytes());
    std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(&record).unwrap();
}

async fn line(body: &mut (impl Stream<Item = Result<Bytes, ClientError>> + Unpin)) -> LogLine {
    serde_json::from_slice(&soon(body.next()).await.unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn one_command_of_several() {
    let stage = stage().await;
    append(&stage.log, 1, "mine");
    append(&stage.log, 2, "other");
    let mut body = stage.client.get_stream("/all").await.unwrap();
    let mine = line(&mut body).await;
    assert_eq!(
        (mine.exec, mine.stream, mine.output),
        (ExecId(1), OutputStream::Stdout, Output::Text("mine".into()))
    );
    assert!(soon(body.next()).await.is_none());
}

#[tokio::test]
async fn nothing_written_yet_is_an_empty_log() {
    let stage = stage().await;
    let mut body = stage.client.get_stream("/all").await.unwrap();
    assert!(soon(body.next()).await.is_none());
}

#[tokio::test]
async fn following_ends_with_the_daemon_or_the_file() {
    for remove in [true, false] {
        let stage = stage().await;
        append(&stage.log, 1, "first");
        let mut body = stage.client.get_stream("/follow").await.unwrap();
        assert_eq!(line(&mut body).await.output, Output::Text("first".into()));
        append(&stage.log, 2, "second");
        assert_eq!(line(&mut body).await.output, Output::Text("second".into()));
        if remove {
            stage.home.close().unwrap();
        } else {
            stage.stop.request();
        }
        assert!(soon(body.next()).await.is_none());
    }
}
