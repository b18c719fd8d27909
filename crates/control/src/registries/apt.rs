//! apt: its sources, in the old form of one line each and in the new one.

use std::path::Path;

use model::net::Ecosystem;

use super::machine::Machine;
use super::{Origin, Setting};

pub(super) fn settings(machine: &Machine) -> Vec<Setting> {
    let folder = Path::new("/etc/apt/sources.list.d");
    let mut lists = machine.files(folder, ".list");
    lists.push("/etc/apt/sources.list".into());
    let of_lists = lists.iter().filter_map(|path| machine.read(path)).flat_map(|text| of_list(&text));
    let stanzas = machine.files(folder, ".sources");
    let of_stanzas = stanzas.iter().filter_map(|path| machine.read(path)).flat_map(|text| of_stanzas(&text));
    let setting = |value| Setting { ecosystem: Ecosystem::Apt, value, variable: None, origin: Origin::File };
    of_lists.chain(of_stanzas).map(setting).collect()
}

/// `deb [option=value ...] URI suite component...`
fn of_list(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("deb"));
    lines
        .filter_map(|line| line.split_whitespace().find(|word| word.contains("://")))
        .map(str::to_owned)
        .collect()
}

/// `URIs: URI...`, which may go on in further lines.
fn of_stanzas(text: &str) -> Vec<String> {
    let (mut found, mut goes_on) = (Vec::new(), false);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let is_more = line.starts_with([' ', '\t']);
        let value = match line.split_once(':') {
            Some((key, value)) if !is_more => {
                goes_on = key.eq_ignore_ascii_case("uris");
                value
            }
            _ => line,
        };
        if goes_on {
            found.extend(value.split_whitespace().map(str::to_owned));
        }
    }
    found
}

/// `Acquire::http::Proxy "http://...";` in whatever nesting.
pub(super) fn proxies(machine: &Machine) -> Vec<String> {
    let mut files = machine.files(Path::new("/etc/apt/apt.conf.d"), "");
    files.push("/etc/apt/apt.conf".into());
    let texts = files.iter().filter_map(|path| machine.read(path));
    texts.flat_map(|text| proxies_of(&text)).collect()
}

fn proxies_of(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with('#'));
    let value = |line: &str| {
        let at = line.to_ascii_lowercase().find("proxy ")?;
        let quoted = line.get(at..)?.split('"').nth(1)?;
        quoted.contains("://").then(|| quoted.to_owned())
    };
    lines.filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_both_forms_and_proxies() {
        let list = "# deb http://no.example x\ndeb [arch=amd64 signed-by=/k] http://a.example/debian stable main\n\
                    deb-src https://b.example stable main\ndeb cdrom:[x]/ y\n";
        assert_eq!(of_list(list), ["http://a.example/debian", "https://b.example"]);
        let stanzas = "Types: deb\n# URIs: http://no.example\nURIs: http://c.example/x\n http://d.example\nSuites: y\n z\n";
        assert_eq!(of_stanzas(stanzas), ["http://c.example/x", "http://d.example"]);
        let conf = "// Acquire::http::Proxy \"http://no.example\";\nAcquire::http::Proxy \"http://e.example:3142\";\n\
                    Acquire { https { Proxy \"http://f.example\"; } };\nAcquire::http::Proxy \"DIRECT\";\n";
        assert_eq!(proxies_of(conf), ["http://e.example:3142", "http://f.example"]);
    }
}
