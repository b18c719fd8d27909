//! npm, pnpm and yarn.

use std::path::PathBuf;

use model::net::Ecosystem;

use super::machine::Machine;
use super::text::pairs;
use super::{Origin, Setting};

pub(super) fn settings(machine: &Machine, ecosystem: Ecosystem) -> Vec<Setting> {
    let setting = |value: &str, variable: &str, origin: &Origin| Setting {
        ecosystem,
        value: value.to_owned(),
        variable: Some(variable.to_owned()),
        origin: origin.clone(),
    };
    let mut found = Vec::new();
    for (name, value) in machine.variables() {
        let key = name.to_ascii_lowercase();
        let npm = key.strip_prefix("npm_config_").is_some_and(is_registry);
        if npm || matches!(key.as_str(), "yarn_registry" | "yarn_npm_registry_server") {
            found.push(setting(value, name, &Origin::Environment));
        }
    }
    for (path, origin) in files(machine) {
        let text = machine.read(&path);
        for (key, value) in text.iter().flat_map(|text| pairs(text)).filter(|(key, _)| is_of_interest(key)) {
            found.push(setting(&value, &format!("npm_config_{key}"), &origin));
        }
    }
    if ecosystem == Ecosystem::Yarn {
        for (path, origin) in yarn_files(machine) {
            for value in machine.read(&path).iter().flat_map(|text| servers(text)) {
                found.push(setting(&value, "YARN_NPM_REGISTRY_SERVER", &origin));
            }
        }
    }
    found
}

fn files(machine: &Machine) -> Vec<(PathBuf, Origin)> {
    let named = |name: &str| machine.variable(name).map(PathBuf::from);
    let user = named("npm_config_userconfig").or_else(|| named("NPM_CONFIG_USERCONFIG"));
    let global = named("npm_config_globalconfig").or_else(|| named("NPM_CONFIG_GLOBALCONFIG"));
    let project = machine.of_project(".npmrc");
    [
        global.map(|path| (path, Origin::File)),
        Some((PathBuf::from("/etc/npmrc"), Origin::File)),
        Some((PathBuf::from("/usr/etc/npmrc"), Origin::File)),
        Some((PathBuf::from("/usr/local/etc/npmrc"), Origin::File)),
        user.map(|path| (path, Origin::File)),
        machine.at_home(".npmrc").map(|path| (path, Origin::Masked)),
        machine.in_config("pnpm/rc").map(|path| (path, Origin::File)),
    ]
    .into_iter()
    .flatten()
    .chain(project.into_iter().map(|path| (path.clone(), Origin::Project(path))))
    .collect()
}

fn yarn_files(machine: &Machine) -> Vec<(PathBuf, Origin)> {
    let names = [".yarnrc.yml", ".yarnrc"];
    let home = names.iter().filter_map(|name| machine.at_home(name)).map(|path| (path, Origin::Masked));
    let project = names.iter().flat_map(|name| machine.of_project(name));
    home.chain(project.map(|path| (path.clone(), Origin::Project(path)))).collect()
}

/// `npmRegistryServer: "..."` of a new yarn, `registry "..."` of an old one.
fn servers(text: &str) -> Vec<String> {
    let value = |line: &str| {
        let line = line.trim();
        let of_new = line.strip_prefix("npmRegistryServer:");
        let value = of_new.or_else(|| line.strip_prefix("registry "))?;
        Some(value.trim().trim_matches(['"', '\'']).to_owned())
    };
    text.lines().filter_map(value).collect()
}

fn is_registry(key: &str) -> bool {
    key == "registry" || (key.starts_with('@') && key.ends_with(":registry"))
}

/// Where packages are, and whose signature under that is believed. Never who asks for them.
fn is_of_interest(key: &str) -> bool {
    is_registry(key) || matches!(key, "cafile" | "strict-ssl")
}
