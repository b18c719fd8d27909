//! What answers in place of a host: the gateway itself, or a service of this machine. Nobody outside is asked.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use model::request::Header;

use super::super::way::Exit;
use super::body::Watched;
use super::exchange::Exchange;
use super::stream::Wire;
use super::talk::{Answer, PassError};

/// The same to everybody, when all that was asked has been read.
pub(super) async fn fixed(
    (status, headers, text): (u16, &[Header], &str),
    asked: Incoming,
    exchange: &Arc<Exchange>,
) -> Result<Answer, PassError> {
    let mut asked = Watched::new(asked, Arc::clone(&exchange.sent), None);
    while let Some(frame) = asked.frame().await {
        frame.map_err(PassError::Read)?;
    }
    let mut answer = Response::new(Either::Right(Full::new(Bytes::copy_from_slice(text.as_bytes()))));
    *answer.status_mut() = StatusCode::from_u16(status).map_err(|error| PassError::Answer(error.into()))?;
    for Header { name, value } in headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|error| PassError::Answer(error.into()))?;
        let value = HeaderValue::from_str(value).map_err(|error| PassError::Answer(error.into()))?;
        answer.headers_mut().append(name, value);
    }
    exchange.answered(status, answer.version(), answer.headers());
    exchange.received.see(text.as_bytes());
    exchange.end(None);
    Ok(answer)
}

/// Where a service is asked for what was to be asked of a host, whom the request goes on naming.
pub(super) fn at(service: SocketAddr, parts: &mut Parts, host: &Uri) -> Result<Uri, hyper::http::Error> {
    if let Some(named) = host.authority().filter(|_named| !parts.headers.contains_key(HOST)) {
        parts.headers.insert(HOST, HeaderValue::from_str(named.as_str())?);
    }
    let path = host.path_and_query().map_or("/", |path| path.as_str());
    Uri::builder().scheme("http").authority(service.to_string()).path_and_query(path).build()
}

/// Dials the service that a request is addressed to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Services;

impl tower::Service<Uri> for Services {
    type Response = TokioIo<Wire>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Wire>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(async move {
            let service = uri.authority().and_then(|service| service.as_str().parse().ok());
            let service = service.ok_or(io::ErrorKind::AddrNotAvailable)?;
            Ok(TokioIo::new(Wire::Plain(Exit::Service(service).dial().await?)))
        })
    }
}
