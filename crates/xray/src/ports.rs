//! Ports of sandboxes, reached from this machine: a listener here for each, and a socket inside for each connection.
//!
//! The daemon keeps them until the sandbox's processes end, or it does itself.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backends::native::Running;
use control::Control;
use model::port::{Port, PortRequest};
use model::{Code, Problem, SandboxId};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ports {
    control: Control,
    open: Arc<Mutex<HashMap<SocketAddr, Open>>>,
}

#[derive(Debug)]
struct Open {
    port: Port,
    task: AbortHandle,
}

impl Ports {
    pub(crate) fn new(control: Control) -> Self {
        Self { control, open: Arc::default() }
    }

    /// Listens on this machine for a port of a sandbox.
    pub async fn open(&self, which: &str, request: &PortRequest) -> Result<Port, Problem> {
        if request.port == 0 {
            return Err(Problem::new(Code::BadRequest, "0 is no port"));
        }
        let (sandbox, running) = self.control.reachable(which).await?;
        let address = request.bind.unwrap_or(Ipv4Addr::LOCALHOST.into());
        let listener = listen(address, request).await?;
        let outside = listener.local_addr().map_err(|error| Problem::from_error(Code::Internal, &error))?;
        let port = Port {
            sandbox: sandbox.id,
            sandbox_name: sandbox.name,
            port: request.port,
            address: outside.ip(),
            host_port: outside.port(),
        };
        // Held until the entry is there, which the task removes when it ends.
        let mut open = self.table();
        let task = tokio::spawn(self.clone().serve(listener, outside, running, request.port)).abort_handle();
        open.insert(outside, Open { port: port.clone(), task });
        Ok(port)
    }

    /// By where they are reached; of one sandbox or of all.
    #[must_use]
    pub fn list(&self, sandbox: Option<SandboxId>) -> Vec<Port> {
        let open = self.table();
        let ports = open.values().map(|open| open.port.clone());
        let mut ports: Vec<Port> = ports.filter(|port| sandbox.is_none_or(|id| port.sandbox == id)).collect();
        ports.sort_by_key(Port::outside);
        ports
    }

    /// Ends all ways to a port of a sandbox, and the connections over them.
    pub async fn close(&self, which: &str, port: u16) -> Result<Vec<Port>, Problem> {
        let id = self.control.get(which).await?.id;
        let mut open = self.table();
        let meant = |open: &Open| open.port.sandbox == id && open.port.port == port;
        let closed: Vec<Open> = open.extract_if(|_, open| meant(open)).map(|(_, open)| open).collect();
        drop(open);
        if closed.is_empty() {
            return Err(Problem::new(Code::NotFound, format!("port {port} of `{which}` is not forwarded"))
                .hint("zeno ports lists those that are"));
        }
        closed.iter().for_each(|open| open.task.abort());
        Ok(closed.into_iter().map(|open| open.port).collect())
    }

    async fn serve(self, listener: TcpListener, outside: SocketAddr, running: Running, port: u16) {
        // Dropped with this task, and with them every connection.
        let mut connections = tokio::task::JoinSet::new();
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let accept = async {
            loop {
                let permit = Arc::clone(&room).acquire_owned().await.expect("never closed");
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let (control, running) = (self.control.clone(), running.clone());
                        connections.spawn(async move {
                            pass(&control, &running, stream, port).await;
                            drop(permit);
                        });
                    }
                    Err(error) => {
                        // Mostly EMFILE: trying again at once would spin.
                        tracing::warn!(%outside, %error, "a connection was not accepted");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                while connections.try_join_next().is_some() {}
            }
        };
        tokio::select! {
            () = accept => {}
            gone = running.gone() => {
                if let Err(error) = gone {
                    tracing::warn!(%outside, %error, "the end of a sandbox cannot be seen");
                }
            }
        }
        self.table().remove(&outside);
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SocketAddr, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listen(address: IpAddr, request: &PortRequest) -> Result<TcpListener, Problem> {
    let wanted = request.host_port.unwrap_or(request.port);
    match (TcpListener::bind((address, wanted)).await, request.host_port) {
        (Ok(listener), _) => Ok(listener),
        // Nobody asked for exactly this one: it is taken, or only root's to give.
        (Err(error), None) if is_taken(&error) => {
            TcpListener::bind((address, 0)).await.map_err(|error| Problem::from_error(Code::Internal, &error))
        }
        (Err(error), _) => {
            let code = if is_taken(&error) { Code::Conflict } else { Code::BadRequest };
            let problem = Problem::from_error(code, &error);
            Err(problem
                .hint(format!("{address}:{wanted} is not to be had; without a number any free one is taken")))
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

async fn pass(control: &Control, running: &Running, mut outside: TcpStream, port: u16) {
    let mut inside = match control.connect(running, port).await {
        Ok(inside) => inside,
        Err(problem) => {
            tracing::debug!(%problem, port, "nobody listens inside");
            return crate::gateway::reset(&outside);
        }
    };
    for stream in [&inside, &outside] {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a forwarded connection is slower than it could be");
        }
    }
    if let Err(error) = tokio::io::copy_bidirectional(&mut outside, &mut inside).await {
        tracing::debug!(%error, port, "a forwarded connection ended");
    }
}

/// To one port at once; more wait in the kernel.
const CONNECTIONS: usize = 1024;
const PAUSE: Duration = Duration::from_millis(50);
