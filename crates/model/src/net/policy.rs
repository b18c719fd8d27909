//! The one kind of policy there is for what may leave a sandbox: rules in order, and what holds beside them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::{Reach, embedded, reach};
use super::answer::Answer;
use super::http::{BadHttp, Inspect};
use super::secret::Secret;
use super::target::{BadTarget, HOST, Target, is_ours};
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
    /// What answers in place of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
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
            None if self.otherwise == Otherwise::Public && !attempt.name.is_some_and(is_ours) => {
                (Verdict::Allow, "open".to_owned())
            }
            None => (Verdict::Deny, "nothing allows it".to_owned()),
        };
        // What is answered here is reached by nobody, however far it is.
        match (verdict, far.filter(|_far| self.goes_out(attempt))) {
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
/// trust: only to private addresses, and only where the rule says so. A range that holds others, too, is about those:
/// `0.0.0.0/0` is everybody out there, and neither this machine's networks nor its cloud.
fn may_reach(rule: Option<&Rule>, name: Option<&str>, far: Reach) -> bool {
    let span = rule.and_then(|rule| rule.to.span());
    let is_one = span.is_some_and(|(first, last)| first == last);
    let is_private = span.is_some_and(|(first, last)| [first, last].map(reach) == [Reach::Private; 2]);
    let may_be_private = is_private || rule.is_some_and(|rule| rule.private);
    match far {
        Reach::Public => true,
        Reach::Private => may_be_private,
        Reach::Own => is_one || may_be_private,
        // `host` is the one name that leads here, and it is ours.
        Reach::Loopback => name == Some(HOST),
        Reach::Link => is_one,
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

    /// Are its connections opened?
    pub(super) fn opens(&self) -> bool {
        self.inspect.is_some() || matches!(self.answer, Some(Answer::Fixed { .. }))
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
        if is_bare {
            f.write_str("+inspect")?;
        }
        self.answer.as_ref().map_or(Ok(()), |answer| write!(f, " -> {answer}"))
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
        Ok(Self { to, ports, verdict: Verdict::Allow, private, inspect, answer: None, set: None })
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
mod tests;
