//! Go: the module proxies and the checksum database.

use std::path::PathBuf;

use model::net::Ecosystem;

use super::machine::Machine;
use super::text::pairs;
use super::{Origin, Setting};

pub(super) fn settings(machine: &Machine) -> Vec<Setting> {
    let setting = |name: &str, value: &str, origin: Origin| Setting {
        ecosystem: Ecosystem::Go,
        value: value.to_owned(),
        variable: Some(name.to_owned()),
        origin,
    };
    let of_environment = NAMES
        .iter()
        .filter_map(|name| machine.variable(name).map(|value| setting(name, value, Origin::Environment)));
    let file = machine.variable("GOENV").map(PathBuf::from).or_else(|| machine.in_config("go/env"));
    let text = file.and_then(|path| machine.read(&path));
    let pairs = text.iter().flat_map(|text| pairs(text));
    let of_file = pairs.filter(|(name, _)| NAMES.contains(&name.as_str()));
    of_environment.chain(of_file.map(|(name, value)| setting(&name, &value, Origin::File))).collect()
}

const NAMES: [&str; 2] = ["GOPROXY", "GOSUMDB"];
