//! Signals as people write them: `TERM`, `SIGTERM`, `15`.

use std::str::FromStr;

use serde::Serialize;

/// A signal's number, as Linux counts on every architecture zeno runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct SignalNumber(pub(crate) i32);

impl SignalNumber {
    pub(crate) const HUP: Self = Self(1);
    pub(crate) const INT: Self = Self(2);
    pub(crate) const QUIT: Self = Self(3);
    pub(crate) const PIPE: Self = Self(13);
    pub(crate) const TERM: Self = Self(15);
}

impl FromStr for SignalNumber {
    type Err = BadSignal;

    fn from_str(text: &str) -> Result<Self, BadSignal> {
        let upper = text.to_ascii_uppercase();
        let name = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = NAMES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number);
        let number = named.or_else(|| name.parse().ok().filter(|number| (1..=64).contains(number)));
        number.map(Self).ok_or_else(|| BadSignal { text: text.to_owned() })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not a signal: write for example TERM, KILL or 15")]
pub(crate) struct BadSignal {
    text: String,
}

const NAMES: [(&str, i32); 22] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("WINCH", 28),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_name_and_by_number() {
        for (text, number) in [("TERM", 15), ("sigkill", 9), ("2", 2), ("64", 64)] {
            assert_eq!(text.parse::<SignalNumber>().unwrap(), SignalNumber(number));
        }
        for bad in ["", "SIG", "0", "65", "-1", "TERMINATE"] {
            assert!(bad.parse::<SignalNumber>().is_err(), "{bad}");
        }
    }
}
