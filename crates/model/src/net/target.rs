//! What a rule is about: a name, a pattern of names, addresses, or this machine itself.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::registries::{Ecosystem, REGISTRIES};
use crate::id::Name;

/// `github.com`, `*.example.org` (names below it, not itself), `10.0.0.0/8`, `192.0.2.7`, `host` (services of this
/// machine's loopback), `NAME.zeno` (a sandbox of the same workspace), `registries` or one ecosystem of it
/// (`registries/npm`), or `*` (every name and address but `host` and sandboxes).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Target {
    Any,
    /// This machine.
    Host,
    /// Another sandbox of the same workspace. A rule that names it is how that is declared.
    Sandbox(Name),
    /// In lower case, without a dot at its end.
    Name(String),
    /// Every name that ends in a dot and this.
    Below(String),
    /// The first so many bits.
    Addresses(IpAddr, u8),
    /// What stands for the rules of the set, of all ecosystems or of one. Until it is replaced by them, nothing.
    Registries(Option<Ecosystem>),
}

impl Target {
    /// Is this name meant? `host` means the machine and `NAME.zeno` a sandbox, whatever else may have that name: no pattern
    /// holds them.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        match self {
            Self::Any => !is_ours(name),
            Self::Host => name == HOST,
            Self::Sandbox(own) => sandbox(name) == Some(own.as_str()),
            Self::Name(own) => own == name,
            Self::Below(own) => {
                let rest = name.strip_suffix(own.as_str()).filter(|_rest| !is_ours(name));
                rest.is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            Self::Addresses(..) | Self::Registries(_) => false,
        }
    }

    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::Any, _) => true,
            (Self::Addresses(IpAddr::V4(own), bits), IpAddr::V4(address)) => {
                let cut = |address: u32| address.checked_shr(32 - u32::from(*bits)).unwrap_or(0);
                cut(own.to_bits()) == cut(address.to_bits())
            }
            (Self::Addresses(IpAddr::V6(own), bits), IpAddr::V6(address)) => {
                let cut = |address: u128| address.checked_shr(128 - u32::from(*bits)).unwrap_or(0);
                cut(own.to_bits()) == cut(address.to_bits())
            }
            _ => false,
        }
    }

    /// The first and the last of the addresses that it is written as. None: it is not.
    pub(super) fn span(&self) -> Option<(IpAddr, IpAddr)> {
        let Self::Addresses(own, bits) = self else { return None };
        Some(match own {
            IpAddr::V4(own) => {
                let rest = u32::MAX.checked_shr((*bits).into()).unwrap_or(0);
                let own = own.to_bits();
                (Ipv4Addr::from_bits(own & !rest).into(), Ipv4Addr::from_bits(own | rest).into())
            }
            IpAddr::V6(own) => {
                let rest = u128::MAX.checked_shr((*bits).into()).unwrap_or(0);
                let own = own.to_bits();
                (Ipv6Addr::from_bits(own & !rest).into(), Ipv6Addr::from_bits(own | rest).into())
            }
        })
    }
}

/// What a sandbox calls the machine it runs on.
pub const HOST: &str = "host";
/// What the names of sandboxes end in, inside. No name outside ends so: it is no top-level domain, and is never looked up.
const SANDBOXES: &str = "zeno";

/// The sandbox that a name inside stands for, by its own name.
#[must_use]
pub fn sandbox(name: &str) -> Option<&str> {
    name.strip_suffix(SANDBOXES)?.strip_suffix('.')
}

