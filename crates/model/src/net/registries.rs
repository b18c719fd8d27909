//! The set `registries`: where package managers get what they install. Which hosts these are is told by the machine's own
//! tools and their configuration, to whoever can read files.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{Ports, Rule, Verdict};
use super::target::Target;

/// What rules of the set are told by, and how it is asked for.
pub const REGISTRIES: &str = "registries";

/// A package manager, or those that share its registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ecosystem {
    Cargo,
    Npm,
    Pnpm,
    Yarn,
    Pip,
    Uv,
    Go,
    Apt,
    Maven,
}

impl Ecosystem {
    pub const ALL: [Self; 9] = [
        Self::Cargo,
        Self::Npm,
        Self::Pnpm,
        Self::Yarn,
        Self::Pip,
        Self::Uv,
        Self::Go,
        Self::Apt,
        Self::Maven,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn => "yarn",
            Self::Pip => "pip",
            Self::Uv => "uv",
            Self::Go => "go",
            Self::Apt => "apt",
            Self::Maven => "maven",
        }
    }

    /// A rule of this part of the set. Registries are reached where the machine's own resolver says they are, also in
    /// its networks: companies lead these names to mirrors of theirs. Which names they are is not the sandbox's to say.
    #[must_use]
    pub fn rule(self, to: Target, port: u16) -> Rule {
        let ports = vec![Ports { first: port, last: port }];
        let set = Some(format!("{REGISTRIES}/{self}"));
        Rule { to, ports, verdict: Verdict::Allow, private: true, set, inspect: None, answer: None }
    }
}

impl fmt::Display for Ecosystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Ecosystem {
    type Err = BadEcosystem;

    fn from_str(text: &str) -> Result<Self, BadEcosystem> {
        let found = Self::ALL.into_iter().find(|ecosystem| ecosystem.as_str() == text);
        found.ok_or_else(|| BadEcosystem { text: text.to_owned() })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is no ecosystem: write cargo, npm, pnpm, yarn, pip, uv, go, apt or maven")]
pub struct BadEcosystem {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ecosystem_is_read_as_it_is_written() {
        for ecosystem in Ecosystem::ALL {
            assert_eq!(ecosystem.as_str().parse::<Ecosystem>().unwrap(), ecosystem);
        }
        assert!("nuget".parse::<Ecosystem>().is_err());
    }

    #[test]
    fn a_rule_says_where_it_came_from() {
        let rule = Ecosystem::Go.rule("proxy.example".parse().unwrap(), 443);
        assert_eq!(rule.to_string(), "registries/go/proxy.example:443+private");
    }
}
