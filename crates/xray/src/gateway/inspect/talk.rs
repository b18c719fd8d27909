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
use hyper::{Method, Response, StatusCode, Uri, Version};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use model::net::{Answer as Instead, Ask, Decision, Policy, Verdict, is_ours};
use model::request::{Http, Protocol, Request};

use super::super::outlet::Outlet;
use super::super::relay::{Cut, attempt};
use super::super::way::{self, Exit};
use super::body::Watched;
use super::boundary::{self, Destination};
use super::chain;
use super::exchange::{Asked, Exchange, message};
use super::going::Going;
use super::head::said_host;
use super::instead::{self, Services};
use super::outside::{Speech, Way};
use crate::hop::{strip, take_upgrade};
use crate::redact::Redactor;

pub(super) struct Talk {
    outlet: Arc<Outlet>,
    connection: Request,
    /// Whom it is with: the name that was decided about, or else what it says.
    host: String,
    is_tls: bool,
    /// Some of it was for the host itself when it began.
    goes_out: bool,
    outside: Client<Way, Watched>,
    /// For what changes its protocol on the way.
    outside_http1: Client<Way, Watched>,
    /// For services that answer in place of the host.
    services: Client<Services, Watched>,
    pub(super) going: Going,
}

pub(super) type Answer = Response<Either<Watched, Full<Bytes>>>;

impl Talk {
    pub(super) fn over_tls(
        outlet: &Arc<Outlet>,
        connection: &Request,
        host: String,
        exit: &Exit,
    ) -> io::Result<Self> {
        // Services of this machine have certificates for the name by which it knows itself.
        let certified = if is_ours(&host) { "localhost" } else { &host };
        let way = |speech| Way::tls(exit.clone(), certified, outlet.trust(), speech);
        let ways = (way(Speech::Any)?, way(Speech::OnlyHttp1)?);
        Ok(Self::new(outlet, connection, host, true, ways))
    }

    pub(super) fn plain(outlet: &Arc<Outlet>, connection: &Request, host: String, exit: Exit) -> Self {
        let way = Way::plain(exit);
        Self::new(outlet, connection, host, false, (way.clone(), way))
    }

