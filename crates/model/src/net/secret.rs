//! Secrets that stay outside: a sandbox has a placeholder, and the gateway puts the value in for the hosts it is meant for.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use super::target::{BadTarget, Target};

/// What a policy knows of a secret: never its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The variable in which the sandbox finds the placeholder.
    pub name: String,
    /// What stands for the value inside.
    pub placeholder: String,
    /// Who gets the value.
    pub hosts: Vec<Target>,
}

impl Secret {
    #[must_use]
    pub fn is_for(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.names(name))
    }
}

/// A secret as it is handed over, once. What keeps requests takes the values out before it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSecret {
    pub name: String,
    /// Who gets the value: names, patterns of names or `host`.
    pub hosts: Vec<Target>,
    pub value: SecretValue,
}

/// Shows itself to nobody, and is wiped when it goes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SecretValue(String);

impl SecretValue {
    #[must_use]
    pub fn new(value: String) -> Self {
        Self(value)
    }

    /// For whoever puts it in, and nobody else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

impl Drop for SecretValue {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// As it is typed: `NAME@HOST[,HOST]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFor {
    pub name: String,
    pub hosts: Vec<Target>,
}

impl FromStr for SecretFor {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let (name, hosts) = text.split_once('@').ok_or_else(|| BadSecret::Form { text: text.to_owned() })?;
        if !is_variable(name) {
            return Err(BadSecret::Name { name: name.to_owned() });
        }
        let hosts = hosts.split(',').map(str::parse).collect::<Result<Vec<Target>, _>>();
        let hosts = hosts.map_err(|source| BadSecret::Host { source })?;
        Ok(Self { name: name.to_owned(), hosts })
    }
}

impl NewSecret {
    /// Is it one that can be kept outside?
    pub fn check(&self) -> Result<(), BadSecret> {
        if !is_variable(&self.name) {
            return Err(BadSecret::Name { name: self.name.clone() });
        }
        let is_named = |host: &Target| matches!(host, Target::Name(_) | Target::Below(_) | Target::Host);
        if self.hosts.is_empty() || !self.hosts.iter().all(is_named) {
            return Err(BadSecret::Wide { name: self.name.clone() });
        }
        let value = self.value.reveal();
        // Shorter ones could be found by chance; control characters cannot stand in a header.
        if value.len() < SHORTEST || value.chars().any(char::is_control) {
            return Err(BadSecret::Value { name: self.name.clone() });
        }
        Ok(())
    }
}

fn is_variable(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit())
}

const SHORTEST: usize = 8;

#[derive(Debug, thiserror::Error)]
pub enum BadSecret {
    #[error("`{text}` is no secret: write `NAME@HOST` or `NAME@HOST,HOST`")]
    Form { text: String },
    #[error("`{name}` is no name of a variable")]
    Name { name: String },
    #[error(transparent)]
    Host { source: BadTarget },
    #[error("the secret `{name}` needs hosts by name: `api.example.org`, `*.example.org` or `host`")]
    Wide { name: String },
    #[error(
        "the value of the secret `{name}` is shorter than {SHORTEST} characters, or has control characters"
    )]
    Value { name: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed() {
        let secret: SecretFor = "TOKEN@api.example.org,*.b.example".parse().unwrap();
        assert_eq!((secret.name.as_str(), secret.hosts.len()), ("TOKEN", 2));
        for text in ["TOKEN", "@a.example", "1X@a.example", "A B@a.example", "TOKEN@", "TOKEN@a b"] {
            assert!(text.parse::<SecretFor>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_shows_itself_to_nobody() {
        let new = |value: &str, host: &str| NewSecret {
            name: "TOKEN".to_owned(),
            hosts: vec![host.parse().unwrap()],
            value: SecretValue::new(value.to_owned()),
        };
        assert!(!format!("{:?}", new("hunter2hunter2", "a.example")).contains("hunter2"));
        assert!(new("hunter2hunter2", "a.example").check().is_ok());
        for bad in
            [new("short", "a.example"), new("two\nlines here", "a.example"), new("hunter2hunter2", "*")]
        {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
