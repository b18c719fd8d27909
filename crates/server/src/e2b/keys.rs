//! Who may come in: the API key, the token of each sandbox, and signatures made with it.
//!
//! Nothing is stored: the key is the daemon's own token as E2B's clients want it written, and a sandbox's token is derived from it.

use std::fmt;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use jiff::Timestamp;
use model::SandboxId;
use ring::{digest, hmac};
use subtle::ConstantTimeEq;

use super::failure::Failure;
use crate::api::Token;

#[derive(Clone)]
pub(super) struct Keys(Arc<Inner>);

struct Inner {
    /// The API key, for example `e2b_` and 64 digits: some releases of the SDKs take hexadecimal digits only.
    api: String,
    token: Token,
    signing: hmac::Key,
}

/// What a signed URL says beside the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signed<'a> {
    pub(super) path: &'a str,
    pub(super) operation: Operation,
    pub(super) user: &'a str,
    /// Unix seconds.
    pub(super) expires: Option<i64>,
    pub(super) signature: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
}

impl Keys {
    pub(super) fn of(token: &Token) -> Self {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, token.secret().as_bytes());
        Self(Arc::new(Inner { api: api_key(token), token: token.clone(), signing }))
    }

    /// Does a request to the control plane come from whoever may read the daemon's token?
    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let key = headers.get(API_KEY).map(|key| key.as_bytes());
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let is_key = key.is_some_and(|key| bool::from(self.0.api.as_bytes().ct_eq(key)));
        if is_key || bearer.is_some_and(|bearer| self.0.token.matches(bearer)) {
            return Ok(());
        }
        Err(Failure::unauthorized("missing or wrong API key: `zeno env e2b` prints the right one"))
    }

    /// What whoever talks to this sandbox has to show.
    pub(super) fn token_of(&self, id: SandboxId) -> String {
        self.derived("sandbox", id)
    }

    /// What whoever talks to the services of a sandbox has to show where not everybody may.
    pub(super) fn traffic_token_of(&self, id: SandboxId) -> String {
        self.derived("traffic", id)
    }

    fn derived(&self, purpose: &str, id: SandboxId) -> String {
        let tag = hmac::sign(&self.0.signing, format!("e2b {purpose} {id}").as_bytes());
        let mut token = format!("{id}_");
        hex(&mut token, tag.as_ref());
        token
    }

    pub(super) fn is_traffic_of(&self, id: SandboxId, token: &[u8]) -> bool {
        self.traffic_token_of(id).as_bytes().ct_eq(token).into()
    }

    /// Is it this sandbox's token?
    pub(super) fn is_of(&self, id: SandboxId, token: &[u8]) -> bool {
        self.token_of(id).as_bytes().ct_eq(token).into()
    }

    /// The sandbox that a token is of.
    pub(super) fn sandbox_of(&self, token: &[u8]) -> Option<SandboxId> {
        let (id, _) = std::str::from_utf8(token).ok()?.split_once('_')?;
        let id = id.parse().ok()?;
        self.is_of(id, token).then_some(id)
    }

    /// Does the value of a header open anything here?
    pub(super) fn is_any(&self, value: &[u8]) -> bool {
        let bare = value.rsplit(|byte| *byte == b' ').next().unwrap_or(value);
        let is_key = bool::from(self.0.api.as_bytes().ct_eq(bare));
        is_key || self.0.token.matches(bare) || self.sandbox_of(bare).is_some()
    }

    /// Was this URL signed with the token of this sandbox, and does it still hold?
    pub(super) fn is_signed(&self, id: SandboxId, signed: Signed<'_>, now: Timestamp) -> bool {
        let Signed { path, operation, user, expires, signature } = signed;
        if expires.is_some_and(|expires| expires < now.as_second()) {
            return false;
        }
        let token = self.token_of(id);
        let until = expires.map(|expires| format!(":{expires}")).unwrap_or_default();
        let text = format!("{path}:{}:{user}:{token}{until}", operation.as_str());
        let hash = digest::digest(&digest::SHA256, text.as_bytes());
        let expected = format!("v1_{}", STANDARD_NO_PAD.encode(hash));
        expected.as_bytes().ct_eq(signature.trim_end_matches('=').as_bytes()).into()
    }
}

