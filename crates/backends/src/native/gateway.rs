//! What the gateway needs of a running sandbox.

use std::os::fd::AsFd;
use std::time::Duration;

use engine::gateway::Sockets;
use engine::init::wire::Request;
use model::given::Trusted;
use model::{Problem, SandboxId};

use super::authority::Authority;
use super::problem::NativeError;
use super::store::Folder;
use super::{Native, Running, talk};

/// A sandbox whose connections lead to us.
#[derive(Debug)]
pub struct Outlet {
    pub sockets: Sockets,
    pub running: Running,
    /// Init's, as this machine counts.
    pub pid: i32,
    /// Who signs for the hosts whose connections are opened. None: none are, because the sandbox trusts nobody else.
    pub authority: Option<Authority>,
}

impl Native {
    /// The sockets at which all that a sandbox tries to reach arrives. Asked again, others for the same.
    pub async fn outlet(&self, running: &Running) -> Result<Outlet, Problem> {
        let folder = self.folder(running);
        let stream = talk::open(&folder.0, &Request::Gateway).await?;
        let peer = rustix::net::sockopt::socket_peercred(stream.as_fd()).map_err(talk)?;
        let stream = stream.into_std().map_err(NativeError::Talk)?;
        let received = tokio::task::spawn_blocking(move || {
            stream.set_nonblocking(false)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Sockets::receive(stream.as_fd())
        });
        let sockets = received.await.map_err(NativeError::from)?.map_err(NativeError::Talk)?;
        let authority = folder.authority()?;
        Ok(Outlet { sockets, running: running.clone(), pid: peer.pid.as_raw_nonzero().get(), authority })
    }
}

impl Native {
    /// Whom a sandbox trusts of ours. None: it was made without.
    pub fn trusted(&self, id: SandboxId) -> Result<Option<Trusted>, Problem> {
        Ok(Folder::of(&self.0.home, id).trusted()?)
    }
}

fn talk(error: rustix::io::Errno) -> NativeError {
    NativeError::Talk(error.into())
}

/// Init answers at once or is not well.
const PATIENCE: Duration = Duration::from_secs(20);
