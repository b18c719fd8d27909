//! What a sandbox may reach. The gateway (allow by name) takes its seat here as further variants.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Net {
    /// Its own network namespace with nothing but loopback.
    #[default]
    None,
    /// The host's network, unfiltered. Shown as a caveat.
    Host,
}

impl Net {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
        }
    }
}

impl FromStr for Net {
    type Err = BadNet;

    fn from_str(text: &str) -> Result<Self, BadNet> {
        match text {
            "none" => Ok(Self::None),
            "host" => Ok(Self::Host),
            _ => Err(BadNet { text: text.to_owned() }),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a network: write `none` (the default) or `host`")]
pub struct BadNet {
    text: String,
}
