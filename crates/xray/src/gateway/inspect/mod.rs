//! Connections that are opened because a rule asks for it: every request on them is decided about, and on record.
//!
//! Only HTTP passes. Bodies are passed on as they come; nothing is kept of them but their beginning, for the record.

mod body;
mod boundary;
mod exchange;
mod going;
mod head;
mod instead;
mod outside;
mod signer;
mod stream;
mod talk;

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use model::net::is_ours;
use model::request::Request;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::connection::reset;
use super::opening::{self, HANDSHAKE, LONGEST, Opening};
use super::outlet::Outlet;
use super::relay::{Flow, Stop, attempt, contradiction};
use super::way::Exit;
use stream::Heard;
use talk::Talk;

pub(super) use body::Budget;
pub(super) use outside::Trust;
pub use outside::TrustError;
pub(super) use signer::{SignError, Signer};

/// Serves a connection, of which something may have been heard already, until it ends. `None`: it did so by itself.
pub(super) async fn serve(
    outlet: &Arc<Outlet>,
    connection: &Request,
    (heard, mut inside): (Vec<u8>, TcpStream),
    exit: Exit,
    flow: &Arc<Flow>,
) -> Option<Stop> {
    let first = match tokio::time::timeout(PATIENCE, hear_first(heard, &mut inside)).await {
        Ok(Ok(first)) => first,
        Ok(Err(error)) => return stopped(&inside, Stop::Failed(error)),
        Err(_elapsed) => return stopped(&inside, Stop::Failed(io::ErrorKind::TimedOut.into())),
    };
    if first.is_empty() {
        return None;
    }
    let (policy, opening) = (outlet.policy(), opening::read(&first));
    // Of a name, what each request says is looked at.
    let may_contradict = connection.name.is_none() && policy.goes_out(attempt(connection));
    if (may_contradict || opening == Opening::Unclear)
        && let Some(rule) = contradiction(&policy, connection, &opening)
    {
        return stopped(&inside, Stop::Denied(rule));
    }
    let said = match opening {
        Opening::For(said) => Some(said),
        Opening::Silent | Opening::Unknown | Opening::Unfinished | Opening::Unclear => None,
    };
    if let (Some(name), Some(said), true) = (&connection.name, &said, first[0] == HANDSHAKE)
        && name != said
        && !is_ours(name)
    {
        let rule = format!("it was to reach `{name}` and says `{said}`, and its requests are looked at");
        return stopped(&inside, Stop::Denied(rule));
    }
    let address = || connection.address.map(|address| address.to_string()).unwrap_or_default();
    // What goes by an address may still say which of that server's names it means.
    let host = connection.name.clone().or_else(|| said.clone()).unwrap_or_else(address);
    let ended = if first[0] == HANDSHAKE {
        let Some(signer) = outlet.signer() else {
            let rule =
                "the sandbox was made without a rule that inspects, and trusts nobody of ours".to_owned();
            return stopped(&inside, Stop::Denied(rule));
        };
        let config = match signer.host(said.as_deref().unwrap_or(&host)) {
            Ok(config) => config,
            Err(error) => return stopped(&inside, Stop::Failed(io::Error::other(error))),
        };
        let heard = Heard::new(first, inside, Arc::clone(flow));
        let accept = tokio::time::timeout(PATIENCE, TlsAcceptor::from(config).accept(heard)).await;
        match accept {
            Ok(Ok(stream)) => {
                Talk::over_tls(outlet, connection, host, &exit).map(|talk| (talk, Inside::tls(stream)))
            }
            Ok(Err(error)) => Err(error),
            Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
        }
    } else if first[0].is_ascii_uppercase() {
        let heard = Heard::new(first, inside, Arc::clone(flow));
        Ok((Talk::plain(outlet, connection, host, exit), Inside::plain(heard)))
    } else {
        return stopped(&inside, Stop::Denied("only HTTP passes where requests are looked at".to_owned()));
    };
    match ended {
        Ok((talk, inside)) => converse(Arc::new(talk), inside).await,
        Err(error) => Some(Stop::Failed(error)),
    }
}

/// Reads enough to tell whom a client speaks to, if it says so. Empty: it has nothing to say.
async fn hear_first(mut first: Vec<u8>, from: &mut TcpStream) -> io::Result<Vec<u8>> {
    while first.len() < LONGEST && matches!(opening::read(&first), Opening::Unknown | Opening::Unfinished) {
        if from.read_buf(&mut first).await? == 0 {
            break;
        }
    }
    Ok(first)
}

/// A connection from inside, whichever way it is spoken on.
struct Inside {
    stream: Box<dyn Bytes>,
    is_http2: bool,
}

trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Bytes for S {}

impl Inside {
    fn tls(stream: TlsStream<Heard>) -> Self {
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Self { stream: Box::new(stream), is_http2 }
    }

    fn plain(stream: Heard) -> Self {
        Self { stream: Box::new(stream), is_http2: false }
    }
}

async fn converse(talk: Arc<Talk>, inside: Inside) -> Option<Stop> {
    let Inside { stream, is_http2 } = inside;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LONGEST_HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(LONGEST_HEAD as u32)
        .max_concurrent_streams(AT_ONCE)
        .keep_alive_interval(Some(HEAD));
    // Agreed on by now, so that nobody waits for a first byte to tell.
    let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    let service = service_fn(|request| {
        let talk = Arc::clone(&talk);
        async move { talk.answer(request).await }
    });
    let serving = async {
        let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
        talk.going.tunnels_end().await;
        served
    };
    let cut = tokio::select! {
        served = serving => return served.err().map(|error| Stop::Failed(io::Error::other(chain(&*error)))),
        cut = talk.cut() => cut,
    };
    talk.going.end().await;
    Some(Stop::Cut(cut))
}

fn stopped(inside: &TcpStream, stop: Stop) -> Option<Stop> {
    reset(inside);
    Some(stop)
}

/// An error with its causes.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

/// For the first bytes, and for a handshake.
const PATIENCE: Duration = Duration::from_secs(20);
/// For the head of a request, and between two of them.
const HEAD: Duration = Duration::from_secs(60);
const LONGEST_HEAD: usize = 64 << 10;
/// Requests on one connection.
const AT_ONCE: u32 = 128;
