//! The Connect protocol with JSON messages, as E2B's SDKs speak it: one message for another, or streams of framed messages.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::{Code, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::sentence;

/// Why a call failed.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Error {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

/// The words of the protocol that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ErrorCode {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    Unauthenticated,
    ResourceExhausted,
    FailedPrecondition,
    Unimplemented,
    Unavailable,
    Internal,
}

impl ErrorCode {
    fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument | Self::FailedPrecondition => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::AlreadyExists => StatusCode::CONFLICT,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl Error {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let code = match problem.code {
            Code::BadRequest
            | Code::ProgramNotFound
            | Code::ProgramNotExecutable
            | Code::LimitUnenforceable => ErrorCode::InvalidArgument,
            Code::Unauthorized => ErrorCode::Unauthenticated,
            Code::Forbidden | Code::Refused => ErrorCode::PermissionDenied,
            Code::NotFound | Code::WorkspaceGone => ErrorCode::NotFound,
            Code::NameTaken | Code::Conflict => ErrorCode::AlreadyExists,
            Code::NotReady => ErrorCode::Unavailable,
            Code::DiskFull | Code::TooLarge => ErrorCode::ResourceExhausted,
            Code::MachineUnable => ErrorCode::FailedPrecondition,
            Code::Internal => {
                tracing::error!(causes = ?problem.causes, "{}", problem.detail);
                ErrorCode::Internal
            }
        };
        Self::new(code, sentence(&problem))
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        (self.code.status(), axum::Json(self)).into_response()
    }
}

/// The one message of a unary call.
pub(super) async fn message<T: DeserializeOwned>(request: Request) -> Result<T, Error> {
    let limited = Limited::new(request.into_body(), MAX_MESSAGE);
    let body = match tokio::time::timeout(PATIENCE, limited.collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large()),
        Ok(Err(error)) => return Err(Error::invalid(error.to_string())),
        Err(_late) => {
            return Err(Error::new(ErrorCode::DeadlineExceeded, "the message did not come to its end"));
        }
    };
    parse(&body)
}

/// What a client sends of a stream, message by message.
#[derive(Debug)]
pub(super) struct Messages {
    body: Body,
    buffer: BytesMut,
}

impl Messages {
    pub(super) fn of(request: Request) -> Self {
        Self { body: request.into_body(), buffer: BytesMut::new() }
    }

    /// The only message of a call whose answer is a stream.
    pub(super) async fn only<T: DeserializeOwned>(request: Request) -> Result<T, Error> {
        let mut messages = Self::of(request);
        let message = match tokio::time::timeout(PATIENCE, messages.next()).await {
            Ok(Some(message)) => message,
            Ok(None) => Err(Error::invalid("the request holds no message")),
            Err(_late) => Err(Error::new(ErrorCode::DeadlineExceeded, "the message did not come to its end")),
        };
        tokio::spawn(messages.drain());
        message
    }

    /// What comes after the message is its end. A connection that is closed with that unread is reset, and what the client
    /// has not read of the answer is lost on its way.
    async fn drain(mut self) {
        let mut rest = DRAINED;
        let end = async {
            while let Some(Ok(frame)) = self.body.frame().await {
                rest = rest.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if rest == 0 {
                    break;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, end).await.is_err() {
            tracing::debug!("a request did not come to its end");
        }
    }

    /// None at the end.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> Option<Result<T, Error>> {
        loop {
            match take(&mut self.buffer) {
                Ok(Some(Framed { flags, .. })) if flags & LAST != 0 => return None,
                Ok(Some(Framed { flags, .. })) if flags != 0 => {
                    return Some(Err(Error::invalid("compressed messages are not taken")));
                }
                Ok(Some(Framed { payload, .. })) => return Some(parse(&payload)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.buffer.put(bytes);
                    }
                }
                Some(Err(error)) => return Some(Err(Error::invalid(error.to_string()))),
                None if self.buffer.is_empty() => return None,
                None => return Some(Err(Error::invalid("the stream ended within a message"))),
            }
        }
    }
}

/// One message as it travels: flags, and what it holds.
#[derive(Debug, PartialEq, Eq)]
struct Framed {
    flags: u8,
    payload: Bytes,
}

/// The next whole message of a buffer, if it is there. Its length is refused before anything is held for it.
fn take(buffer: &mut BytesMut) -> Result<Option<Framed>, Error> {
    let Some(&[flags, a, b, c, d]) = buffer.first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if length > MAX_MESSAGE {
        return Err(too_large());
    }
    if buffer.len() < HEAD + length {
        return Ok(None);
    }
    buffer.advance(HEAD);
    Ok(Some(Framed { flags, payload: buffer.split_to(length).freeze() }))
}

/// Answers with a stream of messages. An error ends it, in the way that the protocol has for it.
pub(super) fn answer<T: Serialize + 'static>(
    messages: impl Stream<Item = Result<T, Error>> + Send + 'static,
) -> Response {
    let messages: Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>> = Box::pin(messages);
    let frames = stream::unfold(Some(messages), async |messages| {
        let mut messages = messages?;
        let (frame, rest) = match messages.next().await {
            Some(Ok(message)) => (frame(0, &message), Some(messages)),
            Some(Err(error)) => (frame(LAST, &End { error: Some(error) }), None),
            None => (frame(LAST, &End { error: None }), None),
        };
        Some((Ok::<_, std::convert::Infallible>(frame), rest))
    });
    ([(CONTENT_TYPE, STREAM)], Body::from_stream(frames)).into_response()
}

/// A stream that has failed before it began.
pub(super) fn refused(error: Error) -> Response {
    answer(stream::iter([Err::<(), _>(error)]))
}

#[derive(Debug, Serialize)]
struct End {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error>,
}

