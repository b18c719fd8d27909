//! Files in a sandbox. Contents stream through in pieces; nothing is held whole.
//!
//! What is expected of init: an answer to every operation, or a problem. Before the answer to a read come the
//! contents as `stdout` frames; before the answer to a write it is sent them as `stdin` frames, the last one
//! empty. A listing too long for one frame comes in several answers, ended by the end of the stream.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http_body_util::BodyExt;
use model::exec::{FrameKind, Text};
use model::files::{FileOp, FileStat, Listing};
use model::{Code, Problem};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::io::AsyncRead;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::App;
use super::body::Which;
use super::query::{Param, ParamKind, Query};
use super::refusal::Refusal;
use super::relay::{Violation, plain_problem, typed};
use crate::frames::{FrameReader, FrameWriter};

pub(super) const PLAIN: &[Param] = &[PATH, USER];
pub(super) const MODE: &[Param] = &[PATH, USER, PERMISSIONS];
pub(super) const REMOVE: &[Param] = &[PATH, USER, RECURSIVE];

pub(super) async fn read(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Response, Refusal> {
    let query = query.only(PLAIN)?;
    let init = open(&app, &which, &query, &FileOp::Read { path: path(&query)? }).await?;
    download(init).await
}

/// The contents of a file as a response. The first frame decides whether it is one.
pub(super) async fn download(init: UnixStream) -> Result<Response, Refusal> {
    let mut reader = FrameReader::new(init);
    let first = contents(&mut reader).await?;
    let headers = [(CONTENT_TYPE, "application/octet-stream")];
    Ok((headers, Body::from_stream(rest(Some(first), reader))).into_response())
}

/// What of a file is still to come.
pub(crate) fn contents_of(
    reader: FrameReader<UnixStream>,
) -> impl Stream<Item = Result<Bytes, Problem>> + Send {
    rest(None, reader)
}

fn rest(
    first: Option<Contents>,
    reader: FrameReader<UnixStream>,
) -> impl Stream<Item = Result<Bytes, Problem>> + Send {
    stream::unfold(Some((first, reader)), |state| async move {
        let (first, mut reader) = state?;
        let next = match first {
            Some(first) => Ok(first),
            None => contents(&mut reader).await,
        };
        match next {
            Ok(Contents::Piece(bytes)) => Some((Ok(bytes), Some((None, reader)))),
            Ok(Contents::End) => None,
            // Ends the body without its end mark, so that the caller does not take a part for the whole.
            Err(problem) => Some((Err(problem), None)),
        }
    })
}

pub(crate) enum Contents {
    Piece(Bytes),
    End,
}

pub(crate) async fn contents(reader: &mut FrameReader<UnixStream>) -> Result<Contents, Problem> {
    match said(reader).await? {
        (FrameKind::Stdout, bytes) => Ok(Contents::Piece(bytes)),
        (kind @ FrameKind::Answer, payload) => {
            typed::<IgnoredAny>(kind, &payload).map_err(|error| broken(&error))?;
            Ok(Contents::End)
        }
        (kind, _) => Err(broken(&Violation::Kind { kind })),
    }
}

pub(super) async fn write(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
    request: Request,
) -> Result<StatusCode, Refusal> {
    let query = query.only(MODE)?;
    let operation = FileOp::Write { path: path(&query)?, mode: mode(&query)? };
    let init = open(&app, &which, &query, &operation).await?;
    upload(init, request.into_body()).await
}

pub(crate) async fn upload(init: UnixStream, body: Body) -> Result<StatusCode, Refusal> {
    let (read, write) = init.into_split();
    feed::<IgnoredAny>(&mut FrameReader::new(read), write, pieces(body)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sends the contents of a file, and hears the answer to all of them.
pub(crate) async fn feed<T: DeserializeOwned>(
    reader: &mut FrameReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
    contents: impl Stream<Item = Result<Bytes, Problem>>,
) -> Result<T, Problem> {
    // Outlives the sending: a closed half could be taken for the caller's leaving.
    let mut writer = FrameWriter::new(write);
    // Init can refuse at once, or in the middle when the disk is full; then the rest is not waited for.
    let early = tokio::select! {
        sent = send_contents(contents, &mut writer) => { sent?; None }
        answer = answer::<IgnoredAny>(reader) => Some(answer),
    };
    match early {
        Some(Ok(_)) => Err(broken(&Violation::Kind { kind: FrameKind::Answer })),
        Some(Err(problem)) => Err(problem),
        None => answer(reader).await,
    }
}

/// A body as it comes in.
pub(crate) fn pieces(body: Body) -> impl Stream<Item = Result<Bytes, Problem>> + Send {
    stream::unfold(Some(body), |body| async move {
        let mut body = body?;
        loop {
            let frame = match tokio::time::timeout(PATIENCE, body.frame()).await {
                Ok(frame) => frame?,
                Err(late) => return Some((Err(Problem::from_error(Code::BadRequest, &late)), None)),
            };
            match frame.map(|frame| frame.into_data()) {
                Ok(Ok(bytes)) => return Some((Ok(bytes), Some(body))),
                Ok(Err(_trailers)) => {}
                Err(error) => return Some((Err(Problem::from_error(Code::BadRequest, &error)), None)),
            }
        }
    })
}

async fn send_contents(
    contents: impl Stream<Item = Result<Bytes, Problem>>,
    writer: &mut FrameWriter<OwnedWriteHalf>,
) -> Result<(), Problem> {
    let mut contents = std::pin::pin!(contents);
    loop {
        let piece = match contents.next().await.transpose()? {
            // An empty frame would end the file.
            Some(piece) if piece.is_empty() => continue,
            Some(piece) => piece,
            None => Bytes::new(),
        };
        if writer.send(FrameKind::Stdin, &piece).await.is_err() {
            // Why it stopped listening is in what it said; the answer tells.
            return std::future::pending().await;
        }
        if piece.is_empty() {
            return Ok(());
        }
    }
}

pub(super) async fn remove(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<StatusCode, Refusal> {
    let query = query.only(REMOVE)?;
    let recursive = query.flag("recursive")?.unwrap_or(false);
    let operation = FileOp::Remove { path: path(&query)?, recursive };
    one_answer::<IgnoredAny>(&app, &which, &query, &operation).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn make_dir(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<StatusCode, Refusal> {
    let query = query.only(MODE)?;
    let operation = FileOp::MakeDir { path: path(&query)?, mode: mode(&query)? };
    one_answer::<IgnoredAny>(&app, &which, &query, &operation).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn stat(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Json<FileStat>, Refusal> {
    let query = query.only(PLAIN)?;
    let operation = FileOp::Stat { path: path(&query)? };
    Ok(Json(one_answer(&app, &which, &query, &operation).await?))
}

pub(super) async fn list(
    State(app): State<App>,
    Which(which): Which,
    query: Query,
) -> Result<Json<Listing>, Refusal> {
    let query = query.only(PLAIN)?;
    let init = open(&app, &which, &query, &FileOp::List { path: path(&query)? }).await?;
    Ok(Json(listing(init).await?))
}

/// A folder's contents, put together from as many answers as come before the stream ends.
pub(crate) async fn listing(init: UnixStream) -> Result<Listing, Problem> {
    let mut reader = FrameReader::new(init);
    let mut listing: Listing = answer(&mut reader).await?;
    while let Some(more) = next_answer::<Listing>(&mut reader).await? {
        listing.entries.extend(more.entries);
        if listing.entries.len() > MAX_ENTRIES {
            let detail = format!("the folder has more than {MAX_ENTRIES} entries");
            return Err(Problem::new(Code::TooLarge, detail));
        }
    }
    Ok(listing)
}

async fn open(app: &App, which: &str, query: &Query, operation: &FileOp) -> Result<UnixStream, Refusal> {
    Ok(app.control.file(which, query.text(USER.name)?, operation).await?)
}

async fn one_answer<T: DeserializeOwned>(
    app: &App,
    which: &str,
    query: &Query,
    operation: &FileOp,
) -> Result<T, Refusal> {
    let init = open(app, which, query, operation).await?;
    Ok(answer(&mut FrameReader::new(init)).await?)
}

/// The next answer from init.
pub(crate) async fn answer<T: DeserializeOwned>(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
) -> Result<T, Problem> {
    match said(reader).await? {
        (kind @ FrameKind::Answer, payload) => typed(kind, &payload).map_err(|error| broken(&error)),
        (kind, _) => Err(broken(&Violation::Kind { kind })),
    }
}

/// The next answer of many. None at their end.
pub(crate) async fn next_answer<T: DeserializeOwned>(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
) -> Result<Option<T>, Problem> {
    match reader.next().await.map_err(|error| broken(&error))? {
        None => Ok(None),
        Some((kind @ FrameKind::Problem, payload)) => {
            Err(plain_problem(&typed(kind, &payload).map_err(|error| broken(&error))?))
        }
        Some((kind @ FrameKind::Answer, payload)) => {
            typed(kind, &payload).map(Some).map_err(|error| broken(&error))
        }
        Some((kind, _)) => Err(broken(&Violation::Kind { kind })),
    }
}

/// The next frame from init, its own problems taken out.
async fn said(reader: &mut FrameReader<impl AsyncRead + Unpin>) -> Result<(FrameKind, Bytes), Problem> {
    match reader.next().await.map_err(|error| broken(&error))? {
        Some((kind @ FrameKind::Problem, payload)) => {
            Err(plain_problem(&typed(kind, &payload).map_err(|error| broken(&error))?))
        }
        Some(frame) => Ok(frame),
        None => Err(Problem::new(Code::NotReady, "the sandbox ended before it answered")),
    }
}

fn broken(error: &dyn std::error::Error) -> Problem {
    Problem::from_error(Code::Internal, error)
}

fn path(query: &Query) -> Result<Text, Refusal> {
    match query.bytes(PATH.name) {
        Some(path) if path.first() == Some(&b'/') && !path.contains(&0) => Ok(Text(path.to_vec())),
        Some(_) => Err(Refusal::bad_request("`path` is not absolute")),
        None => Err(Refusal::bad_request("`path` is missing")),
    }
}

fn mode(query: &Query) -> Result<Option<u32>, Refusal> {
    match query.text(PERMISSIONS.name)?.map(|text| u32::from_str_radix(text, 8)) {
        None => Ok(None),
        Some(Ok(mode)) if mode <= 0o7777 => Ok(Some(mode)),
        Some(Ok(_) | Err(_)) => Err(Refusal::bad_request("`mode` is octal, for example 644")),
    }
}

const PATH: Param =
    Param { name: "path", kind: ParamKind::RequiredText, about: "Absolute, inside the sandbox" };
const USER: Param =
    Param { name: "user", kind: ParamKind::Text, about: "As whom; the sandbox's own user if absent" };
const PERMISSIONS: Param =
    Param { name: "mode", kind: ParamKind::Text, about: "Permissions in octal, for example 644" };
const RECURSIVE: Param = Param { name: "recursive", kind: ParamKind::Flag, about: "A folder with all in it" };
/// How long the caller may be silent in the middle of an upload.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_ENTRIES: usize = 1_000_000;
