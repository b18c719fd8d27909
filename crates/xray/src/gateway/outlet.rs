//! One sandbox's way out: its sockets, its policy, the names it knows.

mod told;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backends::native::Running;
use control::Control;
use engine::gateway::{Pair, RefusedReader, Sockets, Whose};
use model::net::{Policy, SecretValue};
use model::request::Process;
use model::{Code, Problem, Sandbox, SandboxId};
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::book::{Book, Given};
use super::inspect::{SignError, Signer, Trust};
use super::names::Names;
use super::recent::Recent;
use super::relay::Cut;
use super::room::Room;
use super::turn::Turn;
use super::{Inner, connection, dns};
use crate::recorder::Recorder;

pub(super) use told::Question;

#[derive(Debug)]
pub(super) struct Outlet {
    gateway: Arc<Inner>,
    /// As it was when it was seated; what it may reach is in `policy`.
    sandbox: Sandbox,
    policy: watch::Receiver<Arc<Policy>>,
    book: tokio::sync::Mutex<Book>,
    whose: Turn<Whose>,
    /// Init's, as this machine counts.
    pid: i32,
    has_ipv6: bool,
    /// Signs for the hosts whose connections are opened.
    signer: Option<Signer>,
    /// Connections at once.
    room: Arc<Semaphore>,
    recent: Recent,
    /// Its processes are gone.
    is_gone: watch::Sender<bool>,
}

/// The sockets, in the form in which they are served.
#[derive(Debug)]
pub(super) struct Open {
    listeners: Vec<TcpListener>,
    questions: Vec<UdpSocket>,
    refused: AsyncFd<RefusedReader>,
    running: Running,
}

