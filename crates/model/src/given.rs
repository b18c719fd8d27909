//! What a sandbox was given: variables, names that lead out of it, whom it trusts.

use std::net::{Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exec::{Text, Variable};
use crate::net::{Net, PROXY, PROXY_PORT, Secret};

/// The answer of `zeno env`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    /// The environment of its commands. A secret is its placeholder here.
    pub variables: Vec<Variable>,
    /// What stands for secrets, and who gets them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// Names it has asked for so far, and where they are inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<GivenName>,
    /// For tools that insist on an HTTP proxy. Absent where there is no gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// It trusts a certificate authority of its own, because connections of it are opened.
    #[serde(default)]
    pub authority: bool,
    /// Which one, and where programs inside find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusts: Option<Trusted>,
}

/// A certificate authority of one sandbox's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trusted {
    /// The file inside with all authorities, this one among them. Absent where the machine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Text>,
    pub subject: String,
    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` tells it.
    pub fingerprint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GivenName {
    pub name: String,
    #[schemars(with = "String")]
    pub ipv4: Ipv4Addr,
    #[schemars(with = "String")]
    pub ipv6: Ipv6Addr,
}

impl Given {
    #[must_use]
    pub fn new(net: &Net, variables: Vec<Variable>, names: Vec<GivenName>, trusts: Option<Trusted>) -> Self {
        let policy = net.policy();
        Self {
            variables,
            secrets: policy.map(|policy| policy.secrets.clone()).unwrap_or_default(),
            names,
            proxy: policy.map(|_| format!("http://{PROXY}:{PROXY_PORT}")),
            authority: trusts.is_some(),
            trusts,
        }
    }
}
