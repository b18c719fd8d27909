//! One sandbox's way out: its sockets, its policy, the names it knows.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::gateway::{Pair, Refused, RefusedReader, Sockets, Whose};
use jiff::Timestamp;
use model::net::{Policy, SecretValue, Verdict};
use model::request::{Process, Protocol, Request};
use model::{Code, Name, Problem, Sandbox, SandboxId};
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::book::{Book, Given};
use super::inspect::{SignError, Signer, Trust};
use super::names::Names;
use super::room::Room;
use super::{Inner, connection, dns};
use crate::recorder::Recorder;

#[derive(Debug)]
pub(super) struct Outlet {
    gateway: Arc<Inner>,
    id: SandboxId,
    name: Option<Name>,
    policy: watch::Receiver<Arc<Policy>>,
    book: tokio::sync::Mutex<Book>,
    /// One question at a time.
    whose: Mutex<Whose>,
    /// Init's, as this machine counts.
    pid: i32,
    has_ipv6: bool,
    /// Signs for the hosts whose connections are opened.
    signer: Option<Signer>,
    /// Connections at once.
    room: Arc<Semaphore>,
    /// What was refused within the last second: the same again is the same attempt.
    recent: Mutex<Recent>,
}

#[derive(Debug)]
struct Recent {
    since: Instant,
    known: HashSet<Attempted>,
}

type Attempted = (Protocol, Option<String>, Option<IpAddr>, Option<u16>);

/// The sockets, in the form in which they are served.
#[derive(Debug)]
pub(super) struct Open {
    listeners: Vec<TcpListener>,
    questions: Vec<UdpSocket>,
    refused: AsyncFd<RefusedReader>,
    running: backends::native::Running,
}

impl Outlet {
    pub(super) async fn new(
        gateway: &Arc<Inner>,
        sandbox: &Sandbox,
        outlet: control::Outlet,
        policy: watch::Receiver<Arc<Policy>>,
    ) -> Result<(Arc<Self>, Open), Problem> {
        let control::Outlet { sockets, running, pid, authority } = outlet;
        let Sockets { over_ipv4, over_ipv6, refused, diagnosis } = sockets;
        let has_ipv6 = over_ipv6.is_some();
        let (mut listeners, mut questions) = (Vec::new(), Vec::new());
        let failed = |error: io::Error| Problem::from_error(Code::Internal, &error);
        for Pair { listener, questions: socket } in [Some(over_ipv4), over_ipv6].into_iter().flatten() {
            listeners.push(TcpListener::from_std(listener.into()).map_err(failed)?);
            questions.push(UdpSocket::from_std(socket.into()).map_err(failed)?);
        }
        let refused = watched(refused).map_err(failed)?;
        let unsigned = |error: SignError| Problem::from_error(Code::Internal, &error);
        let signer = authority.map(Signer::new).transpose().map_err(unsigned)?;
        let book = Book::new(gateway.control.given_names(sandbox.id).await?);
        let outlet = Self {
            gateway: Arc::clone(gateway),
            id: sandbox.id,
            name: sandbox.name.clone(),
            policy,
            book: tokio::sync::Mutex::new(book),
            whose: Mutex::new(Whose::new(diagnosis)),
            pid,
            has_ipv6,
            signer,
            room: Arc::new(Semaphore::new(gateway.room.share)),
            recent: Mutex::new(Recent { since: Instant::now(), known: HashSet::new() }),
        };
        Ok((Arc::new(outlet), Open { listeners, questions, refused, running }))
    }

