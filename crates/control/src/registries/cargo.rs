//! Cargo: its configuration, and where the indexes it has read say that crates are.

use std::path::{Path, PathBuf};

use model::net::Ecosystem;
use serde::Deserialize;

use super::machine::Machine;
use super::text::pairs;
use super::{Origin, Setting};

pub(super) fn settings(machine: &Machine) -> Vec<Setting> {
    let mut found = Vec::new();
    for (name, value) in machine.variables() {
        if name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX") {
            let variable = Some(name.to_owned());
            found.push(Setting { variable, ..setting(value, Origin::Environment) });
        }
    }
    let files = |folder: &Path| [folder.join("config.toml"), folder.join("config")];
    for path in home(machine).iter().flat_map(|home| files(home)) {
        found.extend(machine.read(&path).iter().flat_map(|text| of_file(text, &Origin::File)));
    }
    for path in machine.of_project(".cargo").iter().flat_map(|folder| files(folder)) {
        let origin = Origin::Project(path.clone());
        found.extend(machine.read(&path).iter().flat_map(|text| of_file(text, &origin)));
    }
    found
}

/// Source replacement (`source.NAME.registry`) and registries (`registries.NAME.index`).
fn of_file(text: &str, origin: &Origin) -> Vec<Setting> {
    let is_one = |key: &str| matches!(key.rsplit('.').next(), Some("registry" | "index"));
    let pairs = pairs(text).into_iter();
    // An inline table has its keys in its value; what is no address there is passed over.
    let is_table = |value: &str| value.starts_with('{') && !value.contains("proxy");
    let wanted = pairs.filter(|(key, value)| is_one(key) || is_table(value));
    wanted.map(|(_, value)| setting(&value, origin.clone())).collect()
}

fn setting(value: &str, origin: Origin) -> Setting {
    Setting { ecosystem: Ecosystem::Cargo, value: value.to_owned(), variable: None, origin }
}

fn home(machine: &Machine) -> Option<PathBuf> {
    machine.variable("CARGO_HOME").map(PathBuf::from).or_else(|| machine.at_home(".cargo"))
}

/// Where crates of known registries are downloaded from: what their indexes said when they were last read.
pub(super) fn downloads(machine: &Machine, is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(home) = home(machine) else { return Vec::new() };
    let folders = machine.files(&home.join("registry/index"), "");
    // `HOST-HASH`: an index that some project once named is not the machine's.
    let of_known = folders.into_iter().filter(|folder| {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.rsplit_once('-').is_some_and(|(host, _hash)| is_known(host))
    });
    let indexes = of_known.filter_map(|folder| machine.read(&folder.join("config.json")));
    let said = indexes.filter_map(|text| match serde_json::from_str::<Index>(&text) {
        Ok(index) => Some(index),
        Err(error) => {
            tracing::debug!(%error, "the configuration of an index makes no sense");
            None
        }
    });
    said.flat_map(|index| [Some(index.dl), index.api]).flatten().collect()
}

#[derive(Deserialize)]
struct Index {
    dl: String,
    api: Option<String>,
}