fn frame(flags: u8, message: &impl Serialize) -> Bytes {
    let payload = serde_json::to_vec(message).expect("wire types cannot fail to serialise");
    let mut frame = BytesMut::with_capacity(HEAD + payload.len());
    frame.put_u8(flags);
    frame.put_u32(u32::try_from(payload.len()).expect("messages are made of pieces that are short"));
    frame.put_slice(&payload);
    frame.freeze()
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    // A message without fields may be sent as nothing at all.
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    if !bytes.trim_ascii_start().starts_with(b"{") {
        // A list would be read as the fields of an object in their order.
        return Err(Error::invalid("the message is not a JSON object"));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("the message is not what is expected here: {error}")))
}

/// How long the caller will wait for the whole call, if it says so.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let milliseconds = headers.get("connect-timeout-ms")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_millis(milliseconds)).filter(|span| !span.is_zero())
}

/// How often a stream on which nothing happens is to say that it is alive.
pub(super) fn keepalive(headers: &HeaderMap) -> Duration {
    let asked = headers.get("keepalive-ping-interval").and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(asked.unwrap_or(90).clamp(1, 3600))
}

fn too_large() -> Error {
    Error::new(ErrorCode::ResourceExhausted, format!("the message is larger than {MAX_MESSAGE} bytes"))
}

const HEAD: usize = 5;
/// Marks the last frame of a stream.
const LAST: u8 = 2;
const STREAM: &str = "application/connect+json";
/// Input for a command comes in one message.
const MAX_MESSAGE: usize = 16 << 20;
/// Bytes after a message that are still read.
const DRAINED: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_taken_whole_and_in_order() {
        let mut buffer = BytesMut::new();
        buffer.extend_from_slice(&frame(0, &1));
        buffer.extend_from_slice(&frame(LAST, &End { error: None }));
        assert_eq!(take(&mut buffer).unwrap(), Some(Framed { flags: 0, payload: Bytes::from_static(b"1") }));
        let last = take(&mut buffer).unwrap().unwrap();
        assert_eq!((last.flags, &*last.payload), (LAST, &b"{}"[..]));
        assert_eq!(take(&mut buffer).unwrap(), None);
    }

    #[test]
    fn a_length_that_nobody_means_is_refused_before_it_is_waited_for() {
        let mut buffer = BytesMut::from(&[0, 0xff, 0xff, 0xff, 0xff][..]);
        assert_eq!(take(&mut buffer).unwrap_err().code, ErrorCode::ResourceExhausted);
    }

    #[tokio::test]
    async fn a_torn_or_compressed_message_is_an_error() {
        for bytes in [&[0, 0, 0, 0, 9, b'{'][..], &[1, 0, 0, 0, 2, b'{', b'}'], &[0, 0, 0, 0, 1, b'?']] {
            let request = Request::new(Body::from(bytes.to_vec()));
            assert!(Messages::only::<serde_json::Value>(request).await.is_err(), "{bytes:?}");
        }
    }

    /// What a stream says that comes in these pieces: the messages up to its end, or to the first error.
    fn heard(pieces: Vec<Vec<u8>>) -> Result<Vec<serde_json::Value>, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let bytes: usize = pieces.iter().map(Vec::len).sum();
        let pieces = pieces.into_iter().map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
        let mut messages = Messages::of(Request::new(Body::from_stream(stream::iter(pieces))));
        runtime.block_on(async {
            let mut heard = Vec::new();
            while let Some(message) = messages.next().await {
                heard.push(message?);
                assert!(heard.len() <= bytes / HEAD, "more messages than bytes");
            }
            Ok(heard)
        })
    }

    /// The same bytes in other pieces.
    fn cut(bytes: &[u8], at: &[prop::sample::Index]) -> Vec<Vec<u8>> {
        let mut at: Vec<usize> = at.iter().map(|at| at.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        at.windows(2).map(|part| bytes[part[0]..part[1]].to_vec()).collect()
    }

    fn streamed(texts: &[String]) -> (Vec<u8>, Vec<serde_json::Value>) {
        let values: Vec<_> = texts.iter().map(|text| serde_json::json!({ "text": text })).collect();
        (values.iter().flat_map(|value| frame(0, value)).collect(), values)
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_end(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8)) {
            drop(heard(pieces));
        }

        #[test]
        fn messages_are_the_same_however_they_are_cut(
            texts in prop::collection::vec(".{0,40}", 0..6),
            at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            ended in any::<bool>(),
        ) {
            let (mut bytes, values) = streamed(&texts);
            if ended {
                bytes.extend_from_slice(&frame(LAST, &End { error: None }));
            }
            prop_assert_eq!(heard(cut(&bytes, &at)).unwrap(), values);
        }

        #[test]
        fn a_damaged_stream_ends_and_says_nothing_that_was_not_said(
            texts in prop::collection::vec(".{0,40}", 1..6),
            at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            shortened in any::<bool>(),
        ) {
            let (mut bytes, values) = streamed(&texts);
            let place = place.index(bytes.len());
            if shortened {
                bytes.truncate(place);
            } else {
                bytes[place] = byte;
            }
            let before = values.iter().scan(0, |end, value| {
                *end += frame(0, value).len();
                Some(*end)
            });
            let whole = before.take_while(|end| *end <= place).count();
            if let Ok(heard) = heard(cut(&bytes, &at)) {
                prop_assert!(heard.len() >= whole);
                prop_assert_eq!(&heard[..whole], &values[..whole]);
            }
        }

        #[test]
        fn any_message_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let read = runtime.block_on(message::<serde_json::Value>(Request::new(Body::from(bytes))));
            if let Err(error) = read {
                prop_assert_eq!(error.code, ErrorCode::InvalidArgument);
            }
        }
    }
}
