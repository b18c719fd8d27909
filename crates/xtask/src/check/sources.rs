//! House rules about the text of files in git.

use std::process::Command;

use model::env::Environment;

use super::CheckError;
use crate::files;
use crate::process::{self, ProcessError};

/// Past this, new code belongs in a new module.
const LONG: usize = 800;

/// Warns: a long list is fine, and only a reader can tell.
pub(super) fn short_files() -> Result<(), CheckError> {
    for (name, text) in tracked()? {
        let lines = text.lines().count();
        if name.ends_with(".rs") && lines > LONG {
            println!("warning: {name} has {lines} lines, more than {LONG}");
        }
    }
    Ok(())
}

/// What is committed must read the same on every machine.
pub(super) fn no_machine_paths() -> Result<(), CheckError> {
    let mut forbidden = vec![files::root().display().to_string()];
    // Root's home is the same everywhere, and tests speak of it.
    let home = Environment::read().home.filter(|home| home.starts_with("/home"));
    forbidden.extend(home.map(|home| home.display().to_string()));
    let mut places = Vec::new();
    for (name, text) in tracked()? {
        for (at, line) in text.lines().enumerate() {
            if forbidden.iter().any(|path| line.contains(path.as_str())) {
                places.push(format!("{name}:{}", at + 1));
            }
        }
    }
    if places.is_empty() { Ok(()) } else { Err(CheckError::MachinePaths { places }) }
}

/// Names and texts of the files git knows or would take; what is not text has no text.
fn tracked() -> Result<Vec<(String, String)>, ProcessError> {
    let list = process::output(
        Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(files::root()),
    )?;
    let names = String::from_utf8_lossy(&list);
    let read = |name: &str| Some((name.to_owned(), std::fs::read_to_string(files::root().join(name)).ok()?));
    Ok(names.split('\0').filter(|name| !name.is_empty()).filter_map(read).collect())
}
