//! Values that may be written in two ways, with words for what would have been accepted.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};

use super::check::{Check, Checks, ExitCodes, Expects};
use crate::id::Name;
use crate::units::Span;

pub(super) struct ChecksVisitor;

impl<'de> Visitor<'de> for ChecksVisitor {
    type Value = Checks;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of checks, each with a `name`, or a map from names to checks")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Checks, E> {
        Ok(Checks::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Checks, A::Error> {
        let mut checks = Vec::new();
        while let Some(check) = seq.next_element()? {
            checks.push(check);
        }
        Ok(Checks(checks))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checks, A::Error> {
        let mut checks = Vec::new();
        while let Some(name) = map.next_key::<Name>()? {
            let Short(Nameless { run, timeout, needs, expects }) = map.next_value()?;
            checks.push(Check { name, run, timeout, needs, expects });
        }
        Ok(Checks(checks))
    }
}

/// A check of a map: its name stands before the colon.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nameless {
    /// A line for `sh`, run in the workspace's root.
    run: String,
    /// After this time it is ended, and nothing is known; 10m if not given.
    #[serde(default)]
    timeout: Option<Span>,
    /// Checks that have to pass before this one is run.
    #[serde(default)]
    needs: BTreeSet<Name>,
    /// What makes it pass; exit code 0 if not given.
    #[serde(default)]
    expects: Expects,
}

/// The whole of it, or its command alone.
struct Short(Nameless);

impl<'de> Deserialize<'de> for Short {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortVisitor)
    }
}

struct ShortVisitor;

impl<'de> Visitor<'de> for ShortVisitor {
    type Value = Short;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command, or a map with `run`")
    }

    fn visit_str<E: de::Error>(self, run: &str) -> Result<Short, E> {
        let (timeout, needs, expects) = Default::default();
        Ok(Short(Nameless { run: run.to_owned(), timeout, needs, expects }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Short, A::Error> {
        Nameless::deserialize(de::value::MapAccessDeserializer::new(map)).map(Short)
    }
}

pub(super) struct ExitCodesVisitor;

impl<'de> Visitor<'de> for ExitCodesVisitor {
    type Value = ExitCodes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exit code, or a list of them (0 to 255)")
    }

    fn visit_u64<E: de::Error>(self, code: u64) -> Result<ExitCodes, E> {
        match u8::try_from(code) {
            Ok(code) => Ok(ExitCodes(vec![code])),
            Err(_) => Err(E::invalid_value(de::Unexpected::Unsigned(code), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, code: i64) -> Result<ExitCodes, E> {
        match u64::try_from(code) {
            Ok(code) => self.visit_u64(code),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(code), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ExitCodes, A::Error> {
        let mut codes = Vec::new();
        while let Some(code) = seq.next_element()? {
            codes.push(code);
        }
        if codes.is_empty() { Err(de::Error::invalid_length(0, &self)) } else { Ok(ExitCodes(codes)) }
    }
}