/// Is it a name of ours, for this machine or a sandbox on it? It leads nowhere else, and who answers there goes by any name.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    name == HOST || name == SANDBOXES || sandbox(name).is_some()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Host => f.write_str(HOST),
            Self::Sandbox(name) => write!(f, "{name}.{SANDBOXES}"),
            Self::Name(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Addresses(address, bits) if *bits == width(*address) => write!(f, "{address}"),
            Self::Addresses(address, bits) => write!(f, "{address}/{bits}"),
            Self::Registries(None) => f.write_str(REGISTRIES),
            Self::Registries(Some(ecosystem)) => write!(f, "{REGISTRIES}/{ecosystem}"),
        }
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = || BadTarget { text: text.to_owned() };
        if text == "*" {
            return Ok(Self::Any);
        }
        match text.split_once('/') {
            None if text == REGISTRIES => return Ok(Self::Registries(None)),
            Some((REGISTRIES, ecosystem)) => {
                return ecosystem.parse().map(|one| Self::Registries(Some(one))).or(Err(bad()));
            }
            Some(_) | None => {}
        }
        if let Ok(address) = text.parse() {
            return Ok(Self::Addresses(address, width(address)));
        }
        if let Some((address, bits)) = text.split_once('/') {
            let (Ok(address), Ok(bits)) = (address.parse(), bits.parse()) else { return Err(bad()) };
            return if bits <= width(address) { Ok(Self::Addresses(address, bits)) } else { Err(bad()) };
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if !is_name(&name) {
            return Err(bad());
        }
        Ok(match (below, name.as_str()) {
            (false, HOST) => Self::Host,
            (false, own) if is_ours(own) => {
                let sandbox = sandbox(own).and_then(|own| own.parse().ok());
                Self::Sandbox(sandbox.ok_or_else(bad)?)
            }
            (true, own) if is_ours(own) && own != HOST => return Err(bad()),
            (true, _) => Self::Below(name),
            (false, _) => Self::Name(name),
        })
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.chars().all(is_letter);
    // A last label of digits would be an address in one of its older spellings.
    let is_number = name.rsplit('.').next().is_some_and(|last| last.chars().all(|c| c.is_ascii_digit()));
    name.len() <= 253 && name.split('.').all(is_label) && !is_number
}

impl TryFrom<String> for Target {
    type Error = BadTarget;

    fn try_from(text: String) -> Result<Self, BadTarget> {
        text.parse()
    }
}

impl From<Target> for String {
    fn from(target: Target) -> Self {
        target.to_string()
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "`{text}` is no destination: write a name, `*.name`, an address, `address/bits`, `host`, `SANDBOX.zeno`, `registries`, `registries/ECOSYSTEM` or `*`"
)]
pub struct BadTarget {
    text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        let names = |target: &str, name: &str| target.parse::<Target>().unwrap().names(name);
        assert!(names("GitHub.com.", "github.com"));
        assert!(!names("github.com", "api.github.com") && !names("github.com", "evilgithub.com"));
        assert!(names("*.example.org", "a.example.org") && names("*.example.org", "a.b.example.org"));
        assert!(!names("*.example.org", "example.org") && !names("*.example.org", ".example.org"));
        assert!(!names("*.example.org", "evil-example.org"));
        assert!(names("*", "anything.at.all") && !names("*", "host") && names("host", "host"));
    }

    #[test]
    fn a_sandbox_is_meant_by_its_name_only() {
        let names = |target: &str, name: &str| target.parse::<Target>().unwrap().names(name);
        assert_eq!("B.zeno.".parse::<Target>().unwrap(), Target::Sandbox("b".parse().unwrap()));
        assert_eq!("a.b.zeno".parse::<Target>().unwrap().to_string(), "a.b.zeno");
        assert!(names("b.zeno", "b.zeno") && !names("b.zeno", "a.b.zeno") && !names("b.zeno", "b"));
        assert!(!names("*", "b.zeno") && !names("b.zeno", "b.zeno.example") && !names("b.zeno", ".zeno"));
        assert!(!is_ours("zeno.proxy") && !is_ours("bzeno") && !is_ours("b.zeno.example"));
        for text in ["zeno", "*.zeno", "*.b.zeno", "-b.zeno", "sbaaaaaaaaaaaa.zeno"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses() {
        let holds =
            |target: &str, address: &str| target.parse::<Target>().unwrap().holds(address.parse().unwrap());
        assert!(holds("10.0.0.0/8", "10.255.1.2") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("1.2.3.4", "1.2.3.4") && !holds("1.2.3.4", "1.2.3.5"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1") && !holds("2001:db8::/32", "2001:db9::1"));
        assert!(
            holds("::/0", "2001:db8::1") && !holds("github.com", "1.2.3.4") && !holds("host", "127.0.0.1")
        );
    }

    #[test]
    fn what_is_no_destination() {
        for text in [
            "",
            ".",
            "*.",
            "a..b",
            "-x y",
            "1.2.3",
            "0x7f.1.2.3.4",
            "10.0.0.0/33",
            "::/129",
            "a/8",
            "*.*.org",
            "ä.de",
            "registries/",
            "registries/gem",
        ] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