/// What is done for it at the moment: connections and questions.
type Going = Arc<Mutex<JoinSet<()>>>;

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
            sandbox: sandbox.clone(),
            policy,
            book: tokio::sync::Mutex::new(book),
            whose: Turn::new(Whose::new(diagnosis)),
            pid,
            has_ipv6,
            signer,
            room: Arc::new(Semaphore::new(gateway.room.share)),
            recent: Recent::default(),
            is_gone: watch::Sender::new(false),
        };
        Ok((Arc::new(outlet), Open { listeners, questions, refused, running }))
    }

    /// Serves until the sandbox's processes have ended.
    pub(super) async fn serve(self: Arc<Self>, open: Open) {
        let Open { listeners, questions, refused, running } = open;
        let (going, mut tasks) = (Going::default(), JoinSet::new());
        for listener in listeners {
            tasks.spawn(Arc::clone(&self).accept(listener, Arc::clone(&going)));
        }
        for socket in questions {
            tasks.spawn(Arc::clone(&self).answer(socket, Arc::clone(&going)));
        }
        let refused = Arc::new(refused);
        tasks.spawn(Arc::clone(&self).hear_refused(Arc::clone(&refused)));
        tasks.spawn(Arc::clone(&self).tell_left_out());
        if let Err(error) = running.gone().await {
            tracing::warn!(sandbox = %self.id(), %error, "the end of a sandbox cannot be seen");
        }
        tasks.shutdown().await;
        self.end(going).await;
        // What was refused at the very end is on record, too.
        while let Ok(packets) = refused.get_ref().read() {
            self.record_refused(packets).await;
        }
        self.record_left_out().await;
    }

    /// Ends all that goes on: the other side of a connection may never do it. Each is given the time to write down how it ended.
    async fn end(&self, going: Going) {
        self.is_gone.send_replace(true);
        let all = u32::try_from(self.gateway.room.share).unwrap_or(u32::MAX);
        if tokio::time::timeout(LAST_WORDS, self.room.acquire_many(all)).await.is_err() {
            tracing::debug!(sandbox = %self.id(), "connections of a sandbox that is gone are dropped");
        }
        going_on(&going).abort_all();
    }

    pub(super) fn id(&self) -> SandboxId {
        self.sandbox.id
    }

    /// Another sandbox of the same workspace, by its name.
    pub(super) async fn neighbour(&self, name: &str) -> Result<(Control, Running), Problem> {
        let running = self.gateway.control.neighbour(&self.sandbox, name).await?;
        Ok((self.gateway.control.clone(), running))
    }

    /// Returns when something is not to go on: because what it may reach has changed so, or because it is gone.
    pub(super) async fn cut(&self, why: impl Fn(&Policy) -> Option<Cut>) -> Cut {
        let mut changes = self.policy.clone();
        changes.mark_unchanged();
        let mut is_gone = self.is_gone.subscribe();
        loop {
            if let Some(cut) = why(&self.policy()) {
                return cut;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return Cut::Gone },
                _gone = is_gone.wait_for(|is_gone| *is_gone) => return Cut::Gone,
            }
        }
    }

    /// What it may reach now.
    pub(super) fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.borrow())
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
        self.gateway.control.secret(self.id(), name)
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
        if let Err(problem) = self.gateway.control.give_name(self.id(), number, name).await {
            tracing::warn!(sandbox = %self.id(), %problem, "a name is forgotten when the daemon ends");
        }
        Some(number)
    }

    /// The process that made a connection. Looked for at once: it may end before it has an answer.
    pub(super) async fn who(&self, inside: SocketAddr, outside: SocketAddr) -> Option<Process> {
        let pid = self.pid;
        let look = self.whose.work(move |whose| whose.connection(inside, outside, pid));
        match look.await {
            Ok(Ok(who)) => who.map(|who| Process { pid: who.pid, name: who.name }),
            Ok(Err(error)) => {
                tracing::debug!(sandbox = %self.id(), %error, "it is not known who made a connection");
                None
            }
            Err(error) => {
                tracing::warn!(sandbox = %self.id(), %error, "looking for who made a connection failed");
                None
            }
        }
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, going: Going) {
        loop {
            let own = Arc::clone(&self.room).acquire_owned().await.expect("never closed");
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // Only now: a sandbox that is quiet takes no room from the others.
                    let all = Arc::clone(&self.gateway.room.connections);
                    let of_all = all.acquire_owned().await.expect("never closed");
                    let outlet = Arc::clone(&self);
                    going_on(&going).spawn(async move {
                        connection::serve(&outlet, stream, peer).await;
                        drop((own, of_all));
                    });
                }
                Err(error) => {
                    // Mostly EMFILE: trying again at once would spin.
                    tracing::warn!(sandbox = %self.id(), %error, "a connection of a sandbox was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn answer(self: Arc<Self>, socket: UdpSocket, going: Going) {
        let socket = Arc::new(socket);
        let room = Arc::new(Semaphore::new(QUESTIONS));
        let mut buffer = vec![0; 4096];
        loop {
            let permit = Arc::clone(&room).acquire_owned().await.expect("never closed");
            let (length, from) = match socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    // An answer that nobody waited for comes back this way.
                    tracing::debug!(sandbox = %self.id(), %error, "a question was not received");
                    continue;
                }
            };
            let (outlet, socket, question) =
                (Arc::clone(&self), Arc::clone(&socket), buffer[..length].to_vec());
            going_on(&going).spawn(async move {
                if let Some(answer) = dns::answer(&outlet, &question).await
                    && let Err(error) = socket.send_to(&answer, from).await
                {
                    tracing::debug!(sandbox = %outlet.id(), %error, "an answer was not sent");
                }
                drop(permit);
            });
        }
    }
}

/// Without those that have ended by now.
fn going_on(going: &Going) -> MutexGuard<'_, JoinSet<()>> {
    let mut going = going.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(ended) = going.try_join_next() {
        if let Err(error) = ended {
            tracing::warn!(%error, "a connection of a sandbox failed");
        }
    }
    going
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
/// For connections of a sandbox that is gone.
const LAST_WORDS: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