    /// Serves until the sandbox's processes have ended.
    pub(super) async fn serve(self: Arc<Self>, open: Open) {
        let Open { listeners, questions, refused, running } = open;
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(Arc::clone(&self).accept(listener));
        }
        for socket in questions {
            tasks.spawn(Arc::clone(&self).answer(socket));
        }
        let refused = Arc::new(refused);
        tasks.spawn(Arc::clone(&self).hear_refused(Arc::clone(&refused)));
        if let Err(error) = running.gone().await {
            tracing::warn!(sandbox = %self.id, %error, "the end of a sandbox cannot be seen");
        }
        tasks.shutdown().await;
        // What was refused at the very end is on record, too.
        while let Ok(packets) = refused.get_ref().read() {
            self.record_refused(packets).await;
        }
    }

    /// What it may reach now.
    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.borrow())
    }

    /// Returns when what it may reach has changed.
    pub(super) fn changes(&self) -> watch::Receiver<Arc<Policy>> {
        let mut changes = self.policy.clone();
        changes.mark_unchanged();
        changes
    }

    pub(super) fn names(&self) -> &Names {
        &self.gateway.names
    }

    pub(super) fn room(&self) -> &Room {
        &self.gateway.room
    }

    pub(super) fn recorder(&self) -> &Recorder {
        &self.gateway.recorder
    }

    pub(super) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    pub(super) fn trust(&self) -> &Trust {
        &self.gateway.trust
    }

    /// The value of one of its secrets, as long as it is known.
    pub(super) fn secret(&self, name: &str) -> Option<SecretValue> {
        self.gateway.control.secret(self.id, name)
    }

    pub(super) fn has_ipv6(&self) -> bool {
        self.has_ipv6
    }

    /// What an address inside stands for.
    pub(super) async fn named(&self, address: IpAddr) -> Option<String> {
        self.book.lock().await.name(address).map(str::to_owned)
    }

    /// The number of a name inside, written down before it is told.
    pub(super) async fn give(&self, name: &str) -> Option<u32> {
        let mut book = self.book.lock().await;
        let number = match book.give(name)? {
            Given::Before(number) => return Some(number),
            Given::Now(number) => number,
        };
        if let Err(problem) = self.gateway.control.give_name(self.id, number, name).await {
            tracing::warn!(sandbox = %self.id, %problem, "a name is forgotten when the daemon ends");
        }
        Some(number)
    }

    /// The process that made a connection. Looked for at once: it may end before it has an answer.
    pub(super) async fn who(self: &Arc<Self>, inside: SocketAddr, outside: SocketAddr) -> Option<Process> {
        let outlet = Arc::clone(self);
        let look = tokio::task::spawn_blocking(move || {
            let whose = outlet.whose.lock().unwrap_or_else(PoisonError::into_inner);
            whose.connection(inside, outside, outlet.pid)
        });
        match look.await {
            Ok(Ok(who)) => who.map(|who| Process { pid: who.pid, name: who.name }),
            Ok(Err(error)) => {
                tracing::debug!(sandbox = %self.id, %error, "it is not known who made a connection");
                None
            }
            Err(error) => {
                tracing::warn!(sandbox = %self.id, %error, "looking for who made a connection failed");
                None
            }
        }
    }

    /// A record with what is known so far.
    pub(super) fn request(
        &self,
        protocol: Protocol,
        name: Option<&str>,
        address: Option<IpAddr>,
        port: Option<u16>,
    ) -> Request {
        Request {
            id: 0,
            time: Timestamp::now(),
            sandbox: self.id,
            sandbox_name: self.name.clone(),
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
    pub(super) async fn refuse(
        &self,
        protocol: Protocol,
        name: Option<&str>,
        address: Option<IpAddr>,
        port: Option<u16>,
        rule: String,
    ) {
        if !self.is_new((protocol, name.map(str::to_owned), address, port)) {
            return;
        }
        let request = Request { rule, ..self.request(protocol, name, address, port) };
        if let Err(problem) = self.recorder().begin(request).await {
            tracing::warn!(sandbox = %self.id, %problem, "a refused request is not on record");
        }
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let own = Arc::clone(&self.room).acquire_owned().await.expect("never closed");
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Only now: a sandbox that is quiet takes no room from the others.
                    let all = Arc::clone(&self.gateway.room.connections);
                    let of_all = all.acquire_owned().await.expect("never closed");
                    let outlet = Arc::clone(&self);
                    tokio::spawn(async move {
                        connection::serve(&outlet, stream, peer).await;
                        drop((own, of_all));
                    });
                }
                Err(error) => {
                    // Mostly EMFILE: trying again at once would spin.
                    tracing::warn!(sandbox = %self.id, %error, "a connection of a sandbox was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn answer(self: Arc<Self>, socket: UdpSocket) {
        let socket = Arc::new(socket);
        let room = Arc::new(Semaphore::new(QUESTIONS));
        let mut buffer = vec![0; 4096];
        loop {
            let permit = Arc::clone(&room).acquire_owned().await.expect("never closed");
            let (length, from) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    // An answer that nobody waited for comes back this way.
                    tracing::debug!(sandbox = %self.id, %error, "a question was not received");
                    continue;
                }
            };
            let (outlet, socket, question) =
                (Arc::clone(&self), Arc::clone(&socket), buffer[..length].to_vec());
            tokio::spawn(async move {
                if let Some(answer) = dns::answer(&outlet, &question).await
                    && let Err(error) = socket.send_to(&answer, from).await
                {
                    tracing::debug!(sandbox = %outlet.id, %error, "an answer was not sent");
                }
                drop(permit);
            });
        }
    }

    async fn hear_refused(self: Arc<Self>, refused: Arc<AsyncFd<RefusedReader>>) {
        while let Ok(mut ready) = refused.readable().await {
            match ready.try_io(|reader| reader.get_ref().read()) {
                Ok(Ok(packets)) => self.record_refused(packets).await,
                Ok(Err(error)) => {
                    tracing::debug!(sandbox = %self.id, %error, "refused packets cannot be read");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(_would_block) => {}
            }
        }
    }

    async fn record_refused(&self, packets: Vec<Refused>) {
        for Refused { protocol, address, port } in packets {
            let name = self.named(address).await;
            let rule = "only TCP, and questions to the resolver, leave a sandbox".to_owned();
            self.refuse(of_number(protocol), name.as_deref(), Some(address), port, rule).await;
        }
    }

    fn is_new(&self, attempt: Attempted) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.since.elapsed() > Duration::from_secs(1) {
            *recent = Recent { since: Instant::now(), known: HashSet::new() };
        }
        recent.known.len() < RECENT && recent.known.insert(attempt)
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

fn watched(socket: OwnedFd) -> io::Result<AsyncFd<RefusedReader>> {
    let reader = RefusedReader::new(socket)?;
    #[expect(
        deprecated,
        reason = "its successor is unsafe; a reader that is never taken out keeps its promise"
    )]
    AsyncFd::new(reader)
}

const QUESTIONS: usize = 64;
/// Different attempts that are told in a second; a flood of more is told of by these.
const RECENT: usize = 1000;
const PAUSE: Duration = Duration::from_millis(50);
