//! What is put on record of a sandbox, beside its connections: what did not happen.

use std::net::IpAddr;
use std::sync::Arc;

use engine::gateway::{Refused, RefusedReader};
use jiff::Timestamp;
use model::net::Verdict;
use model::request::{Protocol, Request};
use tokio::io::unix::AsyncFd;

use super::{Outlet, PAUSE};

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
