//! Takes secrets out of what is written down. What is taken out is data (`rules.json`), each entry with its reason.
//!
//! Rather too much than too little: the record is for people, and the request itself is not changed.

mod json;

use std::sync::LazyLock;

use model::net::SecretValue;
use regex::{Captures, Regex};
use serde::Deserialize;

/// What is known of one sandbox's secrets, beside the rules.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    known: Vec<SecretValue>,
}

impl Redactor {
    pub(crate) fn new(known: Vec<SecretValue>) -> Self {
        Self { known }
    }

    pub(crate) fn header(&self, name: &str, value: &str) -> String {
        match RULES.headers.iter().find(|rule| rule.is_about(&name.to_ascii_lowercase())) {
            Some(HeaderRule { read: Reading::Hidden, .. }) => REDACTED.to_owned(),
            Some(HeaderRule { read: Reading::Address, .. }) => self.path(value),
            None => self.text(value),
        }
    }

    /// A path, or an address, with its query.
    pub(crate) fn path(&self, text: &str) -> String {
        match text.split_once('?') {
            Some((path, query)) => format!("{}?{}", self.text(path), self.form(query)),
            None => self.text(text),
        }
    }

    /// A body as far as it is text. None: it is not.
    pub(crate) fn body(&self, content_type: &str, bytes: &[u8]) -> Option<String> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if !is_textual(&kind) {
            return None;
        }
        let text = String::from_utf8_lossy(bytes);
        // Whatever a client calls it: curl sends JSON as a form unless it is told otherwise, and beacons send it as text.
        let looks_like_json =
            text.trim_start_matches(|c: char| c.is_whitespace() || c == BOM).starts_with(['{', '[']);
        if kind.ends_with("json") || looks_like_json {
            Some(self.text(&json::shown(self, &text)))
        } else if kind == "application/x-www-form-urlencoded" {
            Some(self.form(&text))
        } else {
            Some(self.text(&text))
        }
    }

    fn form(&self, text: &str) -> String {
        let pair = |pair: &str| match pair.split_once('=') {
            Some((name, _)) if is_field(&decoded(name)) => format!("{name}={REDACTED}"),
            Some((name, value)) => format!("{}={}", self.text(name), self.coded(value)),
            None => self.coded(pair),
        };
        text.split('&').map(pair).collect::<Vec<_>>().join("&")
    }

    /// A value in which characters may be coded: what is a secret without the codes is one with them.
    fn coded(&self, value: &str) -> String {
        let plain = decoded(value);
        if self.text(&plain) == plain { self.text(value) } else { REDACTED.to_owned() }
    }

    /// Any text.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for value in &self.known {
            shown = shown.replace(value.reveal(), REDACTED);
        }
        for pattern in &RULES.patterns {
            shown = pattern.replace_all(&shown, REDACTED).into_owned();
        }
        for named in NAMED.iter() {
            shown = named.replace_all(&shown, hidden).into_owned();
        }
        shown
    }
}

/// A name and its value: the same without the value, if that is a secret.
fn hidden(found: &Captures<'_>) -> String {
    if is_field(&found["name"]) { format!("{}{REDACTED}", &found["before"]) } else { found[0].to_owned() }
}

/// Is it a field whose value is a secret? `Access-Token`, `access_token` and `accessToken` are the same.
fn is_field(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    RULES.fields.iter().any(|rule| is_named(&rule.name, &plain))
}

/// `*token` is every name that ends so.
fn is_named(rule: &str, name: &str) -> bool {
    match rule.strip_prefix('*') {
        Some(end) => name.ends_with(end),
        None => name == rule,
    }
}

fn is_textual(kind: &str) -> bool {
    kind.starts_with("text/")
        || kind.ends_with("json")
        || kind.ends_with("+xml")
        || [
            "application/x-www-form-urlencoded",
            "application/xml",
            "application/graphql",
            "application/javascript",
        ]
        .contains(&kind)
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut letters = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = bytes.get(at + 1..at + 3).and_then(|code| std::str::from_utf8(code).ok());
        match (byte, code.and_then(|code| u8::from_str_radix(code, 16).ok())) {
            (b'%', Some(letter)) => {
                letters.push(letter);
                at += 2;
            }
            (b'+', _) => letters.push(b' '),
            (byte, _) => letters.push(*byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&letters).into_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    headers: Vec<HeaderRule>,
    fields: Vec<FieldRule>,
    patterns: Vec<PatternRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderRule {
    name: String,
    #[serde(rename = "reason")]
    _reason: String,
    #[serde(rename = "as", default)]
    read: Reading,
}

impl HeaderRule {
    fn is_about(&self, name: &str) -> bool {
        is_named(&self.name, name)
    }
}

/// What becomes of a header's value.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reading {
    #[default]
    Hidden,
    Address,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldRule {
    name: String,
    #[serde(rename = "reason")]
    _reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternRule {
    pattern: String,
    #[serde(rename = "reason")]
    _reason: String,
}

struct Rules {
    headers: Vec<HeaderRule>,
    fields: Vec<FieldRule>,
    patterns: Vec<Regex>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let written: Written =
        serde_json::from_str(include_str!("rules.json")).expect("rules.json is checked by a test");
    let compiled = |rule: &PatternRule| Regex::new(&rule.pattern).expect("rules.json is checked by a test");
    let patterns = written.patterns.iter().map(compiled).collect();
    Rules { headers: written.headers, fields: written.fields, patterns }
});

/// Names and values as they stand in any text: a field of JSON in the middle of something else, also in quotes that are coded
/// themselves, an element of XML, and an attribute of one. A value goes as far as its quotes, or as the text if it was cut off.
static NAMED: LazyLock<[Regex; 6]> = LazyLock::new(|| {
    [
        r#"(?P<before>"(?P<name>[^"\\]{1,200})"\s*:\s*")(?:[^"\\]|\\(?s:.))+\\?"#,
        r#"(?P<before>\\+"(?P<name>[^"\\]{1,200})\\+"\s*:\s*\\+")(?:[^"\\]|\\+[^"\\])+"#,
        r#"(?P<before>"(?P<name>[^"\\]{1,200})\\*"\s*:\s*)-?[0-9][0-9.eE+-]*"#,
        r"(?P<before><(?:[\w.-]{1,100}:)?(?P<name>[\w.-]{1,100})(?:\s[^<>]*)?>)(?:\s*<!\[CDATA\[[\s\S]*?(?:\]\]>|$)|[^<]+)",
        r#"(?P<before>[\s:](?P<name>[\w.-]{1,100})\s*=\s*")[^"]+"#,
        r"(?P<before>[\s:](?P<name>[\w.-]{1,100})\s*=\s*')[^']+",
    ]
    .map(|pattern| Regex::new(pattern).expect("checked by a test"))
});

pub(crate) const REDACTED: &str = "[redacted]";
/// What some write before a text to say that it is one.
const BOM: char = '\u{feff}';

#[cfg(test)]
mod tests;
