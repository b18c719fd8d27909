//! Secrets that are not shown to a sandbox. The list is data (`masks.json`), each entry with its reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The whole list, as in `masks.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Masks {
    /// Paths hidden wherever they exist, in the workspace too. `~` is every home that can be read.
    pub paths: Vec<PathMask>,
    /// File names hidden in the workspace if git does not track them. `*` stands for any characters.
    pub workspace: Vec<NameMask>,
    /// Variables not handed on, because what they point to is not there.
    pub environment: Vec<NameMask>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathMask {
    pub path: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NameMask {
    pub name: String,
    pub reason: String,
}

impl Masks {
    /// The list that ships with zeno.
    #[must_use]
    pub fn built_in() -> Self {
        serde_json::from_str(include_str!("masks.json")).expect("masks.json is checked by a test")
    }
}

impl NameMask {
    /// How far below an ignored folder, which is read live, names are looked for. Build tools copy `.env` into their output
    /// (`.next/standalone/.env`), and not deeper.
    pub const LIVE_LEVELS: usize = 3;
    /// How many names are looked at there: a few milliseconds, even in `node_modules`.
    pub const LIVE_NAMES: usize = 4096;

    /// Does this file name match? `*` stands for any characters, also none.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        glob(self.name.as_bytes(), name)
    }
}

pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| glob(rest, &text[skip..])),
        Some((letter, rest)) => {
            text.split_first().is_some_and(|(first, text)| first == letter && glob(rest, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_list_reads_and_every_entry_has_a_reason() {
        let masks = Masks::built_in();
        assert!(masks.paths.iter().all(|mask| !mask.reason.is_empty()));
        assert!(masks.paths.iter().all(|mask| mask.path.starts_with('/') || mask.path.starts_with("~/")));
        assert!(masks.workspace.iter().chain(&masks.environment).all(|mask| !mask.reason.is_empty()));
    }

    #[test]
    fn no_entry_is_there_twice_or_below_another() {
        let masks = Masks::built_in();
        for (at, mask) in masks.paths.iter().enumerate() {
            let others = masks.paths.iter().enumerate().filter(|(other, _)| *other != at);
            for (_, other) in others {
                let (path, other) = (std::path::Path::new(&mask.path), std::path::Path::new(&other.path));
                assert!(!path.starts_with(other), "{} is covered by {}", mask.path, other.display());
            }
        }
    }

    #[test]
    fn names() {
        let mask = NameMask { name: ".env*".into(), reason: "secret".into() };
        assert!(mask.matches(b".env") && mask.matches(b".env.local"));
        assert!(!mask.matches(b"x.env") && !mask.matches(b".en"));
    }
}
