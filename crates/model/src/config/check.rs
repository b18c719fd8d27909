//! Checks: commands with a meaning.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::either;
use crate::id::Name;
use crate::units::Span;

/// A command that says whether a state is good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What it is called. In a map of checks it stands before the colon.
    pub name: Name,
    /// A line for `sh`, run in the workspace's root.
    pub run: String,
    /// After this time it is ended, and nothing is known; 10m if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Checks that have to pass before this one is run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<Name>,
    /// What makes it pass; exit code 0 if not given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub expects: Expects,
}

impl Check {
    /// Ended after this time where it says nothing else.
    pub const TIMEOUT: Span = Span::from_secs(600);

    /// A command that is expected to exit with 0.
    #[must_use]
    pub fn new(name: Name, run: impl Into<String>) -> Self {
        let (timeout, needs, expects) = Default::default();
        Self { name, run: run.into(), timeout, needs, expects }
    }
}

/// The checks, in the order of the file: a list of checks, or a map from names to checks or plain commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Checks(pub Vec<Check>);

impl<'de> Deserialize<'de> for Checks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(either::ChecksVisitor)
    }
}

impl JsonSchema for Checks {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Checks".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (check, nameless) =
            (generator.subschema_for::<Check>(), generator.subschema_for::<either::Nameless>());
        schemars::json_schema!({
            "description": "A list of checks, or a map from names to checks or plain commands",
            "anyOf": [
                { "type": "array", "items": check },
                { "type": "object", "additionalProperties": { "anyOf": [{ "type": "string" }, nameless] } }
            ]
        })
    }
}

/// What makes a check pass: all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Expects {
    /// The exit code, or several of which one will do.
    pub exit: ExitCodes,
    /// What it has to write to standard output. The first 4 MiB are looked at.
    #[serde(skip_serializing_if = "is_default")]
    pub stdout: Pattern,
    /// What it has to write to standard error. The first 4 MiB are looked at.
    #[serde(skip_serializing_if = "is_default")]
    pub stderr: Pattern,
}

/// One exit code, or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ExitCodes(pub Vec<u8>);

impl Default for ExitCodes {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl<'de> Deserialize<'de> for ExitCodes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(either::ExitCodesVisitor)
    }
}

impl JsonSchema for ExitCodes {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExitCodes".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let code = generator.subschema_for::<u8>();
        schemars::json_schema!({
            "description": "An exit code, or a list of which one will do",
            "anyOf": [code.clone(), { "type": "array", "items": code, "minItems": 1 }]
        })
    }
}

/// What a text has to look like: both, where both are given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pattern {
    /// This stands in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// This regular expression matches somewhere; `(?m)` lets `^` and `$` mean lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
