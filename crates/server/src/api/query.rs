//! Query parameters. Taken apart by hand because a path in one need not be UTF-8.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::refusal::Refusal;

/// A parameter a route takes, as the OpenAPI document shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: ParamKind,
    pub(super) about: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamKind {
    Flag,
    Number,
    Text,
    RequiredText,
    /// May be given several times.
    Texts,
}

/// The parameters of a request, percent-decoded.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, Vec<u8>)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default()))
    }
}

impl Query {
    fn parse(text: &str) -> Self {
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((name.to_owned(), decode(value)));
        }
        Self(pairs)
    }

    /// Refuses names the route does not know: a misspelt one would otherwise be silently without effect. So would the
    /// second of two that can only be given once.
    pub(super) fn only(self, known: &[Param]) -> Result<Self, Refusal> {
        for param in known.iter().filter(|param| param.kind != ParamKind::Texts) {
            if self.all_bytes(param.name).count() > 1 {
                return Err(Refusal::bad_request(format!("`{}` is given twice", param.name)));
            }
        }
        match self.0.iter().find(|(name, _)| known.iter().all(|param| param.name != name)) {
            Some((name, _)) => {
                let known: Vec<_> = known.iter().map(|param| param.name).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(Refusal::bad_request(format!("`{name}` is not a parameter here: there is {known}")))
            }
            None => Ok(self),
        }
    }

    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.all_bytes(name).next()
    }

    pub(super) fn all_bytes(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// `x`, `x=` and `x=true` are yes; absent and `x=false` are no.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Refusal> {
        match self.bytes(name) {
            None => Ok(None),
            Some(b"" | b"true" | b"1") => Ok(Some(true)),
            Some(b"false" | b"0") => Ok(Some(false)),
            Some(_) => Err(Refusal::bad_request(format!("`{name}` is `true` or `false`"))),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let Some(bytes) = self.bytes(name) else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Refusal::bad_request(format!("`{name}` is not UTF-8"))),
        }
    }

    pub(super) fn number<T: FromStr<Err = std::num::ParseIntError>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, Refusal> {
        match self.text(name)?.map(str::parse) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(error)) => Err(Refusal::because(format!("`{name}` is not a number"), &error)),
        }
    }
}

/// Percent-decoding; a `%` without two hexadecimal digits stands for itself, a `+` for a space.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, hex(after)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    bytes
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values() {
        let query = Query::parse("path=/a%20b%ff+c&all&n=7&user=%41");
        assert_eq!(query.bytes("path"), Some(&b"/a b\xff c"[..]));
        assert_eq!(query.flag("all").unwrap(), Some(true));
        assert_eq!(query.number::<u32>("n").unwrap(), Some(7));
        assert_eq!(query.text("user").unwrap(), Some("A"));
        assert!(
            query.text("path").is_err() && query.flag("n").is_err() && query.number::<u8>("user").is_err()
        );
        let twice = |kind| Query::parse("a=1&a=2").only(&[Param { name: "a", kind, about: "" }]);
        assert!(twice(ParamKind::Text).is_err());
        assert_eq!(twice(ParamKind::Texts).unwrap().all_bytes("a").count(), 2);
        assert!(query.only(&[]).is_err());
    }

    proptest! {
        #[test]
        fn every_byte_can_be_named(bytes: Vec<u8>) {
            let encoded: String = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(decode(&encoded), bytes);
        }

        #[test]
        fn any_text_is_survived(text: String) {
            prop_assert!(decode(&text).len() <= text.len());
        }
    }
}
