//! The requests of one connection: each is decided about, put on record, passed on and answered.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, EXPECT, HOST as HOST_HEADER, HeaderValue};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::net::{Ask, Attempt, Decision, HOST, Verdict};
use model::request::{Http, Protocol, Request};
use tokio::task::JoinSet;

use super::super::outlet::Outlet;
use super::body::Watched;
use super::boundary::{self, Destination};
use super::chain;
use super::exchange::{Exchange, message};
use super::head::{said_host, strip, take_upgrade};
use super::outside::{Speech, Way};
use crate::redact::Redactor;

pub(super) struct Talk {
    outlet: Arc<Outlet>,
    connection: Request,
    /// Whom it is with: the name that was decided about, or else what it says.
    host: String,
    is_tls: bool,
    outside: Client<Way, Watched>,
    /// For what changes its protocol on the way.
    outside_http1: Client<Way, Watched>,
    tunnels: tokio::sync::Mutex<JoinSet<()>>,
}

type Answer = Response<Either<Watched, Full<Bytes>>>;

impl Talk {
    pub(super) fn over_tls(
        outlet: &Arc<Outlet>,
        connection: &Request,
        host: String,
        addresses: Vec<SocketAddr>,
    ) -> io::Result<Self> {
        let addresses: Arc<[SocketAddr]> = addresses.into();
        // This machine's services have certificates for the name by which it knows itself.
        let certified = if host == HOST { "localhost" } else { &host };
        let way = |speech| Way::tls(Arc::clone(&addresses), certified, outlet.trust(), speech);
        let ways = (way(Speech::Any)?, way(Speech::OnlyHttp1)?);
        Ok(Self::new(outlet, connection, host, true, ways))
    }

    pub(super) fn plain(
        outlet: &Arc<Outlet>,
        connection: &Request,
        host: String,
        addresses: Vec<SocketAddr>,
    ) -> Self {
        let way = Way::plain(addresses.into());
        Self::new(outlet, connection, host, false, (way.clone(), way))
    }

