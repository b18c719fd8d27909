//! Every Rust file must hang in a module tree: a forgotten test file passes for ever.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::CheckError;
use crate::files::{self, FileError};

pub(super) fn every_file_is_compiled() -> Result<(), CheckError> {
    let mut orphans = Vec::new();
    for folder in files::list(&files::root().join("crates"))? {
        let tests = folder.join("tests");
        let mut compiled = BTreeSet::new();
        for tree in trees(&folder, &tests)? {
            walk(&tree, tree.parent().expect("a file has a folder"), &mut compiled)?;
        }
        let mut present = BTreeSet::new();
        rust_files(&folder.join("src"), &mut present)?;
        rust_files(&tests, &mut present)?;
        orphans.extend(present.difference(&compiled).map(|file| shown(file)));
    }
    if orphans.is_empty() { Ok(()) } else { Err(CheckError::Orphans { files: orphans }) }
}

/// Where a crate's module trees start: what cargo itself finds.
fn trees(folder: &Path, tests: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut trees = vec![folder.join("src/lib.rs"), folder.join("src/main.rs")];
    for path in files::list(tests)? {
        trees.push(if path.is_dir() { path.join("main.rs") } else { path });
    }
    trees.retain(|tree| tree.is_file() && tree.extension().is_some_and(|extension| extension == "rs"));
    Ok(trees)
}

/// Takes in a file and the modules it declares, whose files lie in `children`.
fn walk(file: &Path, children: &Path, compiled: &mut BTreeSet<PathBuf>) -> Result<(), FileError> {
    compiled.insert(file.to_owned());
    for name in declared(&files::read(file)?) {
        let folder = children.join(name);
        let inside = folder.join("mod.rs");
        let beside = children.join(format!("{name}.rs"));
        if let Some(module) = [inside, beside].iter().find(|path| path.is_file()) {
            walk(module, &folder, compiled)?;
        }
    }
    Ok(())
}

/// Names in `mod name;`, with any visibility.
fn declared(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let declaration = line.trim().strip_suffix(';')?;
        let (visibility, name) = declaration.rsplit_once("mod ")?;
        let is_plain = visibility.is_empty() || visibility.starts_with("pub");
        let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        (is_plain && is_name).then_some(name)
    })
}

fn rust_files(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<(), FileError> {
    for path in files::list(folder)? {
        let is_data = path.file_name().is_some_and(|name| name == "fixtures" || name == "snapshots");
        if path.is_dir() && !is_data {
            rust_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(path);
        }
    }
    Ok(())
}

fn shown(file: &Path) -> String {
    file.strip_prefix(files::root()).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations() {
        let source = "mod a;\npub(crate) mod b;\npub mod c;\n// mod d;\nmod tests {\n    use modx;\n}\nlet x = \"mod e\";";
        assert_eq!(declared(source).collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn a_file_nobody_declares_is_not_in_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("main.rs", "mod a;"), ("a.rs", "mod b;"), ("a/b.rs", ""), ("forgotten.rs", "")]
        {
            files::write(&folder.path().join(name), text).unwrap();
        }
        let (mut compiled, mut present) = (BTreeSet::new(), BTreeSet::new());
        walk(&folder.path().join("main.rs"), folder.path(), &mut compiled).unwrap();
        rust_files(folder.path(), &mut present).unwrap();
        let orphans: Vec<_> = present.difference(&compiled).collect();
        assert_eq!(orphans, [&folder.path().join("forgotten.rs")]);
    }
}
