//! What answers in place of the host that a rule is about: a mock, or a sink of ours. Nobody outside hears of it.

use std::fmt;
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use super::http::Ask;
use super::policy::{Attempt, Otherwise, Policy, Rule, Verdict};
use super::target::is_ours;
use crate::request::Header;

/// Only of what is asked over HTTP as data: it has no short form to be typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Answer {
    /// The same to every request. Its connections are opened, and only HTTP passes.
    Fixed {
        #[serde(deserialize_with = "status")]
        status: u16,
        #[serde(default, deserialize_with = "headers", skip_serializing_if = "Vec::is_empty")]
        headers: Vec<Header>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        body: String,
    },
    /// A service on this machine's loopback. Where the rule inspects, it is asked over HTTP without TLS, whatever was spoken
    /// inside; otherwise it is given the bytes as they come.
    Service(
        #[serde(deserialize_with = "service")]
        #[schemars(with = "String")]
        SocketAddr,
    ),
}

impl Policy {
    /// Is anything of a connection that is allowed for the host itself? Otherwise all of it is answered here.
    #[must_use]
    pub fn goes_out(&self, attempt: Attempt<'_>) -> bool {
        let (mut goes, mut is_whole) = (false, false);
        for rule in self.meant(attempt) {
            goes |= rule.verdict == Verdict::Allow && rule.answer.is_none();
            is_whole |= !rule.is_partial();
        }
        let is_open = self.otherwise == Otherwise::Public && !attempt.name.is_some_and(is_ours);
        goes || (is_open && !is_whole)
    }

    /// Is anything that is asked of this name answered here? Then it exists inside, whether or not it does outside.
    #[must_use]
    pub fn answers(&self, name: &str) -> bool {
        let answers = |rule: &Rule| rule.verdict == Verdict::Allow && rule.answer.is_some();
        self.rules.iter().any(|rule| answers(rule) && rule.to.names(name))
    }

    /// What a connection as a whole is given to in place of its host.
    #[must_use]
    pub fn service(&self, attempt: Attempt<'_>) -> Option<SocketAddr> {
        let rule = self.meant(attempt).find(|rule| rule.verdict == Verdict::Allow)?;
        match rule.answer {
            Some(Answer::Service(service)) => Some(service),
            Some(Answer::Fixed { .. }) | None => None,
        }
    }

    /// What answers a request that is allowed in place of its host.
    #[must_use]
    pub fn answer<'a>(&'a self, attempt: Attempt<'a>, ask: Ask<'_>) -> Option<&'a Answer> {
        self.about_request(attempt, ask).ok().flatten()?.answer.as_ref()
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { status, .. } => status.fmt(f),
            Self::Service(service) => service.fmt(f),
        }
    }
}

/// A final one: whoever was told to go on would wait for another.
fn status<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let status = u16::deserialize(from)?;
    let bad = || D::Error::custom(format!("{status} is no status of an answer: write one of 200 to 599"));
    (200..600).contains(&status).then_some(status).ok_or_else(bad)
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Header>, D::Error> {
    let headers: Vec<Header> = Vec::deserialize(from)?;
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_header = |header: &Header| {
        let is_name = !header.name.is_empty() && header.name.bytes().all(is_of_name);
        let is_ours = OWN.iter().any(|own| header.name.eq_ignore_ascii_case(own));
        is_name && !is_ours && header.value.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
    };
    match headers.iter().find(|header| !is_header(header)) {
        None => Ok(headers),
        Some(Header { name, .. }) => Err(D::Error::custom(format!(
            "`{name}` is no header of an answer: its name and value are ASCII, and length and connection are not yours to say"
        ))),
    }
}

fn service<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let service = SocketAddr::deserialize(from)?;
    let bad = || D::Error::custom(format!("{service} is no service of this machine: write 127.0.0.1:PORT"));
    (service.ip().is_loopback() && service.port() > 0).then_some(service).ok_or_else(bad)
}

