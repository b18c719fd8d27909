//! `zeno list`.

use std::path::Path;

use jiff::Timestamp;
use model::Sandbox;

use super::paint::Paint;
use super::table::table;
use super::words::{age, left, name, path};

pub(crate) fn list(sandboxes: &[Sandbox], home: Option<&Path>, now: Timestamp, paint: Paint) -> String {
    let rows: Vec<[String; 6]> = sandboxes
        .iter()
        .map(|sandbox| {
            [
                name(sandbox),
                sandbox.state.to_string(),
                age(sandbox.created, now),
                sandbox.expires.map_or_else(dash, |expires| left(expires, now)),
                sandbox.net.to_string(),
                sandbox.workspace.as_ref().map_or_else(dash, |workspace| path(workspace, home)),
            ]
        })
        .collect();
    table(["NAME", "STATE", "AGE", "EXPIRES", "NET", "WORKSPACE"], &rows, paint)
}

/// Ids only, one per line, for `$(zeno list -q)`.
pub(crate) fn ids(sandboxes: &[Sandbox]) -> String {
    sandboxes.iter().map(|sandbox| format!("{}\n", sandbox.id)).collect()
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn two_sandboxes() {
        let sandboxes = [samples::sandbox(), samples::nameless()];
        let home = Some(Path::new("/home/ada"));
        insta::assert_snapshot!(list(&sandboxes, home, samples::now(), Paint::Plain), @"
        NAME            STATE   AGE  EXPIRES  NET   WORKSPACE
        web             active  3m   1h57m    none  ~/src/app
        sbhaaaaaaaaaaa  failed  3d   -        host  -
        ");
        insta::assert_snapshot!(ids(&sandboxes), @"
        sbpptx2e6mf2ic
        sbhaaaaaaaaaaa
        ");
    }

    #[test]
    fn none() {
        insta::assert_snapshot!(list(&[], None, samples::now(), Paint::Plain), @"NAME  STATE  AGE  EXPIRES  NET  WORKSPACE");
    }
}
