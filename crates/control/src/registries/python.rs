//! pip and uv.

use std::path::PathBuf;

use model::net::Ecosystem;

use super::machine::Machine;
use super::text::pairs;
use super::{Origin, Setting};

pub(super) fn settings(machine: &Machine, ecosystem: Ecosystem) -> Vec<Setting> {
    let (variables, keys): (&[&str], &[&str]) = match ecosystem {
        Ecosystem::Uv => (
            &["UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS"],
            &["url", "index-url", "extra-index-url", "default-index", "index", "find-links"],
        ),
        _ => (
            &["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"],
            &["index-url", "extra-index-url", "find-links"],
        ),
    };
    let setting = |value: &str, variable: Option<&str>, origin: Origin| Setting {
        ecosystem,
        value: value.to_owned(),
        variable: variable.map(str::to_owned),
        origin,
    };
    let of_environment = variables.iter().filter_map(|name| {
        machine.variable(name).map(|value| setting(value, Some(name), Origin::Environment))
    });
    let mut found: Vec<Setting> = of_environment.collect();
    for (path, origin) in files(machine, ecosystem) {
        let text = machine.read(&path);
        for (key, value) in text.iter().flat_map(|text| pairs(text)) {
            if keys.contains(&key.as_str()) {
                found.push(setting(&value, of_key(ecosystem, &key), origin.clone()));
            }
        }
    }
    found
}

/// The variable that says the same.
fn of_key(ecosystem: Ecosystem, key: &str) -> Option<&'static str> {
    match (ecosystem, key) {
        (Ecosystem::Uv, "index-url") => Some("UV_INDEX_URL"),
        (Ecosystem::Uv, "extra-index-url") => Some("UV_EXTRA_INDEX_URL"),
        (Ecosystem::Pip, "index-url") => Some("PIP_INDEX_URL"),
        (Ecosystem::Pip, "extra-index-url") => Some("PIP_EXTRA_INDEX_URL"),
        (Ecosystem::Pip, "find-links") => Some("PIP_FIND_LINKS"),
        _ => None,
    }
}

fn files(machine: &Machine, ecosystem: Ecosystem) -> Vec<(PathBuf, Origin)> {
    let named = |name: &str| machine.variable(name).map(PathBuf::from);
    let own = match ecosystem {
        Ecosystem::Uv => [
            Some(PathBuf::from("/etc/uv/uv.toml")),
            machine.in_config("uv/uv.toml"),
            named("UV_CONFIG_FILE"),
            None,
            None,
        ],
        _ => [
            Some(PathBuf::from("/etc/pip.conf")),
            Some(PathBuf::from("/etc/xdg/pip/pip.conf")),
            machine.in_config("pip/pip.conf"),
            machine.at_home(".pip/pip.conf"),
            named("PIP_CONFIG_FILE"),
        ],
    };
    // That of a virtual environment lies in the project, mostly.
    let site = named("VIRTUAL_ENV").map(|folder| folder.join("pip.conf"));
    let project = match ecosystem {
        Ecosystem::Uv => machine.of_project("uv.toml"),
        _ => site.into_iter().collect(),
    };
    let own = own.into_iter().flatten().map(|path| (path, Origin::File));
    own.chain(project.into_iter().map(|path| (path.clone(), Origin::Project(path)))).collect()
}
