//! Ways into a sandbox. Who listens on this machine's side is `xray`.

use backends::native::Running;
use model::net::Net;
use model::{Code, Problem, Sandbox};
use tokio::net::TcpStream;

use crate::control::Control;
use crate::names::Noun;
use crate::refusal;

impl Control {
    /// The processes of a sandbox whose ports can be reached.
    pub async fn reachable(&self, which: &str) -> Result<(Sandbox, Running), Problem> {
        let slot = self.find(which, "reach a port of").await?;
        let (record, seat) = self.running(&slot, "reach a port of").await?;
        match record.sandbox.net {
            Net::Host => {
                let detail = format!(
                    "`{}` has the host's network: its ports are this machine's already",
                    slot.label()
                );
                Err(Problem::new(Code::NotReady, detail))
            }
            Net::None | Net::Gateway(_) => Ok((record.sandbox, seat.running.clone())),
        }
    }

    /// The processes of another sandbox of the same workspace, by its whole name.
    pub async fn neighbour(&self, of: &Sandbox, name: &str) -> Result<Running, Problem> {
        let (other, running) = self.reachable(name).await?;
        if other.name.as_ref().is_none_or(|own| own.as_str() != name) {
            return Err(refusal::not_found(Noun::Sandbox, name, &[]));
        }
        if of.workspace.is_none() || of.workspace != other.workspace {
            let detail = format!("`{name}` is no sandbox of the same workspace");
            return Err(Problem::new(Code::Refused, detail));
        }
        Ok(running)
    }

    /// Connects to a port inside.
    pub async fn connect(&self, running: &Running, port: u16) -> Result<TcpStream, Problem> {
        self.inner.native.connect(running, port).await
    }
}