/// Said by whoever writes the answer to the wire.
const OWN: [&str; 4] = ["content-length", "transfer-encoding", "connection", "upgrade"];

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> Policy {
        serde_json::from_str(json).unwrap()
    }

    fn to(name: &str) -> Attempt<'_> {
        Attempt { name: Some(name), address: None, port: 443 }
    }

    #[test]
    fn a_name_that_is_answered_goes_nowhere() {
        let policy = policy(
            r#"{"rules":[{"to":"mock.test","answer":{"fixed":{"status":201,"body":"hi"}}},
                {"to":"sink.test","answer":{"service":"127.0.0.1:8025"}},{"to":"real.test"}]}"#,
        );
        assert!(
            policy.inspects(to("mock.test")) && policy.may_inspect() && !policy.inspects(to("sink.test"))
        );
        assert!(!policy.goes_out(to("mock.test")) && !policy.goes_out(to("sink.test")));
        assert!(
            policy.goes_out(to("real.test")) && !policy.answers("real.test") && policy.answers("mock.test")
        );
        assert_eq!(policy.service(to("sink.test")), Some("127.0.0.1:8025".parse().unwrap()));
        assert_eq!(policy.service(to("mock.test")), None);
        let ask = Ask { method: "GET", path: "/" };
        assert!(matches!(policy.answer(to("mock.test"), ask), Some(Answer::Fixed { status: 201, .. })));
        assert_eq!(policy.answer(to("real.test"), ask), None);
        assert_eq!(policy.to_string(), "allow:mock.test -> 201,sink.test -> 127.0.0.1:8025,real.test");
        let wire = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&wire).unwrap(), policy);
    }

    #[test]
    fn what_is_answered_in_part_goes_out_otherwise() {
        let json = r#"{"rules":[{"to":"a.test","inspect":{"methods":["GET"]},"answer":{"fixed":{"status":404}}},{"to":"a.test"}]}"#;
        let both = policy(json);
        let ask = |method| Ask { method, path: "/x" };
        assert!(both.goes_out(to("a.test")) && both.answers("a.test"));
        assert!(
            both.answer(to("a.test"), ask("GET")).is_some()
                && both.answer(to("a.test"), ask("PUT")).is_none()
        );
        // What the rest would lead to is still not reached because a part of it is answered.
        let private = Attempt { address: Some("10.0.0.1".parse().unwrap()), ..to("a.test") };
        assert_eq!(both.decide(private).verdict, Verdict::Deny);
        let mut open = both.clone();
        (open.otherwise, open.rules) = (Otherwise::Public, both.rules[..1].to_vec());
        assert!(open.goes_out(to("a.test")));
        open.otherwise = Otherwise::Deny;
        assert!(!open.goes_out(to("a.test")));
    }

    #[test]
    fn an_address_that_is_answered_need_not_be_anybodys() {
        let policy = policy(r#"{"rules":[{"to":"*","answer":{"service":"[::1]:9"}}]}"#);
        for address in ["10.0.0.1", "169.254.169.254", "1.2.3.4"] {
            let attempt = Attempt { name: None, address: Some(address.parse().unwrap()), port: 80 };
            assert_eq!(policy.decide(attempt).verdict, Verdict::Allow, "{address}");
            assert!(!policy.goes_out(attempt));
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for answer in [
            r#"{"fixed":{"status":101}}"#,
            r#"{"fixed":{"status":600}}"#,
            r#"{"fixed":{"status":200,"headers":[{"name":"a b","value":""}]}}"#,
            r#"{"fixed":{"status":200,"headers":[{"name":"a","value":"x\r\ny"}]}}"#,
            r#"{"fixed":{"status":200,"headers":[{"name":"Content-Length","value":"1"}]}}"#,
            r#"{"fixed":{"status":200,"text":"x"}}"#,
            r#"{"service":"10.0.0.1:80"}"#,
            r#"{"service":"127.0.0.1:0"}"#,
            r#"{"other":1}"#,
        ] {
            assert!(serde_json::from_str::<Answer>(answer).is_err(), "{answer}");
        }
    }
}
