//! How a sandbox is named on the command line.

use std::fmt;
use std::str::FromStr;

use model::{Name, PromotionId, RaceId, SandboxId};

/// An id, a name or the beginning of an id; the daemon finds the sandbox. `sandbox:x` says outright that a
/// sandbox is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Which(String);

impl Which {
    /// The same, or `RACE/x`: the candidate `x` of a race. The daemon knows no such name: whoever takes it looks it up.
    pub(crate) fn or_candidate(text: &str) -> Result<Self, BadWhich> {
        let candidate = Self(text.to_owned());
        if candidate.candidate().is_some() { Ok(candidate) } else { text.parse() }
    }

    /// The candidate of a race that it names, if it does.
    pub(crate) fn candidate(&self) -> Option<(RaceId, Name)> {
        let (race, name) = self.0.split_once('/')?;
        Some((race.parse().ok()?, name.parse().ok()?))
    }

    /// The promotion it names, if it is the whole id of one.
    pub(crate) fn promotion(&self) -> Option<PromotionId> {
        self.0.parse().ok()
    }
}

impl From<SandboxId> for Which {
    fn from(id: SandboxId) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Which {
    type Err = BadWhich;

    fn from_str(text: &str) -> Result<Self, BadWhich> {
        let bare = text.strip_prefix("sandbox:").or_else(|| text.strip_prefix("snapshot:")).unwrap_or(text);
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        if !bare.is_empty() && bare.chars().all(fits) {
            Ok(Self(bare.to_owned()))
        } else {
            Err(BadWhich { text: text.to_owned() })
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is neither an id nor a name: `zeno list` shows both")]
pub(crate) struct BadWhich {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_may_be_named_outright_and_a_path_is_none() {
        assert_eq!("sandbox:web".parse::<Which>().unwrap(), Which("web".to_owned()));
        assert_eq!("sbk3v7q2m4x6ab".parse::<Which>().unwrap(), Which("sbk3v7q2m4x6ab".to_owned()));
        for bad in ["", "sandbox:", "a/b", "A", "a b"] {
            assert!(bad.parse::<Which>().is_err() && Which::or_candidate(bad).is_err(), "{bad}");
        }
        let race = RaceId::from_bits(1);
        let candidate = Which::or_candidate(&format!("{race}/right")).unwrap();
        assert_eq!(candidate.candidate(), Some((race, "right".parse().unwrap())));
        assert_eq!(Which::or_candidate("web").unwrap().candidate(), None);
    }
}
