//! The other side of the daemon's API, for the command line. Cheap to start: one connection over the Unix
//! socket, made on first use and kept.

mod conversation;
mod error;

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::{Frame, Incoming as IncomingBody};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use model::{Code, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::UnixStream;

pub use conversation::{Conversation, Incoming, Outgoing, Spoken};
pub use error::ClientError;

/// A connection to the daemon of one home.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    /// A connection between two requests. One taken for a conversation does not come back.
    idle: Mutex<Option<SendRequest<Body>>>,
    server_version: OnceLock<String>,
}

type Body = UnsyncBoxBody<Bytes, std::io::Error>;

impl Client {
    /// Connects to the daemon, which must be ours: whoever owns the socket hears all we say.
    pub async fn connect(home: &Path) -> Result<Self, ClientError> {
        let socket = crate::paths::socket(home);
        let client = Self { socket, idle: Mutex::new(None), server_version: OnceLock::new() };
        let connection = client.dial().await?;
        *client.idle() = Some(connection);
        Ok(client)
    }

    /// What the daemon called itself in its last answer; absent before the first.
    #[must_use]
    pub fn server_version(&self) -> Option<&str> {
        self.server_version.get().map(String::as_str)
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, empty()).await
    }

    pub async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        self.call(Method::POST, path, json(body)?).await
    }

    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::DELETE, path, empty()).await
    }

    /// Sends what `reader` gives as the body, in pieces.
    pub async fn put_file<R>(&self, path: &str, reader: R) -> Result<(), ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
    {
        let pieces = stream::try_unfold(reader, async |mut reader| {
            let mut piece = bytes::BytesMut::with_capacity(PIECE);
            let count = reader.read_buf(&mut piece).await?;
            Ok((count > 0).then(|| (Frame::data(piece.freeze()), reader)))
        });
        self.call(Method::PUT, path, StreamBody::new(pieces).boxed_unsync()).await
    }

    /// The body of an answer as it arrives. An answer that breaks off ends in an error.
    pub async fn get_stream(
        &self,
        path: &str,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + Unpin + 'static, ClientError> {
        self.stream(Method::GET, path, empty()).await
    }

    /// The same for an answer to something that is asked for. Dropping it is leaving.
    pub async fn post_stream<B: Serialize>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + Unpin + use<B>, ClientError> {
        self.stream(Method::POST, path, json(body)?).await
    }

    async fn stream(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<impl Stream<Item = Result<Bytes, ClientError>> + Send + Unpin + use<>, ClientError> {
        let (response, _) = self.send(method, path, body, HeaderMap::new()).await?;
        let body = BodyStream::new(checked(response).await?.into_body());
        Ok(Box::pin(body.filter_map(async |frame| match frame {
            Ok(frame) => frame.into_data().ok().map(Ok),
            Err(error) => Some(Err(ClientError::Receive(error))),
        })))
    }

    /// Opens a command's conversation.
    pub async fn converse<B: Serialize>(&self, path: &str, body: &B) -> Result<Conversation, ClientError> {
        self.upgrade(Method::POST, path, json(body)?).await
    }

    /// Joins the conversation of a command that runs.
    pub async fn attach(&self, path: &str) -> Result<Conversation, ClientError> {
        self.upgrade(Method::GET, path, empty()).await
    }

    /// A connection that speaks MCP from now on, a message a line.
    pub async fn speak_mcp<B: Serialize>(&self, path: &str, body: &B) -> Result<Spoken, ClientError> {
        Spoken::new(self.switch(Method::POST, path, json(body)?, crate::MCP_PROTOCOL).await?)
    }

    async fn upgrade(&self, method: Method, path: &str, body: Body) -> Result<Conversation, ClientError> {
        Conversation::new(self.switch(method, path, body, crate::FRAMES_PROTOCOL).await?)
    }

    async fn switch(
        &self,
        method: Method,
        path: &str,
        body: Body,
        protocol: &'static str,
    ) -> Result<Upgraded, ClientError> {
        let headers = HeaderMap::from_iter([
            (CONNECTION, HeaderValue::from_static("upgrade")),
            (UPGRADE, HeaderValue::from_static(protocol)),
        ]);
        let (response, _) = self.send(method, path, body, headers).await?;
        let response = checked(response).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(ClientError::NotUpgraded { status: response.status() });
        }
        hyper::upgrade::on(response).await.map_err(ClientError::Receive)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<T, ClientError> {
        let (response, connection) = self.send(method, path, body, HeaderMap::new()).await?;
        let response = checked(response).await?;
        let body = response.into_body().collect().await.map_err(ClientError::Receive)?.to_bytes();
        *self.idle() = Some(connection);
        // An answer without content is read as `null`, which is what `()` is made of.
        let body = if body.is_empty() { b"null" } else { &body[..] };
        serde_json::from_slice(body).map_err(ClientError::Decode)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Body,
        headers: HeaderMap,
    ) -> Result<(Response<IncomingBody>, SendRequest<Body>), ClientError> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(ClientError::Path)?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let kept = self.idle().take().filter(|connection| !connection.is_closed());
        let mut connection = match kept {
            Some(connection) => connection,
            None => self.dial().await?,
        };
        connection.ready().await.map_err(ClientError::Send)?;
        let response = connection.send_request(request).await.map_err(ClientError::Send)?;
        if let Some(version) =
            response.headers().get(crate::VERSION_HEADER).and_then(|value| value.to_str().ok())
        {
            self.server_version.get_or_init(|| version.to_owned());
        }
        Ok((response, connection))
    }

    async fn dial(&self) -> Result<SendRequest<Body>, ClientError> {
        let stream = open(&self.socket).await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(ClientError::Handshake)?;
        tokio::spawn(
            async move { crate::best_effort("drive a connection", connection.with_upgrades().await) },
        );
        Ok(sender)
    }

    fn idle(&self) -> MutexGuard<'_, Option<SendRequest<Body>>> {
        self.idle.lock().expect("nothing panics while it is held")
    }
}

