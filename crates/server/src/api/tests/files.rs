//! Files from the real client through the real server to an init that may be hostile.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use futures_util::StreamExt;
use model::exec::FrameKind;
use model::files::Listing;
use model::{Code, Problem};
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use super::super::refusal::Refusal;
use super::super::{Stop, files};
use super::{Init, served, soon};
use crate::client::{Client, ClientError};
use crate::frames::FrameReader;

async fn stage() -> (Init, Client, tempfile::TempDir) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = Arc::new(Mutex::new(Some(theirs)));
    let take = async move || theirs.lock().await.take().expect("one request per stage");
    let (read, write, list) = (take.clone(), take.clone(), take);
    let router = Router::new()
        .route(
            "/file",
            get(async move || files::download(read().await).await)
                .put(async move |request: Request| files::upload(write().await, request.into_body()).await),
        )
        .route("/list", get(async move || Ok::<_, Refusal>(axum::Json(files::listing(list().await).await?))));
    let (home, client) = served(router, &Stop::new()).await;
    (Init(ours), client, home)
}

async fn download(client: &Client) -> Result<Vec<u8>, ClientError> {
    let mut body = client.get_stream("/file").await?;
    let mut bytes = Vec::new();
    while let Some(piece) = soon(body.next()).await {
        bytes.extend(piece?);
    }
    Ok(bytes)
}

#[tokio::test]
async fn a_file_is_read() {
    let (mut init, client, _home) = stage().await;
    init.say(FrameKind::Stdout, "one ").await;
    init.say(FrameKind::Stdout, "two").await;
    init.say(FrameKind::Answer, "null").await;
    assert_eq!(download(&client).await.unwrap(), b"one two");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_problem() {
    let (mut init, client, _home) = stage().await;
    let problem = Problem::new(Code::NotFound, "no such file");
    init.say(FrameKind::Problem, serde_json::to_vec(&problem).unwrap()).await;
    assert!(matches!(download(&client).await, Err(ClientError::Problem(heard)) if heard == problem));
}

#[tokio::test]
async fn half_a_file_is_not_taken_for_the_whole() {
    for rest in [&b""[..], b"\x16\x00\x00\x00\x00", b"\xff\x00\x00\x00\x00", b"\x10\x09\x00"] {
        let (mut init, client, _home) = stage().await;
        init.say(FrameKind::Stdout, "half").await;
        init.raw(rest).await;
        drop(init);
        // Whether the head was already sent when it broke off is a matter of timing.
        let broken = download(&client).await;
        assert!(
            matches!(broken, Err(ClientError::Receive(_) | ClientError::Send(_))),
            "{rest:?}: {broken:?}"
        );
    }
}

#[tokio::test]
async fn a_file_is_written() {
    let (mut init, client, _home) = stage().await;
    let contents: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let sent = contents.clone();
    let written = tokio::spawn(async move {
        let mut reader = FrameReader::new(&mut init.0);
        let mut bytes = Vec::new();
        loop {
            match reader.next().await.unwrap().unwrap() {
                (FrameKind::Stdin, piece) if piece.is_empty() => break,
                (FrameKind::Stdin, piece) => bytes.extend(piece),
                other => panic!("{other:?}"),
            }
        }
        init.say(FrameKind::Answer, "null").await;
        bytes
    });
    soon(client.put_file("/file", std::io::Cursor::new(sent))).await.unwrap();
    assert!(written.await.unwrap() == contents);
}

#[tokio::test]
async fn a_full_disk_ends_an_upload_early() {
    let (mut init, client, _home) = stage().await;
    let problem = serde_json::to_vec(&Problem::new(Code::DiskFull, "no room")).unwrap();
    init.say(FrameKind::Problem, problem).await;
    let answer = soon(client.put_file("/file", tokio::io::repeat(0))).await;
    assert!(matches!(answer, Err(ClientError::Problem(problem)) if problem.code == Code::DiskFull));
}

#[tokio::test]
async fn a_listing_is_put_together() {
    let (mut init, client, _home) = stage().await;
    let entry =
        r#"{"name":"a","kind":"file","size":1,"mode":420,"uid":0,"gid":0,"modified":"2026-01-01T00:00:00Z"}"#;
    for _ in 0..2 {
        init.say(FrameKind::Answer, format!(r#"{{"entries":[{entry}]}}"#)).await;
    }
    drop(init);
    let listing: Listing = soon(client.get("/list")).await.unwrap();
    assert_eq!(listing.entries.len(), 2);
}
