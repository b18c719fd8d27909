//! Ports of sandboxes that are reached from the machine they run on.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Name, SandboxId};

/// Kept by the daemon until the sandbox's processes end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Port {
    pub sandbox: SandboxId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_name: Option<Name>,
    /// Inside.
    pub port: u16,
    /// Of this machine.
    #[schemars(with = "String")]
    pub address: IpAddr,
    pub host_port: u16,
}

impl Port {
    /// Where it is reached.
    #[must_use]
    pub fn outside(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.host_port)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = self.sandbox_name.as_ref().map_or_else(|| self.sandbox.to_string(), ToString::to_string);
        write!(f, "{} -> {label}:{}", self.outside(), self.port)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRequest {
    /// Inside.
    pub port: u16,
    /// Of this machine. If absent, the same number, or any if that is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_port: Option<u16>,
    /// The address of this machine to listen at; its loopback if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub bind: Option<IpAddr>,
}
