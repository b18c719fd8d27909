//! Makes rules of the set `registries`: where this machine's own package managers go, by what is built into them and what
//! they are configured for.
//!
//! Whose word counts: the caller's environment and the files of the user and the machine. Files of the project are anybody's
//! who writes to it, so a registry that only they name is not opened; a caveat says how to open it.
//!
//! Reads files of others and survives whatever is in them. Never takes a credential out of one: of an address with a
//! user in it, only the rest is used.

mod apt;
mod cargo;
mod go;
mod machine;
mod maven;
mod npm;
mod own;
mod proxies;
mod python;
mod text;
mod url;

use std::path::PathBuf;

use model::Caveat;
use model::caveat::CaveatKind;
use model::exec::Variable;
use model::net::{Ecosystem, Policy, Ports, Reach, Rule, Target, Verdict, reach};

pub(crate) use machine::Machine;
use url::Url;

/// What a sandbox needs beside the rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Replace those of the same name.
    pub(crate) variables: Vec<Variable>,
    /// Not to be handed on: proxies that may not be reached.
    pub(crate) without: Vec<String>,
    pub(crate) caveats: Vec<Caveat>,
    /// Asked for by name, and there is nothing to open.
    pub(crate) unknown: Vec<Ecosystem>,
}

/// One setting of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    ecosystem: Ecosystem,
    /// As the tool writes it: often an address, sometimes several, sometimes none.
    value: String,
    /// In which the tool takes the same from its environment.
    variable: Option<String>,
    origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Environment,
    File,
    /// A file that a sandbox is not shown.
    Masked,
    /// A file of the project.
    Project(PathBuf),
}

/// Is there anything to complete?
pub(crate) fn are_in(policy: &Policy) -> bool {
    policy.rules.iter().any(|rule| matches!(rule.to, Target::Registries(_)))
}

/// Replaces the set by its rules.
pub(crate) fn complete(policy: &mut Policy, machine: &Machine) -> Completed {
    let mut completed = Completed::default();
    let mut rules: Vec<Rule> = Vec::new();
    for rule in std::mem::take(&mut policy.rules) {
        match rule.to {
            Target::Registries(which) => {
                let wanted = which.map_or(Ecosystem::ALL.to_vec(), |one| vec![one]);
                for ecosystem in wanted {
                    let of_set = of_ecosystem(ecosystem, machine, &mut completed);
                    let meant: Vec<Rule> =
                        of_set.into_iter().filter_map(|one| as_typed(one, &rule)).collect();
                    if which.is_some() && meant.is_empty() {
                        completed.unknown.push(ecosystem);
                    }
                    rules.extend(meant);
                }
            }
            _ => rules.push(rule),
        }
    }
    for rule in rules {
        if !policy.rules.contains(&rule) {
            policy.rules.push(rule);
        }
    }
    proxies::settle(policy, machine, &mut completed);
    completed.caveats.extend(completed.unknown.iter().map(|ecosystem| unknown(*ecosystem)));
    completed
}

/// A rule of the set, as far as what was typed with the set's name goes. None: it is of another port.
fn as_typed(rule: Rule, typed: &Rule) -> Option<Rule> {
    let is_meant = |own: &Ports| {
        typed.ports.is_empty()
            || typed.ports.iter().any(|ports| (ports.first..=ports.last).contains(&own.first))
    };
    let is_one = rule.ports.iter().all(is_meant);
    is_one.then(|| Rule { verdict: typed.verdict, inspect: typed.inspect.clone(), ..rule })
}

fn unknown(ecosystem: Ecosystem) -> Caveat {
    let text = format!(
        "{ecosystem} says nowhere on this machine where its registry is, so none is opened: `zeno net SANDBOX --allow HOST:443` opens \
         one by its name"
    );
    Caveat::new(CaveatKind::Network, text)
}

