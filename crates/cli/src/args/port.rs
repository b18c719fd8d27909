//! Ways into a sandbox: `port`, `ports`.

use std::net::IpAddr;
use std::str::FromStr;

use clap::Args;

use super::which::Which;

/// Reach a port of a sandbox from this machine
///
/// Until ctrl-c, or with `-d` until the sandbox's processes end. The same number is taken on this machine, or another
/// if that one is taken: a hundred sandboxes can all listen on 3000.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno port web 3000
  zeno port web 3000:8080
  zeno port -d web 3000 --json")]
pub(crate) struct PortArgs {
    /// Id or name
    pub(crate) sandbox: Which,
    /// The port inside, and the one on this machine
    #[arg(value_name = "PORT[:HOSTPORT]")]
    pub(crate) ports: Pair,
    /// Listen at this address of this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,
    /// Leave it to the daemon and return
    #[arg(short, long)]
    pub(crate) detach: bool,
}

/// List the ports of sandboxes that are reached from this machine
#[derive(Debug, PartialEq, Eq, Args)]
#[command(after_long_help = "Examples:
  zeno ports
  zeno ports web --json")]
pub(crate) struct Ports {
    /// Only of this sandbox
    pub(crate) sandbox: Option<Which>,
}

/// `3000` or `3000:8080`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) inside: u16,
    pub(crate) host: Option<u16>,
}

impl FromStr for Pair {
    type Err = BadPair;

    fn from_str(text: &str) -> Result<Self, BadPair> {
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port > 0).ok_or(BadPair);
        match text.split_once(':') {
            None => Ok(Self { inside: port(text)?, host: None }),
            Some((inside, host)) => Ok(Self { inside: port(inside)?, host: Some(port(host)?) }),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("write a port, or the port inside and the one on this machine: `3000`, `3000:8080`")]
pub(crate) struct BadPair;
