//! The keys with which a person leaves a command that goes on.

use std::str::FromStr;

/// A sequence of keys as a terminal sends them. Empty: there is no way out but the command's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DetachKeys(Vec<u8>);

impl DetachKeys {
    /// Docker's, so that hands know them.
    pub(crate) const DEFAULT: &'static str = "ctrl-p,ctrl-q";

    pub(crate) fn none() -> Self {
        Self::default()
    }
}

impl FromStr for DetachKeys {
    type Err = BadKeys;

    fn from_str(text: &str) -> Result<Self, BadKeys> {
        if text == "none" {
            return Ok(Self::none());
        }
        let keys: Option<Vec<u8>> = text.split(',').map(key).collect();
        keys.map(Self).ok_or_else(|| BadKeys { text: text.to_owned() })
    }
}

/// One key: a character, or one held together with `ctrl`.
fn key(text: &str) -> Option<u8> {
    let held = text.strip_prefix("ctrl-");
    let [byte] = held.unwrap_or(text).as_bytes() else { return None };
    match held {
        None => byte.is_ascii_graphic().then_some(*byte),
        // The terminal sends the five low bits of these characters, and no others have such a key.
        Some(_) => matches!(byte, b'a'..=b'z' | b'@' | b'['..=b'_').then_some(byte & 0x1f),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{text}` names no keys: write for example {} or ctrl-a,d, or none", DetachKeys::DEFAULT)]
pub(crate) struct BadKeys {
    text: String,
}

/// Looks for the keys in what is typed. What may be their beginning is held back.
#[derive(Debug)]
pub(crate) struct Lookout {
    keys: DetachKeys,
    held: Vec<u8>,
}

/// What became of a piece of typing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// To be handed on; empty where all of it is held back.
    On(Vec<u8>),
    /// The keys came after this.
    Leave(Vec<u8>),
}

impl Lookout {
    pub(crate) fn new(keys: DetachKeys) -> Self {
        Self { keys, held: Vec::new() }
    }

    pub(crate) fn see(&mut self, piece: Vec<u8>) -> Typed {
        let DetachKeys(keys) = &self.keys;
        if keys.is_empty() {
            return Typed::On(piece);
        }
        let mut on = Vec::with_capacity(piece.len());
        for byte in piece {
            self.held.push(byte);
            while !keys.starts_with(&self.held) {
                on.push(self.held.remove(0));
            }
            if self.held == *keys {
                return Typed::Leave(on);
            }
        }
        Typed::On(on)
    }

    pub(crate) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// It was not the beginning of the keys after all.
    pub(crate) fn let_go(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_for_docker() {
        let parse = |text: &str| text.parse::<DetachKeys>().unwrap();
        assert_eq!(parse(DetachKeys::DEFAULT), DetachKeys(vec![16, 17]));
        assert_eq!(parse("ctrl-a,d"), DetachKeys(vec![1, b'd']));
        assert_eq!(parse("ctrl-@,ctrl-[,ctrl-_"), DetachKeys(vec![0, 27, 31]));
        assert_eq!(parse("none"), DetachKeys::none());
        for bad in ["", "ctrl-", "ctrl-P", "ctrl-1", "a,", "ab", "ü", " ", "None"] {
            assert!(bad.parse::<DetachKeys>().is_err(), "{bad}");
        }
    }

    /// What is handed on of these pieces, and whether the keys were among them.
    #[track_caller]
    fn check(keys: &str, pieces: &[&str], handed_on: &str, left: bool) {
        let mut lookout = Lookout::new(keys.parse().unwrap());
        let (mut seen, mut is_left) = (Vec::new(), false);
        for piece in pieces {
            match lookout.see(piece.as_bytes().to_vec()) {
                Typed::On(bytes) => seen.extend(bytes),
                Typed::Leave(bytes) => {
                    seen.extend(bytes);
                    is_left = true;
                    break;
                }
            }
        }
        if !is_left {
            seen.extend(lookout.let_go());
        }
        assert_eq!((String::from_utf8(seen).unwrap().as_str(), is_left), (handed_on, left), "{pieces:?}");
    }

    #[test]
    fn the_keys_are_found_wherever_they_are_and_nothing_else_is_lost() {
        check("a,b", &["xaby"], "x", true);
        check("a,b", &["xa", "b"], "x", true);
        check("a,b", &["xa", "c", "ab"], "xac", true);
        check("a,b", &["xba"], "xba", false);
        // One that is a beginning of itself.
        check("a,a,b", &["aaaa", "b"], "aa", true);
        check("a,a,b", &["aaca"], "aaca", false);
        check("none", &["ab", "\u{10}\u{11}"], "ab\u{10}\u{11}", false);
    }

    #[test]
    fn only_a_beginning_is_held_back() {
        let mut lookout = Lookout::new("a,b".parse().unwrap());
        assert_eq!(lookout.see(b"xa".to_vec()), Typed::On(b"x".to_vec()));
        assert!(lookout.holds_back());
        assert_eq!(lookout.let_go(), b"a");
        assert_eq!(lookout.see(b"b".to_vec()), Typed::On(b"b".to_vec()));
        assert!(!lookout.holds_back());
    }
}