async fn open(socket: &Path) -> Result<UnixStream, ClientError> {
    let at = |source| ClientError::Connect { socket: socket.to_owned(), source };
    let metadata = match std::fs::symlink_metadata(socket) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(ClientError::NoDaemon { socket: socket.to_owned() });
        }
        Err(error) => return Err(at(error)),
    };
    let owner = metadata.uid();
    if !metadata.file_type().is_socket() || owner != rustix::process::geteuid().as_raw() {
        return Err(ClientError::ForeignSocket { socket: socket.to_owned(), owner });
    }
    let address = crate::paths::Short::of(socket).map_err(at)?;
    match UnixStream::connect(address.as_path()).await {
        Ok(stream) => Ok(stream),
        // Left behind by a daemon that was killed.
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Err(ClientError::Refused { socket: socket.to_owned(), source: error })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ClientError::NoDaemon { socket: socket.to_owned() })
        }
        Err(error) => Err(at(error)),
    }
}

async fn checked(response: Response<IncomingBody>) -> Result<Response<IncomingBody>, ClientError> {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return Ok(response);
    }
    let body = response.into_body().collect().await.map_err(ClientError::Receive)?.to_bytes();
    let problem = serde_json::from_slice(&body).unwrap_or_else(|error| {
        let problem = Problem::from_error(Code::Internal, &error);
        Problem { detail: format!("the daemon answered {status} without saying why"), ..problem }
    });
    Err(ClientError::Problem(problem))
}

fn empty() -> Body {
    full(Bytes::new())
}

fn json<B: Serialize>(body: &B) -> Result<Body, ClientError> {
    Ok(full(serde_json::to_vec(body).map_err(ClientError::Encode)?.into()))
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_socket_of_ours_is_spoken_to() {
        let home = tempfile::tempdir().unwrap();
        assert!(matches!(Client::connect(home.path()).await, Err(ClientError::NoDaemon { .. })));

        let elsewhere = home.path().join("elsewhere.sock");
        let _listener = tokio::net::UnixListener::bind(&elsewhere).unwrap();
        let socket = crate::paths::socket(home.path());
        std::os::unix::fs::symlink(&elsewhere, &socket).unwrap();
        assert!(matches!(Client::connect(home.path()).await, Err(ClientError::ForeignSocket { .. })));

        std::fs::rename(&elsewhere, &socket).unwrap();
        Client::connect(home.path()).await.unwrap();
        let given = std::os::unix::fs::chown(&socket, Some(12345), None);
        let answered = Client::connect(home.path()).await;
        if rustix::process::geteuid().is_root() {
            given.unwrap();
            assert!(matches!(answered, Err(ClientError::ForeignSocket { owner: 12345, .. })));
        } else {
            // Nobody else can make a socket look like another's, nor ours like theirs.
            assert_eq!(given.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
            answered.unwrap();
        }
    }
}
