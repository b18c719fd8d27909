//! The one kind of policy there is for what may leave a sandbox: rules in order, and what holds beside them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{Reach, embedded, reach};
use super::http::{BadHttp, Inspect};
use super::secret::Secret;
use super::target::{BadTarget, HOST, Target};
use super::typed::Typed;

/// The first rule that is about a connection decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// What holds for what no rule is about.
    pub otherwise: Otherwise,
    pub rules: Vec<Rule>,
    /// What stands for secrets inside, and who gets them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Otherwise {
    #[default]
    Deny,
    /// What is public is allowed: nothing of this machine, its networks or its cloud.
    Public,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub to: Target,
    /// All, if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
    #[serde(default)]
    pub verdict: Verdict,
    /// A name may lead into this machine's networks, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// Its connections are opened, and only HTTP passes: the requests that are meant, or all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspect: Option<Inspect>,
    /// The set it came from, for example `registries`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
}

/// Both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ports {
    pub first: u16,
    pub last: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    #[default]
    Allow,
    Deny,
}

/// Where a connection is to go.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// What the sandbox asked the resolver for. None: it named an address.
    pub name: Option<&'a str>,
    /// What the name leads to, where that is known.
    pub address: Option<IpAddr>,
    pub port: u16,
}

/// What became of an attempt, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The rule as it is typed, or what else decided.
    pub rule: String,
}

impl Policy {
    /// Decides about a connection. Without an address it says whether any could be allowed.
    #[must_use]
    pub fn decide(&self, attempt: Attempt<'_>) -> Decision {
        self.decide_at(attempt, attempt.address.map(reach))
    }

    /// The same about an address that is this machine's own, public as it may look: from here it is behind its firewall.
    #[must_use]
    pub fn decide_own(&self, attempt: Attempt<'_>) -> Decision {
        self.decide_at(attempt, Some(Reach::Own))
    }

    fn decide_at(&self, attempt: Attempt<'_>, far: Option<Reach>) -> Decision {
        let about = self.rules.iter().find(|rule| rule.is_about(attempt) && !rule.denies_partly());
        let (verdict, rule) = match about {
            Some(rule) => (rule.verdict, rule.to_string()),
            None if self.otherwise == Otherwise::Public && attempt.name != Some(HOST) => {
                (Verdict::Allow, "open".to_owned())
            }
            None => (Verdict::Deny, "nothing allows it".to_owned()),
        };
        match (verdict, far) {
            (Verdict::Allow, Some(far)) if !may_reach(about, attempt.name, far) => Decision {
                verdict: Verdict::Deny,
                rule: match far {
                    Reach::Private => "private addresses are reached only if they are named".to_owned(),
                    Reach::Own => {
                        "this machine is reached only as `host`, or by an address that is named".to_owned()
                    }
                    Reach::Loopback => "this machine is reached only as `host`".to_owned(),
                    Reach::Link => {
                        "link-local and metadata addresses are reached only if they are named".to_owned()
                    }
                    Reach::Public | Reach::Nowhere => "this address is nobody's".to_owned(),
                },
            },
            (verdict, _) => Decision { verdict, rule },
        }
    }

    /// May anything be asked of this name? What it leads to, and on which port, is decided later.
    #[must_use]
    pub fn hears(&self, name: &str) -> Decision {
        let mut about = self.rules.iter().filter(|rule| rule.to.names(name) && !rule.denies_partly());
        // A rule that denies some ports leaves others open.
        match about.find(|rule| rule.verdict == Verdict::Allow || rule.ports.is_empty()) {
            Some(rule) => Decision { verdict: rule.verdict, rule: rule.to_string() },
            None => self.decide(Attempt { name: Some(name), address: None, port: 0 }),
        }
    }

    /// The rule by which a name is denied outright, if there is one.
    #[must_use]
    pub fn denies(&self, name: &str, port: u16) -> Option<String> {
        let attempt = Attempt { name: Some(name), address: None, port };
        let about = self.rules.iter().find(|rule| rule.is_about(attempt) && !rule.denies_partly())?;
        (about.verdict == Verdict::Deny).then(|| about.to_string())
    }

