//! What a sandbox may reach.
//!
//! Closed, open to everything the host reaches, or through the gateway, which decides by a [`Policy`].

mod address;
mod answer;
mod http;
mod lists;
mod policy;
mod registries;
mod secret;
mod target;
mod typed;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use address::{Reach, reach};
pub use answer::Answer;
pub use http::{Ask, BadHttp, Inspect, Method, PathPattern};
pub use lists::Lists;
pub use policy::{Attempt, BadRule, Decision, Otherwise, Policy, Ports, Rule, Verdict};
pub use registries::{BadEcosystem, Ecosystem, REGISTRIES};
pub use secret::{BadSecret, NewSecret, Secret, SecretFor, SecretValue};
pub use target::{BadTarget, HOST, Target, is_ours, sandbox};

/// What the gateway is called inside, for tools that insist on an HTTP proxy.
pub const PROXY: &str = "zeno.proxy";
pub const PROXY_PORT: u16 = 3128;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Net {
    /// Its own network namespace with nothing but loopback.
    #[default]
    None,
    /// The host's network, unfiltered. Shown as a caveat.
    Host,
    /// Its own network namespace, and the gateway decides about every connection out of it.
    Gateway(Policy),
}

/// How a sandbox's network namespace is made, whatever its policy says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wiring {
    /// Nothing but loopback.
    #[default]
    None,
    /// None of its own: the host's.
    Host,
    /// Every address leads to the gateway.
    Gateway,
}

impl Net {
    #[must_use]
    pub fn wiring(&self) -> Wiring {
        match self {
            Self::None => Wiring::None,
            Self::Host => Wiring::Host,
            Self::Gateway(_) => Wiring::Gateway,
        }
    }

    #[must_use]
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Self::None | Self::Host => None,
            Self::Gateway(policy) => Some(policy),
        }
    }
}

/// As it is typed: `none`, `host`, `deny`, `open`, `allow:NAME,...`.
impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Host => f.write_str("host"),
            Self::Gateway(policy) => policy.fmt(f),
        }
    }
}

impl FromStr for Net {
    type Err = BadNet;

    fn from_str(text: &str) -> Result<Self, BadNet> {
        match text.split_once(':') {
            None if text == "none" => Ok(Self::None),
            None if text == "host" => Ok(Self::Host),
            None if text == "deny" => Ok(Self::Gateway(Policy::default())),
            None if text == "open" => {
                Ok(Self::Gateway(Policy { otherwise: Otherwise::Public, ..Policy::default() }))
            }
            Some(("allow", list)) if !list.is_empty() => {
                let rules = list.split(',').map(Rule::allowing).collect::<Result<_, _>>();
                let rules = rules.map_err(|source| BadNet::Rule { source })?;
                Ok(Self::Gateway(Policy { rules, ..Policy::default() }))
            }
            _ => Err(BadNet::Word { text: text.to_owned() }),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadNet {
    #[error(
        "`{text}` is not a network: write `none` (the default), `allow:NAME[:PORT],...`, `open` (all that is public), \
         `deny` (nothing yet, to be opened by `zeno net`) or `host`"
    )]
    Word { text: String },
    #[error(transparent)]
    Rule { source: BadRule },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_shown_again() {
        for text in [
            "none",
            "host",
            "deny",
            "open",
            "allow:github.com,*.example.org:443,host:5432",
            "allow:registries/npm,registries",
            "allow:10.0.0.0/8:8000-8999,[2001:db8::/32]:443,[::1],corp.example+private",
        ] {
            assert_eq!(text.parse::<Net>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_none_is_refused_with_what_would_be_one() {
        for text in
            ["", "all", "allow", "allow:", "open:x", "allow:a b", "allow:x:99999", "allow:x:9-1", "allow:,"]
        {
            assert!(text.parse::<Net>().is_err(), "{text}");
        }
        let error = "all".parse::<Net>().unwrap_err().to_string();
        assert!(error.contains("`allow:NAME[:PORT],...`"), "{error}");
    }

    #[test]
    fn on_the_wire_the_old_words_stay_and_a_policy_is_data() {
        let wire = |net: &str| serde_json::to_string(&net.parse::<Net>().unwrap()).unwrap();
        assert_eq!(wire("none"), "\"none\"");
        assert_eq!(wire("host"), "\"host\"");
        assert_eq!(
            wire("allow:github.com:443"),
            r#"{"gateway":{"otherwise":"deny","rules":[{"to":"github.com","ports":[{"first":443,"last":443}],"verdict":"allow"}]}}"#
        );
        let read: Net = serde_json::from_str(r#"{"gateway":{"rules":[{"to":"*"}]}}"#).unwrap();
        assert_eq!(read.to_string(), "allow:*");
    }
}
