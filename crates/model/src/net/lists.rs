//! Lists of what may and what may not be reached, as E2B's network settings have them (`allowOut`, `denyOut`,
//! `allow_internet_access`), expressed by the one [`Policy`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::{BadRule, Otherwise, Policy, Rule};
use super::target::Target;

/// Names, patterns of names, addresses and ranges of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Lists {
    /// Come before what is denied.
    pub allow_out: Vec<String>,
    pub deny_out: Vec<String>,
    /// Everything public, unless said otherwise. `false` is the same as denying everything.
    #[serde(rename = "allow_internet_access")]
    pub internet: Option<bool>,
}

/// The policy that says the same. `host`, sandboxes and the set `registries` are zeno's words and mean nothing there.
impl TryFrom<&Lists> for Policy {
    type Error = BadRule;

    fn try_from(lists: &Lists) -> Result<Self, BadRule> {
        let rule = |text: &String, verdict: fn(&str) -> Result<Rule, BadRule>| {
            let text = if text == EVERYTHING { "*" } else { text };
            let rule = verdict(text)?;
            match rule.to {
                Target::Host | Target::Sandbox(_) | Target::Registries(_) => {
                    Err(BadRule::Foreign { text: text.to_owned() })
                }
                Target::Any | Target::Name(_) | Target::Below(_) | Target::Addresses(..) => Ok(rule),
            }
        };
        let allowed = lists.allow_out.iter().map(|text| rule(text, Rule::allowing));
        let denied = lists.deny_out.iter().map(|text| rule(text, Rule::denying));
        let rules: Vec<Rule> = allowed.chain(denied).collect::<Result<_, _>>()?;
        let otherwise = match lists.internet {
            Some(false) => Otherwise::Deny,
            Some(true) | None => Otherwise::Public,
        };
        Ok(Self { otherwise, rules, secrets: Vec::new() })
    }
}

/// How these lists say `*`.
const EVERYTHING: &str = "0.0.0.0/0";

#[cfg(test)]
mod tests {
    use super::super::{Attempt, Verdict};
    use super::*;

    #[track_caller]
    fn policy(json: &str) -> Policy {
        let lists: Lists = serde_json::from_str(json).unwrap();
        Policy::try_from(&lists).unwrap()
    }

    fn may(policy: &Policy, name: Option<&str>, address: &str) -> bool {
        let address = Some(address.parse().unwrap());
        policy.decide(Attempt { name, address, port: 443 }).verdict == Verdict::Allow
    }

    #[test]
    fn nothing_said_is_everything_public() {
        let open = policy("{}");
        assert_eq!(open.to_string(), "open");
        assert_eq!(policy(r#"{"allow_internet_access":false}"#).to_string(), "deny");
        assert!(may(&open, Some("a.example"), "1.2.3.4") && !may(&open, None, "10.0.0.1"));
    }

    #[test]
    fn what_is_allowed_comes_before_what_is_denied() {
        let policy = policy(r#"{"allowOut":["api.example","8.8.8.8"],"denyOut":["0.0.0.0/0"]}"#);
        assert_eq!(policy.to_string(), "open, api.example,8.8.8.8,!*");
        assert!(may(&policy, Some("api.example"), "1.2.3.4") && may(&policy, None, "8.8.8.8"));
        assert!(!may(&policy, Some("other.example"), "1.2.3.4") && !may(&policy, None, "2606:4700::1"));
    }

    #[test]
    fn ranges_and_patterns_are_denied_by_where_they_lead() {
        let policy = policy(r#"{"denyOut":["1.2.3.0/24","*.bad.example"]}"#);
        assert!(
            !may(&policy, Some("any.example"), "1.2.3.4") && !may(&policy, Some("x.bad.example"), "5.6.7.8")
        );
        assert!(may(&policy, Some("any.example"), "5.6.7.8"));
    }

    #[test]
    fn words_of_ours_and_what_is_no_destination_are_refused() {
        for text in ["host", "b.zeno", "registries", "registries/npm", "a b", ""] {
            let lists = Lists { allow_out: vec![text.to_owned()], ..Lists::default() };
            assert!(Policy::try_from(&lists).is_err(), "{text}");
        }
    }
}