    /// The same policy with a rule that comes before all others, which a rule about the same loses its place to.
    pub fn put_first(&mut self, rule: Rule) {
        let what = |rule: &Rule| (rule.to.clone(), rule.ports.clone(), rule.inspect.clone());
        self.rules.retain(|other| what(other) != what(&rule));
        self.rules.insert(0, rule);
    }
}

/// An address that is not public has to be named as such. A name leads to what its owner says, and that is not ours to
/// trust: only to private addresses, and only where the rule says so.
fn may_reach(rule: Option<&Rule>, name: Option<&str>, far: Reach) -> bool {
    let names_addresses = rule.is_some_and(|rule| matches!(rule.to, Target::Addresses(..)));
    match far {
        Reach::Public => true,
        Reach::Private | Reach::Own => names_addresses || rule.is_some_and(|rule| rule.private),
        // `host` is the one name that leads here, and it is ours.
        Reach::Loopback => name == Some(HOST),
        Reach::Link => names_addresses,
        Reach::Nowhere => false,
    }
}

impl Rule {
    pub fn allowing(text: &str) -> Result<Self, BadRule> {
        text.parse()
    }

    pub fn denying(text: &str) -> Result<Self, BadRule> {
        Ok(Self { verdict: Verdict::Deny, ..text.parse()? })
    }

    /// Does it mean only some of a connection's requests?
    pub(super) fn is_partial(&self) -> bool {
        self.inspect.as_ref().is_some_and(Inspect::is_partial)
    }

    /// Such a rule says nothing of a connection as a whole.
    fn denies_partly(&self) -> bool {
        self.verdict == Verdict::Deny && self.is_partial()
    }

    pub(super) fn is_about(&self, attempt: Attempt<'_>) -> bool {
        let by_name = attempt.name.is_some_and(|name| self.to.names(name));
        // What an address stands for is denied with it, however it is written.
        let holds = |address: IpAddr| {
            let stands_for = embedded(address).filter(|_| self.verdict == Verdict::Deny);
            self.to.holds(address) || stands_for.is_some_and(|address| self.to.holds(address.into()))
        };
        let by_address = attempt.name != Some(HOST) && attempt.address.is_some_and(holds);
        // A name is allowed by name only: whatever leads to an allowed address could carry anything in its letters.
        let matches = match self.verdict {
            Verdict::Allow if attempt.name.is_some() => by_name,
            Verdict::Allow | Verdict::Deny => by_name || by_address,
        };
        matches && (self.ports.is_empty() || self.ports.iter().any(|ports| ports.hold(attempt.port)))
    }
}

impl Ports {
    fn hold(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// As it is typed. Denying ones are told by a `!`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.verdict == Verdict::Deny {
            f.write_str("!")?;
        }
        if let Some(Inspect { methods, .. }) = self.inspect.as_ref().filter(|own| !own.methods.is_empty()) {
            let methods: Vec<String> = methods.iter().map(ToString::to_string).collect();
            write!(f, "{} ", methods.join("|"))?;
        }
        if let Some(set) = &self.set {
            write!(f, "{set}/")?;
        }
        match &self.to {
            to @ Target::Addresses(address, _) if address.is_ipv6() || self.is_partial() => {
                write!(f, "[{to}]")?
            }
            to => write!(f, "{to}")?,
        }
        for (place, ports) in self.ports.iter().enumerate() {
            let before = if place == 0 { ':' } else { '+' };
            match ports {
                Ports { first, last } if first == last => write!(f, "{before}{first}")?,
                Ports { first, last } => write!(f, "{before}{first}-{last}")?,
            }
        }
        if let Some(path) = self.inspect.as_ref().and_then(|inspect| inspect.path.as_ref()) {
            write!(f, "{path}")?;
        }
        if self.private {
            f.write_str("+private")?;
        }
        let is_bare = self.inspect.is_some() && !self.is_partial();
        if is_bare { f.write_str("+inspect") } else { Ok(()) }
    }
}

