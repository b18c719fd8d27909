//! Identifiers and names. Parsing is the only way in, so a value that exists is well formed.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes an id of a prefix and 12 lower-case base32 characters.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $name([u8; 12]);

        impl $name {
            /// Makes an id from 60 random bits; the four highest bits are not used.
            #[must_use]
            pub fn from_bits(bits: u64) -> Self {
                let mut text = [0; 12];
                for (place, letter) in text.iter_mut().enumerate() {
                    *letter = ALPHABET[(bits >> (place * 5)) as usize & 31];
                }
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                let letters = text.strip_prefix($prefix).map(str::as_bytes).unwrap_or_default();
                match <[u8; 12]>::try_from(letters) {
                    Ok(letters) if letters.iter().all(|letter| ALPHABET.contains(letter)) => Ok(Self(letters)),
                    _ => Err(BadId { text: text.to_owned(), what: $what, prefix: $prefix }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

id! {
    /// `sb` and 12 lower-case base32 characters, for example `sbk3v7q2m4x6ab`. Never contains a `-`.
    SandboxId, "sb", "a sandbox id"
}

id! {
    /// `sn` and 12 lower-case base32 characters, for example `snk3v7q2m4x6ab`.
    SnapshotId, "sn", "a snapshot's id"
}

id! {
    /// `ly` and 12 lower-case base32 characters: a folder of files that never change again.
    LayerId, "ly", "a layer's id"
}

id! {
    /// `pr` and 12 lower-case base32 characters, for example `prk3v7q2m4x6ab`.
    PromotionId, "pr", "a promotion's id"
}

id! {
    /// `vd` and 12 lower-case base32 characters.
    VerdictId, "vd", "a verdict's id"
}

id! {
    /// `rc` and 12 lower-case base32 characters.
    RaceId, "rc", "a race's id"
}

/// A command's number within its sandbox, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ExecId(pub u32);

impl fmt::Display for ExecId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ExecId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// What people call a sandbox or a snapshot: 1 to 63 of `a-z 0-9 . _ -`, starting with a letter or digit, and not
/// itself in the form of an id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Name(String);

impl Name {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Name {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let well_formed = (1..=63).contains(&text.len())
            && text.starts_with(fits)
            && text.chars().all(|c| fits(c) || matches!(c, '.' | '_' | '-'));
        let is_id = text.parse::<SandboxId>().is_ok() || text.parse::<SnapshotId>().is_ok();
        if well_formed && !is_id { Ok(Self(text.to_owned())) } else { Err(BadName { text: text.to_owned() }) }
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;

    fn try_from(text: String) -> Result<Self, BadName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not {what}: `{prefix}` and 12 characters of a-z and 2-7")]
pub struct BadId {
    text: String,
    what: &'static str,
    prefix: &'static str,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}` is not a name: 1 to 63 of a-z 0-9 . _ -, starting with a letter or digit, and not in the form of an id"
)]
pub struct BadName {
    text: String,
}

const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_reads_back_what_it_prints(bits: u64) {
            let id = SandboxId::from_bits(bits);
            prop_assert_eq!(id.to_string().parse::<SandboxId>().unwrap(), id);
            prop_assert!(id.to_string().parse::<Name>().is_err());
            let snapshot = SnapshotId::from_bits(bits);
            prop_assert_eq!(snapshot.to_string().parse::<SnapshotId>().unwrap(), snapshot);
            prop_assert!(snapshot.to_string().parse::<SandboxId>().is_err());
            prop_assert!(snapshot.to_string().parse::<Name>().is_err());
        }
    }

    #[test]
    fn names_that_would_confuse_are_refused() {
        for bad in ["", "A", "-a", "a b", "ä", "a/b", &"a".repeat(64)] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
        for good in ["a", "a-b", "1.2_3", &"a".repeat(63), "sb"] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
    }
}
