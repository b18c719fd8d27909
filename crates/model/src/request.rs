//! What a sandbox tried to reach: one record for each attempt to leave it, allowed or not.

use std::fmt;
use std::net::IpAddr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{Name, SandboxId};
use crate::net::{NewSecret, Verdict};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// Grows by one with each; the cursor of `GET /v1/requests`.
    pub id: u64,
    pub time: Timestamp,
    pub sandbox: SandboxId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_name: Option<Name>,
    pub protocol: Protocol,
    /// What it was called inside. Absent where an address was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the connection went or would have gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub address: Option<IpAddr>,
    /// Absent where there is no such thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub verdict: Verdict,
    /// The rule that decided, or what else did.
    pub rule: String,
    /// Who tried, where that could be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// How it ended. Absent while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// The connection it was made over, if it is a request of one that is inspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// What was asked and answered, if it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<Http>>,
}

impl Request {
    /// Does it go on?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.verdict == Verdict::Allow && self.end.is_none()
    }
}

/// A request that was looked at. Secrets are taken out before it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Http {
    pub method: String,
    /// `http` or `https`.
    pub scheme: String,
    pub host: String,
    /// With the query.
    pub path: String,
    /// Absent while there is no answer, and where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    pub request: Message,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Message>,
}

/// One half of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// As it was spoken: `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    pub headers: Vec<Header>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Bytes of its body that passed.
    pub size: u64,
    /// The beginning of its body, where that is text. Only in the answer to who asks for this one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The body is longer than what is kept of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
    /// Nothing of its body is kept, because too many were kept at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_left_out: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A question to the resolver.
    Dns,
    Tcp,
    /// One request of a TCP connection that is inspected.
    Http,
    Udp,
    Icmp,
    /// Something else on top of IP.
    Other,
}

/// A process inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// As it is counted inside.
    pub pid: u32,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Bytes that left the sandbox.
    pub sent: u64,
    pub received: u64,
    pub milliseconds: u64,
    /// Why it did not go through, or did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Protocol {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Tcp => "tcp",
            Self::Http => "http",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change of what a sandbox may reach, while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NetChange {
    /// Rules as they are typed: `github.com:443`.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// The values of secrets that the sandbox was made with, again, and who gets them from now on.
    pub secrets: Vec<NewSecret>,
}