    fn new(outlet: &Arc<Outlet>, connection: &Request, host: String, is_tls: bool, ways: (Way, Way)) -> Self {
        let client = |way| Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE).build(way);
        Self {
            outlet: Arc::clone(outlet),
            connection: connection.clone(),
            host,
            is_tls,
            outside: client(ways.0),
            outside_http1: client(ways.1),
            tunnels: tokio::sync::Mutex::default(),
        }
    }

    /// Returns when what changed its protocol has ended.
    pub(super) async fn tunnels_end(&self) {
        let mut tunnels = self.tunnels.lock().await;
        while let Some(ended) = tunnels.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a connection that changed its protocol failed");
            }
        }
    }

    pub(super) async fn answer(&self, request: hyper::Request<Incoming>) -> Result<Answer, Infallible> {
        let (mut parts, body) = request.into_parts();
        let redactor = self.redactor();
        let record = self.record(&parts, &redactor);
        let mut decision = self.decide(&parts);
        let (path, headers) = (parts.uri.clone(), parts.headers.clone());
        if decision.verdict == Verdict::Allow {
            let to = Destination { host: &self.host, is_tls: self.is_tls };
            let value = |name: &str| self.outlet.secret(name);
            if let Err(held) = boundary::put_in(&mut parts, &self.outlet.policy().secrets, to, value) {
                decision = Decision { verdict: Verdict::Deny, rule: held.to_string() };
                (parts.uri, parts.headers) = (path, headers);
            }
        }
        let Decision { verdict, rule } = decision;
        let record = Request { verdict, rule: rule.clone(), ..record };
        let record = match self.outlet.recorder().begin(record).await {
            Ok(record) => record,
            // What is not on record does not happen.
            Err(problem) => {
                tracing::warn!(%problem, "a request was refused because it could not be recorded");
                return Ok(refusal(StatusCode::SERVICE_UNAVAILABLE, "it could not be recorded"));
            }
        };
        let exchange = Arc::new(Exchange::new(&self.outlet, redactor, record));
        if verdict == Verdict::Deny {
            let answer = refusal(StatusCode::FORBIDDEN, &rule);
            exchange.answered(answer.status().as_u16(), answer.version(), answer.headers());
            exchange.end(None);
            return Ok(answer);
        }
        Ok(match self.pass(parts, body, &exchange).await {
            Ok(answer) => answer,
            Err(error) => {
                let why = chain(&error);
                let answer = refusal(StatusCode::BAD_GATEWAY, &why);
                exchange.end(Some(why));
                answer
            }
        })
    }

    fn decide(&self, parts: &Parts) -> Decision {
        let deny = |rule: String| Decision { verdict: Verdict::Deny, rule };
        if parts.method == Method::CONNECT {
            return deny("a request must not make a connection of its own".to_owned());
        }
        let connection = &self.connection;
        match said_host(parts) {
            None => return deny("it does not say which host it is for".to_owned()),
            Some(said) if said == self.host || self.host == HOST => {}
            Some(said) => return deny(format!("it was to reach `{}` and says `{said}`", self.host)),
        }
        let attempt = Attempt {
            name: connection.name.as_deref(),
            address: connection.address,
            port: connection.port.unwrap_or_default(),
        };
        let ask = Ask { method: parts.method.as_str(), path: parts.uri.path() };
        self.outlet.policy().decide_request(attempt, ask)
    }

    /// What the sandbox asked, as it asked it: with placeholders.
    fn record(&self, parts: &Parts, redactor: &Redactor) -> Request {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let http = Http {
            method: parts.method.to_string(),
            scheme: self.scheme().to_owned(),
            host: self.host.clone(),
            path: redactor.path(path),
            status: None,
            request: message(redactor, parts.version, &parts.headers),
            response: None,
        };
        let Request { name, address, port, process, .. } = self.connection.clone();
        let record = self.outlet.request(Protocol::Http, name.as_deref(), address, port);
        Request { process, connection: Some(self.connection.id), http: Some(Box::new(http)), ..record }
    }

    fn redactor(&self) -> Redactor {
        let policy = self.outlet.policy();
        Redactor::new(policy.secrets.iter().filter_map(|secret| self.outlet.secret(&secret.name)).collect())
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    async fn pass(
        &self,
        mut parts: Parts,
        body: Incoming,
        exchange: &Arc<Exchange>,
    ) -> Result<Answer, PassError> {
        let inside = take_upgrade(&mut parts);
        parts.uri = self.address(&parts).map_err(PassError::Address)?;
        // The client below speaks whatever the host does.
        parts.version = Version::HTTP_11;
        strip(&mut parts.headers, inside.is_some());
        parts.headers.remove(EXPECT);
        let body = Watched::new(body, Arc::clone(&exchange.sent), None);
        let client = if inside.is_some() { &self.outside_http1 } else { &self.outside };
        let asked = client.request(hyper::Request::from_parts(parts, body));
        let mut answer = match tokio::time::timeout(ANSWER, asked).await {
            Ok(answer) => answer.map_err(PassError::Ask)?,
            Err(_elapsed) => return Err(PassError::Silent),
        };
        exchange.answered(answer.status().as_u16(), answer.version(), answer.headers());
        let outside = hyper::upgrade::on(&mut answer);
        let is_tunnel = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        let (mut head, body) = answer.into_parts();
        strip(&mut head.headers, is_tunnel);
        head.version = Version::HTTP_11;
        let ends = (!is_tunnel).then(|| Arc::clone(exchange));
        if let Some(inside) = inside.filter(|_| is_tunnel) {
            let tunnel = tunnel(inside, outside, Arc::clone(exchange));
            self.tunnels.lock().await.spawn(tunnel);
        }
        let body = Watched::new(body, Arc::clone(&exchange.received), ends);
        Ok(Response::from_parts(head, Either::Left(body)))
    }

    /// The whole address, which is how a client is told where to go.
    fn address(&self, parts: &Parts) -> Result<Uri, hyper::http::Error> {
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let said = parts.headers.get(HOST_HEADER).map(HeaderValue::as_bytes);
        let authority = match (parts.uri.authority(), said) {
            (Some(authority), _) => authority.as_str().as_bytes(),
            (None, Some(said)) => said,
            (None, None) => self.host.as_bytes(),
        };
        Uri::builder().scheme(self.scheme()).authority(authority).path_and_query(path).build()
    }
}

/// Why a request was not answered by its host.
#[derive(Debug, thiserror::Error)]
enum PassError {
    #[error("the address of a request makes no sense")]
    Address(#[source] hyper::http::Error),
    #[error("the host could not be asked")]
    Ask(#[source] hyper_util::client::legacy::Error),
    #[error("the host did not answer")]
    Silent,
}

/// Passes on whatever both sides speak now.
async fn tunnel(inside: OnUpgrade, outside: OnUpgrade, exchange: Arc<Exchange>) {
    let both = tokio::try_join!(inside, outside);
    let error = match both {
        Ok((inside, outside)) => {
            let (mut inside, mut outside) = (TokioIo::new(inside), TokioIo::new(outside));
            match tokio::io::copy_bidirectional(&mut inside, &mut outside).await {
                Ok((sent, received)) => {
                    exchange.sent.count(sent);
                    exchange.received.count(received);
                    None
                }
                Err(error) => Some(chain(&error)),
            }
        }
        Err(error) => Some(chain(&error)),
    };
    exchange.end(error);
}

fn refusal(status: StatusCode, why: &str) -> Answer {
    let text = format!("zeno: {why}\n");
    let mut answer = Response::new(Either::Right(Full::new(Bytes::from(text))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// A host that thinks for longer is not waited for.
const ANSWER: Duration = Duration::from_secs(15 * 60);
/// An unused connection to the host.
const IDLE: Duration = Duration::from_secs(60);