fn of_ecosystem(ecosystem: Ecosystem, machine: &Machine, completed: &mut Completed) -> Vec<Rule> {
    let settings = match ecosystem {
        Ecosystem::Cargo => cargo::settings(machine),
        Ecosystem::Npm | Ecosystem::Pnpm | Ecosystem::Yarn => npm::settings(machine, ecosystem),
        Ecosystem::Pip | Ecosystem::Uv => python::settings(machine, ecosystem),
        Ecosystem::Go => go::settings(machine),
        Ecosystem::Apt => apt::settings(machine),
        Ecosystem::Maven => maven::settings(machine),
    };
    let mut rules = own::rules(ecosystem, machine);
    let (of_project, own): (Vec<Setting>, Vec<Setting>) =
        settings.into_iter().partition(|setting| matches!(setting.origin, Origin::Project(_)));
    for setting in own {
        let urls = Url::all(&setting.value);
        rules.extend(urls.iter().filter_map(|url| rule(ecosystem, url)));
        hand_on(&setting, &urls, machine, completed);
    }
    if ecosystem == Ecosystem::Cargo {
        let known: Vec<Target> = rules.iter().map(|rule| rule.to.clone()).collect();
        let downloads = cargo::downloads(machine, |host| known.iter().any(|target| target.names(host)));
        rules.extend(
            downloads.iter().flat_map(|value| Url::all(value)).filter_map(|url| rule(ecosystem, &url)),
        );
    }
    for setting in &of_project {
        for url in Url::all(&setting.value) {
            let Some(wanted) = rule(ecosystem, &url) else { continue };
            let is_covered = |rule: &Rule| (&rule.to, &rule.ports) == (&wanted.to, &wanted.ports);
            if !rules.iter().any(is_covered) {
                completed.caveats.push(not_opened(setting, &url));
            }
        }
    }
    rules
}

/// This machine's loopback is reached as `host`. An address where clouds keep credentials is no registry.
fn rule(ecosystem: Ecosystem, url: &Url) -> Option<Rule> {
    let to = match url.address() {
        _ if url.is_home() => Target::Host,
        Some(address) if matches!(reach(address), Reach::Link | Reach::Nowhere) => return None,
        Some(_) | None => url.host.parse().ok()?,
    };
    let to = match to {
        Target::Host | Target::Name(_) | Target::Addresses(..) => to,
        Target::Any | Target::Below(_) | Target::Sandbox(_) | Target::Registries(_) => return None,
    };
    Some(ecosystem.rule(to, url.port))
}

/// What a tool cannot read inside, or what means something else there, it is told by a variable.
fn hand_on(setting: &Setting, urls: &[Url], machine: &Machine, completed: &mut Completed) {
    let is_home = urls.iter().any(Url::is_home);
    match (&setting.variable, &setting.origin) {
        (Some(variable), _) if is_home => put(completed, variable, &url::from_inside(&setting.value)),
        (None, _) if is_home => {
            let text = format!(
                "{} is configured for `{}`, which is this machine: inside it is `host`, and the tool has to be told so",
                setting.ecosystem,
                url::without_credentials(&setting.value)
            );
            completed.caveats.push(Caveat::new(CaveatKind::Network, text));
        }
        (Some(variable), Origin::Masked) if machine.variable(variable).is_none() => {
            put(completed, variable, &url::without_credentials(&setting.value));
        }
        (_, Origin::Masked | Origin::File | Origin::Environment | Origin::Project(_)) => {}
    }
}

fn put(completed: &mut Completed, name: &str, value: &str) {
    let variable = Variable { name: name.into(), value: value.into() };
    if !completed.variables.contains(&variable) {
        completed.variables.push(variable);
    }
}

fn not_opened(setting: &Setting, url: &Url) -> Caveat {
    let path = match &setting.origin {
        Origin::Project(path) => path.to_string_lossy().into_owned(),
        Origin::Environment | Origin::File | Origin::Masked => String::new(),
    };
    let text = format!(
        "the project's own configuration names a registry for {} that this machine's does not, so it is not opened: \
         `zeno net SANDBOX --allow {}:{}` opens it",
        setting.ecosystem, url.host, url.port
    );
    Caveat::at(CaveatKind::Network, path, text)
}

/// May this be reached by name?
fn is_open(policy: &Policy, url: &Url) -> bool {
    use model::net::Attempt;
    let attempt = match url.address() {
        Some(address) => Attempt { name: None, address: Some(address), port: url.port },
        None => Attempt { name: Some(&url.host), address: None, port: url.port },
    };
    policy.decide(attempt).verdict == Verdict::Allow
}

#[cfg(test)]
mod tests;