    fn new(outlet: &Arc<Outlet>, connection: &Request, host: String, is_tls: bool, ways: (Way, Way)) -> Self {
        let client = |way| Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE).build(way);
        Self {
            outlet: Arc::clone(outlet),
            connection: connection.clone(),
            host,
            is_tls,
            goes_out: outlet.policy().goes_out(attempt(connection)),
            outside: client(ways.0),
            outside_http1: client(ways.1),
            services: Client::builder(TokioExecutor::new()).pool_idle_timeout(IDLE).build(Services),
            going: Going::default(),
        }
    }

    /// Returns when it is not to go on: because of itself, or of a request on it that has not ended.
    pub(super) async fn cut(&self) -> Cut {
        let cut = |policy: &Policy| {
            let attempt = attempt(&self.connection);
            let is_denied = |exchange: Arc<Exchange>| {
                let ask = exchange.going().map(Asked::as_ask);
                ask.is_some_and(|ask| policy.decide_request(attempt, ask).verdict == Verdict::Deny)
            };
            if way::decide(policy, attempt).verdict == Verdict::Deny
                || self.going.all().into_iter().any(is_denied)
            {
                return Some(Cut::NotAllowed);
            }
            (policy.goes_out(attempt) != self.goes_out).then_some(Cut::OtherWay)
        };
        let cut = self.outlet.cut(cut).await;
        // While they are there: they end with the connection.
        self.going.note(cut);
        cut
    }

    pub(super) async fn answer(&self, request: hyper::Request<Incoming>) -> Result<Answer, Infallible> {
        let (mut parts, body) = request.into_parts();
        let redactor = self.redactor();
        let record = self.record(&parts, &redactor);
        let (policy, attempt, asked) = (self.outlet.policy(), attempt(&self.connection), Asked::of(&parts));
        let mut decision = self.decide(&policy, &parts);
        let answer = policy.answer(attempt, asked.as_ask());
        let (path, headers) = (parts.uri.clone(), parts.headers.clone());
        // What stands in for a host gets no secret of it.
        if decision.verdict == Verdict::Allow && answer.is_none() {
            let to = Destination { host: &self.host, is_tls: self.is_tls };
            let value = |name: &str| self.outlet.secret(name);
            if let Err(held) = boundary::put_in(&mut parts, &policy.secrets, to, value) {
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
        let exchange = Arc::new(Exchange::new(&self.outlet, redactor, record, asked.clone()));
        if verdict == Verdict::Deny {
            let answer = refusal(StatusCode::FORBIDDEN, &rule);
            exchange.answered(answer.status().as_u16(), answer.version(), answer.headers());
            exchange.end(None);
            return Ok(answer);
        }
        self.going.begin(&exchange);
        // Whoever changed the policy between the decision and this did not know of it.
        let now = self.outlet.policy();
        let is_denied = now.decide_request(attempt, asked.as_ask()).verdict == Verdict::Deny;
        if is_denied || now.answer(attempt, asked.as_ask()) != answer {
            exchange.end(Some(Cut::NotAllowed.to_string()));
            return Ok(refusal(StatusCode::FORBIDDEN, "it is not allowed any more"));
        }
        let answered = match answer {
            Some(Instead::Fixed { status, headers, body: text }) => {
                instead::fixed((*status, headers, text), body, &exchange).await
            }
            Some(Instead::Service(service)) => self.pass(parts, body, Some(*service), &exchange).await,
            None => self.pass(parts, body, None, &exchange).await,
        };
        Ok(answered.unwrap_or_else(|error| {
            let why = chain(&error);
            let answer = refusal(StatusCode::BAD_GATEWAY, &why);
            exchange.end(Some(why));
            answer
        }))
    }

    fn decide(&self, policy: &Policy, parts: &Parts) -> Decision {
        let deny = |rule: String| Decision { verdict: Verdict::Deny, rule };
        if parts.method == Method::CONNECT {
            return deny("a request must not make a connection of its own".to_owned());
        }
        match said_host(parts) {
            None => return deny("it does not say which host it is for".to_owned()),
            Some(said) if said == self.host || is_ours(&self.host) => {}
            Some(said) => return deny(format!("it was to reach `{}` and says `{said}`", self.host)),
        }
        let ask = Ask { method: parts.method.as_str(), path: parts.uri.path() };
        policy.decide_request(attempt(&self.connection), ask)
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

    /// Asks the host, or what answers in its place.
    async fn pass(
        &self,
        mut parts: Parts,
        body: Incoming,
        service: Option<SocketAddr>,
        exchange: &Arc<Exchange>,
    ) -> Result<Answer, PassError> {
        let inside = take_upgrade(&mut parts);
        let address = self.address(&parts).map_err(PassError::Address)?;
        parts.uri = match service {
            None => address,
            Some(service) => instead::at(service, &mut parts, &address).map_err(PassError::Address)?,
        };
        // The client below speaks whatever the host does.
        parts.version = Version::HTTP_11;
        strip(&mut parts.headers, inside.is_some());
        parts.headers.remove(EXPECT);
        let body = Watched::new(body, Arc::clone(&exchange.sent), None);
        let request = hyper::Request::from_parts(parts, body);
        let asked = match (service, &inside) {
            (Some(_), _) => self.services.request(request),
            (None, Some(_)) => self.outside_http1.request(request),
            (None, None) => self.outside.request(request),
        };
        let mut answer = match tokio::time::timeout(ANSWER, asked).await {
            Ok(answer) => answer.map_err(PassError::Ask)?,
            Err(_elapsed) => return Err(PassError::Silent),
        };
        let to = Destination { host: &self.host, is_tls: self.is_tls };
        let value = |name: &str| self.outlet.secret(name);
        boundary::take_out(&mut answer, &self.outlet.policy().secrets, to, value);
        exchange.answered(answer.status().as_u16(), answer.version(), answer.headers());
        let outside = hyper::upgrade::on(&mut answer);
        let is_tunnel = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
        let (mut head, body) = answer.into_parts();
        strip(&mut head.headers, is_tunnel);
        head.version = Version::HTTP_11;
        let ends = (!is_tunnel).then(|| Arc::clone(exchange));
        if let Some(inside) = inside.filter(|_| is_tunnel) {
            self.going.lead(inside, outside, Arc::clone(exchange)).await;
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
pub(super) enum PassError {
    #[error("the address of a request makes no sense")]
    Address(#[source] hyper::http::Error),
    #[error("the host could not be asked")]
    Ask(#[source] hyper_util::client::legacy::Error),
    #[error("the host did not answer")]
    Silent,
    #[error("the request was not read to its end")]
    Read(#[source] hyper::Error),
    #[error("what was to be answered in place of the host is no answer")]
    Answer(#[source] hyper::http::Error),
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