impl FromStr for Rule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let Typed { rest, private, inspect } = Typed::split(text)?;
        let (to, ports) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((to, "")) => (to, None),
            Some((to, ports)) => {
                let ports =
                    ports.strip_prefix(':').ok_or_else(|| BadRule::Ports { text: text.to_owned() })?;
                (to, Some(ports))
            }
            // An address without brackets has more than one colon, and no ports.
            None if rest.matches(':').count() > 1 => (rest, None),
            None => match rest.split_once(':') {
                Some((to, ports)) => (to, Some(ports)),
                None => (rest, None),
            },
        };
        let to = to.parse().map_err(|source| BadRule::Target { source })?;
        let ports =
            ports.map(|ports| parse_ports(ports).ok_or_else(|| BadRule::Ports { text: text.to_owned() }));
        let ports = ports.transpose()?.into_iter().collect();
        Ok(Self { to, ports, verdict: Verdict::Allow, private, inspect, set: None })
    }
}

fn parse_ports(text: &str) -> Option<Ports> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = Ports { first: first.parse().ok()?, last: last.parse().ok()? };
    (0 < ports.first && ports.first <= ports.last).then_some(ports)
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.rules.iter().map(ToString::to_string).collect();
        match (self.otherwise, rules.is_empty()) {
            (Otherwise::Deny, true) => f.write_str("deny"),
            (Otherwise::Deny, false) => write!(f, "allow:{}", rules.join(",")),
            (Otherwise::Public, true) => f.write_str("open"),
            (Otherwise::Public, false) => write!(f, "open, {}", rules.join(",")),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BadRule {
    #[error(transparent)]
    Target { source: BadTarget },
    #[error("`{text}` has ports that are none: write for example `name:443` or `name:8000-8999`")]
    Ports { text: String },
    #[error(transparent)]
    Http { source: BadHttp },
    #[error("`{text}` cannot be in such a list: write names, addresses or ranges of them")]
    Foreign { text: String },
}

#[cfg(test)]
mod tests {
    use super::super::Net;
    use super::*;

    #[track_caller]
    fn check(net: &str, name: Option<&str>, address: Option<&str>, port: u16, expected: Verdict) -> String {
        let net: Net = net.parse().unwrap();
        let address = address.map(|address| address.parse().unwrap());
        let decision = net.policy().unwrap().decide(Attempt { name, address, port });
        assert_eq!(decision.verdict, expected, "{decision:?}");
        decision.rule
    }

    const ALLOW: Verdict = Verdict::Allow;
    const DENY: Verdict = Verdict::Deny;

    #[test]
    fn by_name_and_port() {
        let net = "allow:github.com,*.example.org:443";
        assert_eq!(check(net, Some("github.com"), Some("1.2.3.4"), 22, ALLOW), "github.com");
        assert_eq!(check(net, Some("a.example.org"), None, 443, ALLOW), "*.example.org:443");
        assert_eq!(check(net, Some("a.example.org"), None, 80, DENY), "nothing allows it");
        check(net, Some("example.com"), Some("1.2.3.4"), 443, DENY);
        check(net, None, Some("1.2.3.4"), 443, DENY);
    }

    #[test]
    fn a_name_that_leads_home_is_refused() {
        for address in ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "0.0.0.0"] {
            check("allow:evil.example", Some("evil.example"), Some(address), 80, DENY);
            check("open", Some("evil.example"), Some(address), 80, DENY);
            check("open", None, Some(address), 80, DENY);
            check("allow:*", None, Some(address), 80, DENY);
        }
        check("allow:corp.example+private", Some("corp.example"), Some("10.1.2.3"), 80, ALLOW);
        for address in ["127.0.0.1", "169.254.169.254"] {
            check("allow:corp.example+private", Some("corp.example"), Some(address), 80, DENY);
        }
    }

    #[test]
    fn addresses_by_their_own_rules() {
        check("allow:10.0.0.0/8:5432", None, Some("10.1.1.1"), 5432, ALLOW);
        check("allow:10.0.0.0/8:5432", None, Some("10.1.1.1"), 22, DENY);
        check("allow:169.254.169.254", None, Some("169.254.169.254"), 80, ALLOW);
        check("allow:127.0.0.0/8", None, Some("127.0.0.1"), 80, DENY);
        // A name is not allowed because of where it leads.
        check("allow:1.0.0.0/8", Some("any.example"), Some("1.2.3.4"), 80, DENY);
        check("open", None, Some("1.2.3.4"), 80, ALLOW);
    }

    #[test]
    fn a_denied_address_is_denied_in_every_spelling() {
        let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
        policy.put_first(Rule::denying("6.6.6.0/24").unwrap());
        for (address, expected) in [
            ("6.6.6.6", DENY),
            ("::ffff:6.6.6.6", DENY),
            ("64:ff9b::606:606", DENY),
            ("2002:606:606::1", DENY),
            ("::ffff:6.6.7.6", ALLOW),
        ] {
            let address = Some(address.parse().unwrap());
            let attempt = Attempt { name: Some("evil.example"), address, port: 80 };
            assert_eq!(policy.decide(attempt).verdict, expected, "{address:?}");
        }
    }

    #[test]
    fn an_address_of_this_machine_has_to_be_named() {
        let own = |net: &str, name| {
            let address = Some("1.2.3.4".parse().unwrap());
            let net: Net = net.parse().unwrap();
            net.policy().unwrap().decide_own(Attempt { name, address, port: 80 }).verdict
        };
        assert_eq!(own("open", None), DENY);
        assert_eq!(own("allow:a.example", Some("a.example")), DENY);
        assert_eq!(own("allow:a.example+private", Some("a.example")), ALLOW);
        assert_eq!(own("allow:1.2.3.4:80", None), ALLOW);
    }

    #[test]
    fn this_machine_by_its_name_only() {
        check("allow:host:5432", Some("host"), Some("127.0.0.1"), 5432, ALLOW);
        check("allow:host:5432", Some("host"), Some("127.0.0.1"), 22, DENY);
        check("allow:host:5432", None, Some("127.0.0.1"), 5432, DENY);
        check("open", Some("host"), Some("127.0.0.1"), 80, DENY);
        check("allow:*", Some("host"), Some("127.0.0.1"), 80, DENY);
    }

    #[test]
    fn a_name_is_heard_if_any_port_of_it_is_allowed() {
        let hears = |net: &str, name: &str| net.parse::<Net>().unwrap().policy().unwrap().hears(name).verdict;
        assert_eq!(hears("allow:github.com:22", "github.com"), ALLOW);
        assert_eq!(hears("allow:github.com:22", "gitlab.com"), DENY);
        assert_eq!(hears("allow:1.2.3.4", "github.com"), DENY);
        assert_eq!(hears("open", "github.com"), ALLOW);
        assert_eq!(hears("open", "host"), DENY);
        let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
        policy.put_first(Rule::denying("a.example:25").unwrap());
        policy.put_first(Rule::denying("b.example").unwrap());
        assert_eq!((policy.hears("a.example").verdict, policy.hears("b.example").verdict), (ALLOW, DENY));
    }

    #[test]
    fn what_is_put_first_decides_and_replaces() {
        let Net::Gateway(mut policy) = "open".parse().unwrap() else { panic!("not a policy") };
        policy.put_first(Rule::denying("evil.example").unwrap());
        policy.put_first(Rule::denying("6.6.6.0/24").unwrap());
        let decide = |policy: &Policy, name, address: &str| {
            policy.decide(Attempt { name, address: Some(address.parse().unwrap()), port: 443 }).verdict
        };
        assert_eq!(decide(&policy, Some("evil.example"), "1.2.3.4"), DENY);
        // What leads to a denied address is denied, whatever it is called.
        assert_eq!(decide(&policy, Some("good.example"), "6.6.6.6"), DENY);
        assert_eq!(policy.to_string(), "open, !6.6.6.0/24,!evil.example");
        policy.put_first(Rule::allowing("evil.example").unwrap());
        assert_eq!(policy.rules.len(), 2);
        assert_eq!(decide(&policy, Some("evil.example"), "1.2.3.4"), ALLOW);
    }
}
