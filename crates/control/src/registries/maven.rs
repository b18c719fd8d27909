//! Maven: the mirrors and repositories of its settings.

use std::path::PathBuf;

use model::net::Ecosystem;

use super::machine::Machine;
use super::{Origin, Setting};

pub(super) fn settings(machine: &Machine) -> Vec<Setting> {
    let installed = ["MAVEN_HOME", "M2_HOME"].into_iter().filter_map(|name| machine.variable(name));
    let installed = installed.map(|folder| PathBuf::from(folder).join("conf/settings.xml"));
    let files = machine.at_home(".m2/settings.xml").into_iter().chain(installed);
    let texts =
        files.chain([PathBuf::from("/etc/maven/settings.xml")]).filter_map(|path| machine.read(&path));
    let setting =
        |value| Setting { ecosystem: Ecosystem::Maven, value, variable: None, origin: Origin::File };
    texts.flat_map(|text| urls(&text)).map(setting).collect()
}

/// The text of every `<url>` that is not in a comment.
fn urls(text: &str) -> Vec<String> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let values = shown.split("<url>").skip(1).filter_map(|piece| piece.split_once("</url>"));
    values.map(|(value, _)| value.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_but_no_comments() {
        let text = "<settings><mirrors><!-- <mirror><url>http://no.example</url></mirror> -->\n\
                    <mirror><id>x</id><url>\n https://a.example/maven </url></mirror></mirrors><url>https://b.example";
        assert_eq!(urls(text), ["https://a.example/maven"]);
        assert_eq!(urls("<!-- <url>x</url>"), [""; 0]);
    }
}
