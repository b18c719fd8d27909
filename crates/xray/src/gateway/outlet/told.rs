//! What is put on record of a sandbox, beside its connections: what did not happen, and which names were asked for outside.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use engine::gateway::{Refused, RefusedReader};
use jiff::Timestamp;
use model::net::Verdict;
use model::request::{End, Protocol, Request};
use tokio::io::unix::AsyncFd;

use super::super::recent::Heard;
use super::{Outlet, PAUSE};

/// A name that is asked for outside.
#[derive(Debug)]
pub(in super::super) enum Question {
    New {
        request: Box<Request>,
        began: Instant,
    },
    /// It is on record already.
    Known,
    /// It cannot be put on record, so it is not asked.
    Unheard,
}

impl Outlet {
    /// A record with what is known so far.
    pub(in super::super) fn request(
        &self,
        protocol: Protocol,
        name: Option<&str>,
        address: Option<IpAddr>,
        port: Option<u16>,
    ) -> Request {
        Request {
            id: 0,
            time: Timestamp::now(),
            sandbox: self.id(),
            sandbox_name: self.sandbox.name.clone(),
            protocol,
            name: name.map(str::to_owned),
            address,
            port,
            verdict: Verdict::Deny,
            rule: String::new(),
            process: None,
            end: None,
            connection: None,
            http: None,
        }
    }

    /// Puts on record what did not happen.
    pub(in super::super) async fn refuse(
        &self,
        protocol: Protocol,
        name: Option<&str>,
        address: Option<IpAddr>,
        port: Option<u16>,
        rule: String,
    ) {
        if self.recent.is_new((protocol, name.map(str::to_owned), address, port)) {
            self.record_denied(Request { rule, ..self.request(protocol, name, address, port) }).await;
        }
    }

    pub(in super::super) async fn record_denied(&self, request: Request) {
        if let Err(problem) = self.recorder().begin(request).await {
            tracing::warn!(sandbox = %self.id(), %problem, "a refused request is not on record");
        }
    }

    /// Could this name be given an address?
    pub(in super::super) async fn has_room_for(&self, name: &str) -> bool {
        self.book.lock().await.has_room_for(name)
    }

    /// Puts on record that a name is asked for outside: the first time, and each time if it leads nowhere.
    pub(in super::super) async fn begin_question(&self, name: &str, rule: String) -> Question {
        if self.book.lock().await.has(name) {
            return Question::Known;
        }
        match self.recent.hear((Protocol::Dns, Some(name.to_owned()), None, None)) {
            Heard::First => {}
            Heard::Again => return Question::Known,
            Heard::Flood => return Question::Unheard,
        }
        let request = self.request(Protocol::Dns, Some(name), None, None);
        match self.recorder().begin(Request { verdict: Verdict::Allow, rule, ..request }).await {
            Ok(request) => Question::New { request: Box::new(request), began: Instant::now() },
            Err(problem) => {
                tracing::warn!(sandbox = %self.id(), %problem, "a name is not asked for, because that could not be recorded");
                Question::Unheard
            }
        }
    }

    /// Puts on record what came of it.
    pub(in super::super) async fn end_question(&self, question: Question, error: Option<String>) {
        let Question::New { mut request, began } = question else { return };
        let milliseconds = began.elapsed().as_millis() as u64;
        request.end = Some(End { sent: 0, received: 0, milliseconds, error });
        self.recorder().rewrite(&request).await;
    }

    /// A flood is told of by its beginning, and then by its size.
    pub(super) async fn tell_left_out(self: Arc<Self>) {
        loop {
            self.recent.flood().await;
            self.record_left_out().await;
        }
    }

    pub(super) async fn record_left_out(&self) {
        let Some(count) = self.recent.take_left_out() else { return };
        let rule =
            format!("{count} more attempts were refused in so short a time that they are only counted");
        self.record_denied(Request { rule, ..self.request(Protocol::Other, None, None, None) }).await;
    }

    pub(super) async fn hear_refused(self: Arc<Self>, refused: Arc<AsyncFd<RefusedReader>>) {
        while let Ok(mut ready) = refused.readable().await {
            match ready.try_io(|reader| reader.get_ref().read()) {
                Ok(Ok(packets)) => self.record_refused(packets).await,
                Ok(Err(error)) => {
                    tracing::debug!(sandbox = %self.id(), %error, "refused packets cannot be read");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(_would_block) => {}
            }
        }
    }

    pub(super) async fn record_refused(&self, packets: Vec<Refused>) {
        for Refused { protocol, address, port } in packets {
            let name = self.named(address).await;
            let rule = "only TCP, and questions to the resolver, leave a sandbox".to_owned();
            self.refuse(of_number(protocol), name.as_deref(), Some(address), port, rule).await;
        }
    }
}

fn of_number(protocol: u8) -> Protocol {
    match protocol {
        6 => Protocol::Tcp,
        17 => Protocol::Udp,
        1 | 58 => Protocol::Icmp,
        _ => Protocol::Other,
    }
}
