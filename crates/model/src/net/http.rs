//! What a rule says about HTTP: that requests are looked at, and which of them are meant.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{Attempt, Decision, Otherwise, Policy, Rule, Verdict};

/// Connections are opened and only HTTP passes. Without methods and path every request is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Inspect {
    /// Only these, in capitals; all, if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<Method>,
    /// Only these; all, if it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
}

/// A method as it is sent: `GET`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Method(String);

/// `/v1/*`: from the first slash, without a query; `*` stands for any characters, also none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PathPattern(String);

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub method: &'a str,
    /// Without the query.
    pub path: &'a str,
}

/// One server would read the path of a request so, and another otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ambiguous;

impl Policy {
    /// Are the requests of this connection looked at?
    #[must_use]
    pub fn inspects(&self, attempt: Attempt<'_>) -> bool {
        let has_secret =
            attempt.name.is_some_and(|name| self.secrets.iter().any(|secret| secret.is_for(name)));
        has_secret || self.meant(attempt).any(Rule::opens)
    }

    /// Is there anything for which connections have to be opened?
    #[must_use]
    pub fn may_inspect(&self) -> bool {
        !self.secrets.is_empty() || self.rules.iter().any(Rule::opens)
    }

    /// Decides about one request of a connection that is inspected.
    #[must_use]
    pub fn decide_request(&self, attempt: Attempt<'_>, ask: Ask<'_>) -> Decision {
        let connection = self.decide(attempt);
        if connection.verdict == Verdict::Deny {
            return connection;
        }
        match self.about_request(attempt, ask) {
            Ok(Some(rule)) => Decision { verdict: rule.verdict, rule: rule.to_string() },
            Ok(None) if self.otherwise == Otherwise::Public => connection,
            Ok(None) => Decision {
                verdict: Verdict::Deny,
                rule: format!("nothing allows {} of this path", ask.method),
            },
            Err(Ambiguous) => Decision {
                verdict: Verdict::Deny,
                rule: "its path can be read in more than one way".to_owned(),
            },
        }
    }

    /// The rule that decides about a request, if there is one.
    pub(super) fn about_request<'a>(
        &'a self,
        attempt: Attempt<'a>,
        ask: Ask<'_>,
    ) -> Result<Option<&'a Rule>, Ambiguous> {
        let by_path = |rule: &Rule| rule.inspect.as_ref().is_some_and(|inspect| inspect.path.is_some());
        let path = match plain(ask.path) {
            Some(path) => path,
            None if self.meant(attempt).any(by_path) => return Err(Ambiguous),
            None => ask.path.to_owned(),
        };
        let ask = Ask { path: &path, ..ask };
        let means =
            |rule: &&Rule| rule.inspect.as_ref().is_none_or(|inspect| inspect.means(ask, rule.verdict));
        Ok(self.meant(attempt).find(means))
    }

    /// The rules that can be about a connection's requests: all up to the first that means every one.
    pub(super) fn meant<'a>(&'a self, attempt: Attempt<'a>) -> impl Iterator<Item = &'a Rule> {
        let mut is_over = false;
        self.rules.iter().filter(move |rule| rule.is_about(attempt)).take_while(move |rule| {
            let goes_on = !is_over;
            is_over = !rule.is_partial();
            goes_on
        })
    }
}

impl Inspect {
    /// Does it leave out some requests?
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.methods.is_empty() || self.path.is_some()
    }

    /// Methods are told apart by their case, and there are servers that do not: what is denied is denied in every spelling.
    fn means(&self, ask: Ask<'_>, verdict: Verdict) -> bool {
        let is_method = |method: &Method| match verdict {
            Verdict::Allow => method.0 == ask.method,
            Verdict::Deny => method.0.eq_ignore_ascii_case(ask.method),
        };
        (self.methods.is_empty() || self.methods.iter().any(is_method))
            && self.path.as_ref().is_none_or(|path| glob(path.0.as_bytes(), ask.path.as_bytes()))
    }
}

/// A path as servers understand it: with letters instead of their codes. `None`: one server would read it so, and another
/// otherwise.
fn plain(path: &str) -> Option<String> {
    let mut letters = Vec::with_capacity(path.len());
    let bytes = path.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = if *byte == b'%' { Some(bytes.get(at + 1..at + 3)?) } else { None };
        match code {
            None => letters.push(*byte),
            Some(code) => {
                let letter = u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok()?;
                match letter {
                    b'/' | b'\\' | b'%' | 0 => return None,
                    letter if letter.is_ascii_alphanumeric() || b"-._~".contains(&letter) => {
                        letters.push(letter);
                    }
                    _ => letters.extend(bytes[at..at + 3].to_ascii_uppercase()),
                }
                at += 2;
            }
        }
        at += 1;
    }
    let text = String::from_utf8(letters).ok()?;
    let is_odd = |(place, part): (usize, &str)| {
        let is_last = text.split('/').count() == place + 1;
        part == "." || part == ".." || (part.is_empty() && place > 0 && !is_last) || part.contains('\\')
    };
    (!text.split('/').enumerate().any(is_odd)).then_some(text)
}

/// `*` stands for any characters. In time that grows with the text only, whatever the text is.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, seen));
            at += 1;
        } else if pattern.get(at) == Some(&text[seen]) {
            at += 1;
            seen += 1;
        } else if let Some((place, from)) = star {
            star = Some((place, from + 1));
            (at, seen) = (place + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

impl FromStr for Method {
    type Err = BadHttp;

    fn from_str(text: &str) -> Result<Self, BadHttp> {
        let is_method = (1..=24).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_uppercase() || c == '-' || c == '_');
        if is_method { Ok(Self(text.to_owned())) } else { Err(BadHttp::Method { text: text.to_owned() }) }
    }
}

impl FromStr for PathPattern {
    type Err = BadHttp;

    fn from_str(text: &str) -> Result<Self, BadHttp> {
        let is_letter = |c: char| c.is_ascii_graphic() && !matches!(c, ',' | '?' | '#' | '\\');
        if text.starts_with('/') && text.chars().all(is_letter) {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadHttp::Path { text: text.to_owned() })
        }
    }
}

impl TryFrom<String> for Method {
    type Error = BadHttp;

    fn try_from(text: String) -> Result<Self, BadHttp> {
        text.parse()
    }
}

impl TryFrom<String> for PathPattern {
    type Error = BadHttp;

    fn try_from(text: String) -> Result<Self, BadHttp> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> Self {
        method.0
    }
}

impl From<PathPattern> for String {
    fn from(path: PathPattern) -> Self {
        path.0
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadHttp {
    #[error("`{text}` is no HTTP method: write for example `GET name` or `GET|HEAD name/v1/*`")]
    Method { text: String },
    #[error("`{text}` is no path: write for example `name/v1/*`, without query and comma")]
    Path { text: String },
}

#[cfg(test)]
mod tests;
