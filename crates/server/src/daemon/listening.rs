//! Where the daemon can be reached over TCP: loopback only, with a token. Opened at the start or while it runs, and remembered for the
//! next daemon, so that whoever was told an address finds sandboxes there after a crash or a newer version, too.

use std::fs;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use model::{Code, Problem};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::home::{self, HomeError};
use super::serve::Listener;
use crate::api::{App, Door, Token, router};
use crate::e2b::{self, E2b, Interpreters};
use crate::paths;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Listening(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    home: PathBuf,
    open: Mutex<Vec<SocketAddr>>,
    /// Where an earlier daemon listened and this one could not.
    missed: Mutex<Vec<SocketAddr>>,
    /// Whoever opens one holds this, so that two do not open the same.
    opening: tokio::sync::Mutex<()>,
    accept: mpsc::Sender<(Listener, Router)>,
    interpreters: Interpreters,
}

impl Listening {
    /// And where what is opened arrives, to be served.
    pub(super) fn new(home: PathBuf) -> (Self, mpsc::Receiver<(Listener, Router)>) {
        let (accept, arriving) = mpsc::channel(1);
        let (open, missed, opening, interpreters) = Default::default();
        (Self(Arc::new(Inner { home, open, missed, opening, accept, interpreters })), arriving)
    }

    /// Where it can be reached now.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.open().clone()
    }

    /// What whoever comes in over TCP has to show.
    pub(crate) fn token(&self) -> Result<Token, HomeError> {
        home::token(&self.0.home)
    }

    /// Opens an address, unless it is open already. Port 0 is any that is free. Says which it is.
    pub async fn listen(&self, app: &App, address: SocketAddr) -> Result<SocketAddr, ListenError> {
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback { address });
        }
        let _turn = self.0.opening.lock().await;
        let is_it =
            |open: &SocketAddr| *open == address || (address.port() == 0 && open.ip() == address.ip());
        if let Some(open) = self.open().iter().copied().find(is_it) {
            return Ok(open);
        }
        let at = |source| ListenError::Listen { address, source };
        let token = self.token()?;
        let listener = TcpListener::bind(address).await.map_err(at)?;
        let address = listener.local_addr().map_err(at)?;
        let native = router(app.clone(), Door::Tcp { token: token.clone(), address });
        let door = E2b::new(app.clone(), &token, address.port(), self.0.interpreters.clone());
        let router = e2b::before(native, door);
        self.0.accept.send((Listener::Tcp(listener), router)).await.map_err(|_ended| ListenError::Ending)?;
        self.open().push(address);
        tracing::info!(%address, "listening");
        Ok(address)
    }

    /// Opens what an earlier daemon was told to.
    pub(super) async fn listen_again(&self, app: &App) {
        for address in self.remembered() {
            if let Err(error) = self.listen(app, address).await {
                tracing::warn!(%address, error = &error as &dyn std::error::Error, "not listening there again");
                self.missed().push(address);
            }
        }
    }

    /// Writes down where it can be reached, for the next daemon. What was taken by somebody else this time may be free then.
    pub async fn remember(&self) -> Result<(), ListenError> {
        let _turn = self.0.opening.lock().await;
        let (path, new) = (paths::listen(&self.0.home), self.0.home.join("listen.new"));
        let (open, missed) = (self.addresses(), self.missed().clone());
        let text: String = open.iter().chain(&missed).map(|address| format!("{address}\n")).collect();
        let written = fs::File::create(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, &path));
        written.map_err(|source| ListenError::Remember { path, source })
    }

    fn remembered(&self) -> Vec<SocketAddr> {
        match fs::read_to_string(paths::listen(&self.0.home)) {
            Ok(text) => text.lines().filter_map(|line| line.parse().ok()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "where to listen cannot be read");
                Vec::new()
            }
        }
    }

    fn missed(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.0.missed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("{address} is not a loopback address: the API is for this machine only")]
    NotLoopback { address: SocketAddr },
    #[error("failed to listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the daemon is ending")]
    Ending,
    #[error("failed to write `{}`", path.display())]
    Remember {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Home(#[from] HomeError),
}

impl From<ListenError> for Problem {
    fn from(error: ListenError) -> Self {
        match &error {
            ListenError::NotLoopback { .. } => {
                Self::from_error(Code::BadRequest, &error).hint("zeno daemon --listen 127.0.0.1:7070")
            }
            ListenError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                Self::from_error(Code::NotReady, &error)
                    .hint("zeno daemon --listen 127.0.0.1:0 takes any port that is free")
            }
            ListenError::Listen { .. } | ListenError::Ending => Self::from_error(Code::NotReady, &error),
            ListenError::Remember { .. } | ListenError::Home(_) => Self::from_error(Code::Internal, &error),
        }
    }
}
