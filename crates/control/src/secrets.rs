//! Secrets that stay outside of sandboxes: their values in memory and nowhere else, placeholders for what is inside.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::exec::{ExecRequest, Variable};
use model::net::{BadSecret, Net, NewSecret, Policy, Secret, SecretValue};
use model::sandbox::CreateRequest;
use model::{Code, Problem};

/// The values of one sandbox's secrets, by name.
#[derive(Default)]
pub(crate) struct Secrets(Mutex<HashMap<String, Held>>);

/// A secret whose value is known.
#[derive(Clone)]
pub(crate) struct Held {
    placeholder: String,
    value: SecretValue,
}

impl Secrets {
    pub(crate) fn hold(&self, values: Vec<(String, Held)>) {
        self.values().extend(values);
    }

    pub(crate) fn value(&self, name: &str) -> Option<SecretValue> {
        self.values().get(name).map(|held| held.value.clone())
    }

    /// Those that a sandbox made of this one, with this policy, has as well: by the same placeholder.
    pub(crate) fn of(&self, policy: &Policy) -> Vec<(String, Held)> {
        let values = self.values();
        let known = policy.secrets.iter().filter_map(|secret| Some((secret, values.get(&secret.name)?)));
        let same = known.filter(|(secret, held)| secret.placeholder == held.placeholder);
        same.map(|(secret, held)| (secret.name.clone(), held.clone())).collect()
    }

    /// Puts placeholders into variables that hold a value.
    pub(crate) fn hide(&self, variables: &mut [Variable]) {
        self.values().values().for_each(|held| held.hide(variables));
    }

    fn values(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Wherever it stands in them, as it is or as an address spells it. A value has at least eight letters, so none is found by
    /// chance.
    fn hide(&self, variables: &mut [Variable]) {
        let plain = self.value.reveal();
        for variable in variables {
            for value in [plain, &coded(plain)] {
                if let Some(new) = replaced(&variable.value.0, value.as_bytes(), self.placeholder.as_bytes())
                {
                    variable.value.0 = new;
                }
            }
        }
    }
}

/// The same bytes with every such part replaced. None: there is none.
fn replaced(bytes: &[u8], part: &[u8], by: &[u8]) -> Option<Vec<u8>> {
    let (mut new, mut rest, mut is_changed) = (Vec::new(), bytes, false);
    while let Some(place) = rest.windows(part.len()).position(|window| window == part) {
        new.extend_from_slice(&rest[..place]);
        new.extend_from_slice(by);
        rest = &rest[place + part.len()..];
        is_changed = true;
    }
    new.extend_from_slice(rest);
    is_changed.then_some(new)
}

/// As it stands in an address: `postgres://me:VALUE@host`.
fn coded(value: &str) -> String {
    let letter = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => (byte as char).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(letter).collect()
}

/// A policy that comes with a request brings no secrets: their placeholders are made here, with their values.
pub(crate) fn refuse_foreign(net: &Net) -> Result<(), Problem> {
    if net.policy().is_none_or(|policy| policy.secrets.is_empty()) {
        return Ok(());
    }
    Err(Problem::new(Code::BadRequest, "a policy cannot bring secrets of its own")
        .hint("give them in `secrets`, with their values"))
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values().keys()).finish()
    }
}

/// Takes the values out of a request, leaves placeholders in the sandbox's environment, and gives it the variables by which
/// its programs trust us, if its connections are to be opened.
pub(crate) fn keep_outside(
    request: &mut CreateRequest,
    mut first: Option<&mut ExecRequest>,
) -> Result<Vec<(String, Held)>, Problem> {
    let given = std::mem::take(&mut request.secrets);
    let (mut variables, mut kept) = (Vec::new(), Vec::new());
    if !given.is_empty() {
        let Net::Gateway(policy) = &mut request.net else {
            return Err(Problem::new(
                Code::BadRequest,
                "secrets are put in at the gateway, which this sandbox has not",
            )
            .hint("say what it may reach, for example with --net allow:NAME"));
        };
        for new in given {
            new.check().map_err(|error| bad(&error))?;
            let secret = Secret {
                name: new.name.clone(),
                placeholder: placeholder(new.value.reveal())?,
                hosts: new.hosts,
            };
            variables.push(variable(&secret));
            let held = Held { placeholder: secret.placeholder.clone(), value: new.value };
            kept.push((secret.name.clone(), held));
            policy.secrets.retain(|other| other.name != secret.name);
            policy.secrets.push(secret);
        }
    }
    if request.net.policy().is_some_and(Policy::may_inspect) {
        variables.extend(backends::native::trust_variables());
    }
    let is_ours = |name: &model::exec::Text| variables.iter().any(|own| own.name == *name);
    if let Some(first) = first.as_mut() {
        first.env.retain(|variable| !is_ours(&variable.name));
    }
    request.context.env.retain(|variable| !is_ours(&variable.name));
    request.context.env.extend(variables);
    // The same value may stand in others, too.
    for (_, held) in &kept {
        held.hide(&mut request.context.env);
        first.as_mut().into_iter().for_each(|first| held.hide(&mut first.env));
    }
    Ok(kept)
}

