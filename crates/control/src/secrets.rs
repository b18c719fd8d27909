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
pub(crate) struct Secrets(Mutex<HashMap<String, SecretValue>>);

impl Secrets {
    pub(crate) fn hold(&self, values: Vec<(String, SecretValue)>) {
        self.values().extend(values);
    }

    pub(crate) fn value(&self, name: &str) -> Option<SecretValue> {
        self.values().get(name).cloned()
    }

    fn values(&self) -> MutexGuard<'_, HashMap<String, SecretValue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
    first: Option<&mut ExecRequest>,
) -> Result<Vec<(String, SecretValue)>, Problem> {
    let given = std::mem::take(&mut request.secrets);
    let mut variables = Vec::new();
    if !given.is_empty() {
        let Net::Gateway(policy) = &mut request.net else {
            return Err(Problem::new(
                Code::BadRequest,
                "secrets are put in at the gateway, which this sandbox has not",
            )
            .hint("say what it may reach, for example with --net allow:NAME"));
        };
        for new in &given {
            new.check().map_err(|error| bad(&error))?;
            let secret = Secret {
                name: new.name.clone(),
                placeholder: placeholder(new.value.reveal())?,
                hosts: new.hosts.clone(),
            };
            variables.push(variable(&secret));
            policy.secrets.retain(|other| other.name != secret.name);
            policy.secrets.push(secret);
        }
    }
    if request.net.policy().is_some_and(Policy::may_inspect) {
        variables.extend(backends::native::trust_variables());
    }
    let is_ours = |name: &model::exec::Text| variables.iter().any(|own| own.name == *name);
    if let Some(first) = first {
        first.env.retain(|variable| !is_ours(&variable.name));
    }
    request.context.env.retain(|variable| !is_ours(&variable.name));
    // The same value may go by other names, too.
    let is_value =
        |variable: &Variable| given.iter().any(|new| new.value.reveal().as_bytes() == variable.value.0);
    request.context.env.retain(|variable| !is_value(variable));
    request.context.env.extend(variables);
    Ok(given.into_iter().map(|new| (new.name, new.value)).collect())
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
        let env = vec![Variable { name: "TOKEN".into(), value: value.into() }];
        let mut request = CreateRequest {
            net: "allow:a.example".parse().unwrap(),
            secrets: vec![secret],
            ..CreateRequest::default()
        };
        request.context.env.clone_from(&env);
        let mut first = ExecRequest { env, ..ExecRequest::default() };
        let held = keep_outside(&mut request, Some(&mut first)).unwrap();
        assert_eq!((held[0].0.as_str(), held[0].1.reveal()), ("TOKEN", value));
        let text = serde_json::to_string(&(&request, &first)).unwrap();
        assert!(!text.contains(value), "{text}");
        let placeholder = &request.net.policy().unwrap().secrets[0].placeholder;
        assert!(placeholder.starts_with("ghp_") && placeholder.len() == value.len(), "{placeholder}");
        assert!(text.matches(placeholder.as_str()).count() == 2, "{text}");
        assert_ne!(super::placeholder(value).unwrap(), super::placeholder(value).unwrap());
    }
}