impl Operation {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// The daemon's token in the form that all releases of E2B's SDKs take.
pub(super) fn api_key(token: &Token) -> String {
    format!("e2b_{}", token.secret())
}

fn hex(text: &mut String, bytes: &[u8]) {
    use fmt::Write as _;
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
}

const API_KEY: &str = "x-api-key";

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::of(&Token::parse(&"ab".repeat(32)).unwrap())
    }

    #[test]
    fn a_key_is_hexadecimal_and_opens_the_control_plane() {
        let (mut headers, key) = (HeaderMap::new(), format!("e2b_{}", "ab".repeat(32)));
        assert!(keys().admit(&headers).is_err());
        headers.insert(API_KEY, key.parse().unwrap());
        keys().admit(&headers).unwrap();
        headers.insert(API_KEY, key[..key.len() - 1].parse().unwrap());
        assert!(keys().admit(&headers).is_err());
        headers.insert(AUTHORIZATION, format!("Bearer {}", "ab".repeat(32)).parse().unwrap());
        keys().admit(&headers).unwrap();
    }

    #[test]
    fn a_token_is_of_one_sandbox() {
        let (one, other) = (SandboxId::from_bits(1), SandboxId::from_bits(2));
        let token = keys().token_of(one);
        assert_eq!(keys().sandbox_of(token.as_bytes()), Some(one));
        assert!(keys().is_of(one, token.as_bytes()) && !keys().is_of(other, token.as_bytes()));
        let forged = token.replace(&one.to_string(), &other.to_string());
        assert_eq!(keys().sandbox_of(forged.as_bytes()), None);
        let traffic = keys().traffic_token_of(one);
        assert!(keys().is_traffic_of(one, traffic.as_bytes()) && !keys().is_of(one, traffic.as_bytes()));
        assert!(
            !keys().is_traffic_of(one, token.as_bytes()) && !keys().is_traffic_of(other, traffic.as_bytes())
        );
        assert!(keys().is_any(token.as_bytes()) && !keys().is_any(forged.as_bytes()));
        assert!(
            keys().is_any(format!("bearer {}", "ab".repeat(32)).as_bytes()) && !keys().is_any(b"Bearer mine")
        );
        let elsewhere = Keys::of(&Token::parse(&"cd".repeat(32)).unwrap());
        assert_eq!(elsewhere.sandbox_of(token.as_bytes()), None);
    }

    #[test]
    fn a_signature_is_for_one_path_operation_user_and_time() {
        let (keys, id) = (keys(), SandboxId::from_bits(7));
        let token = keys.token_of(id);
        let sign = |text: &str| {
            format!("v1_{}", STANDARD_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes())))
        };
        let (plain, until) =
            (sign(&format!("/a:read:user:{token}")), sign(&format!("/a:read:user:{token}:100")));
        let signed =
            |path, operation, user, expires, signature| Signed { path, operation, user, expires, signature };
        let at = |second| Timestamp::from_second(second).unwrap();
        let holds = |signed, now| keys.is_signed(id, signed, at(now));
        assert!(holds(signed("/a", Operation::Read, "user", None, &plain), 1));
        assert!(!holds(signed("/b", Operation::Read, "user", None, &plain), 1));
        assert!(!holds(signed("/a", Operation::Write, "user", None, &plain), 1));
        assert!(!holds(signed("/a", Operation::Read, "", None, &plain), 1));
        assert!(holds(signed("/a", Operation::Read, "user", Some(100), &until), 100));
        assert!(!holds(signed("/a", Operation::Read, "user", Some(100), &until), 101));
        assert!(!holds(signed("/a", Operation::Read, "user", Some(101), &until), 100));
        assert!(!keys.is_signed(
            SandboxId::from_bits(8),
            signed("/a", Operation::Read, "user", None, &plain),
            at(1)
        ));
    }
}