/// Values that are given again, of a sandbox with this policy.
pub(crate) fn again(policy: &Policy, values: &[NewSecret]) -> Vec<(String, Held)> {
    let known = values.iter().filter_map(|new| {
        let secret = policy.secrets.iter().find(|secret| secret.name == new.name)?;
        let held = Held { placeholder: secret.placeholder.clone(), value: new.value.clone() };
        Some((new.name.clone(), held))
    });
    known.collect()
}

/// Who gets secrets from now on. The placeholders stay what they are inside.
pub(crate) fn change_hosts(policy: &mut Policy, changes: &[NewSecret]) -> Result<(), Problem> {
    for new in changes {
        new.check().map_err(|error| bad(&error))?;
        let Some(secret) = policy.secrets.iter_mut().find(|secret| secret.name == new.name) else {
            let detail = format!("the sandbox was made without a secret `{}`", new.name);
            return Err(Problem::new(Code::NotReady, detail)
                .hint(format!("zeno create --secret {}@HOST makes one with it", new.name)));
        };
        secret.hosts.clone_from(&new.hosts);
    }
    Ok(())
}

fn variable(secret: &Secret) -> Variable {
    Variable { name: secret.name.as_str().into(), value: secret.placeholder.as_str().into() }
}

/// Of the kind of the value, for programs that look at their secrets; nobody could guess it.
fn placeholder(value: &str) -> Result<String, Problem> {
    let kind = KINDS.iter().find(|kind| value.starts_with(**kind)).copied().unwrap_or_default();
    let mut random = [0_u8; LONGEST];
    getrandom::fill(&mut random).map_err(|error| Problem::from_error(Code::Internal, &error))?;
    let length = (value.len().saturating_sub(kind.len())).clamp(SHORTEST, LONGEST);
    let letter = |byte: &u8| LETTERS[usize::from(*byte) % LETTERS.len()] as char;
    Ok(kind.chars().chain(random[..length].iter().map(letter)).collect())
}

fn bad(error: &BadSecret) -> Problem {
    Problem::from_error(Code::BadRequest, error)
}

/// How the keys of well-known services begin. That they do is no secret.
const KINDS: [&str; 12] = [
    "sk-ant-",
    "sk-proj-",
    "sk_live_",
    "sk_test_",
    "sk-",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "AKIA",
    "npm_",
];
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyzABCDEF23";
/// 160 bits.
const SHORTEST: usize = 32;
const LONGEST: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_leaves_the_request_and_a_placeholder_stays() {
        let value = "ghp_0123456789abcdef0123456789abcdef0123";
        let secret = NewSecret {
            name: "TOKEN".to_owned(),
            hosts: vec!["a.example".parse().unwrap()],
            value: SecretValue::new(value.to_owned()),
        };
        let variable = |name: &str, value: &str| Variable { name: name.into(), value: value.into() };
        let env = vec![
            variable("TOKEN", value),
            variable("SAME", value),
            variable("DATABASE_URL", &format!("postgres://me:{value}@db/{value}")),
            variable("OTHER", "ghp_0123"),
        ];
        let mut request = CreateRequest {
            net: "allow:a.example".parse().unwrap(),
            secrets: vec![secret],
            ..CreateRequest::default()
        };
        request.context.env.clone_from(&env);
        let mut first = ExecRequest { env: env.clone(), ..ExecRequest::default() };
        let kept = keep_outside(&mut request, Some(&mut first)).unwrap();
        let secrets = Secrets::default();
        secrets.hold(kept);
        assert_eq!(secrets.value("TOKEN").unwrap().reveal(), value);
        let text = serde_json::to_string(&(&request, &first)).unwrap();
        assert!(!text.contains(value), "{text}");
        let placeholder = request.net.policy().unwrap().secrets[0].placeholder.clone();
        assert!(placeholder.starts_with("ghp_") && placeholder.len() == value.len(), "{placeholder}");
        let url = format!("postgres://me:{placeholder}@db/{placeholder}");
        let own =
            [variable("SAME", &placeholder), variable("DATABASE_URL", &url), variable("OTHER", "ghp_0123")];
        assert_eq!(first.env, own);
        assert_eq!(request.context.env[..3], own);
        assert_eq!(request.context.env[3], variable("TOKEN", &placeholder));
        // A command that comes later.
        let mut later = env;
        secrets.hide(&mut later);
        assert_eq!((&later[0].value, &later[2].value), (&placeholder.as_str().into(), &url.as_str().into()));
        assert_ne!(super::placeholder(value).unwrap(), super::placeholder(value).unwrap());
        // What is made of it has the same, unless it has another by that name.
        let mut policy = request.net.policy().unwrap().clone();
        assert_eq!(secrets.of(&policy).len(), 1);
        policy.secrets[0].placeholder = "another".to_owned();
        assert_eq!(secrets.of(&policy).len(), 0);
        assert!(refuse_foreign(&request.net).is_err() && refuse_foreign(&"open".parse().unwrap()).is_ok());
    }

    #[test]
    fn a_value_is_found_as_an_address_spells_it() {
        let held =
            Held { placeholder: "stands-for-it".to_owned(), value: SecretValue::new("p@ss/word".to_owned()) };
        let mut variables =
            vec![Variable { name: "URL".into(), value: "postgres://me:p%40ss%2Fword@db".into() }];
        held.hide(&mut variables);
        assert_eq!(variables[0].value, "postgres://me:stands-for-it@db".into());
    }
}
