//! Whatever was done: the patch makes the workspace of it, with the real git.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;

use super::Bed;
use crate::diff::{Base, Pair};

const PLACES: [&str; 12] = ["a", "b", "d", "d/a", "d/b", "d/d", "d/d/a", "e", "e/a b", "n", "n/a", "n/d"];

const FILES: [(&str, &str); 6] = [
    ("a", "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"),
    ("b", "no end"),
    ("d/a", "one\ntwo\nthree\nfour\n"),
    ("d/b", "carriage\rreturn\r\n"),
    ("d/d/a", "deep\n"),
    ("e/a b", "blank\n"),
];

fn place() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&PLACES[..])
}

/// One thing somebody might do. It may fail: then it did nothing.
fn deed() -> impl Strategy<Value = String> {
    let text = proptest::sample::select(&["x", "x\\n", "one\\ntwo\\n", "\\0bin\\0", "a\\rb\\n", ""][..]);
    prop_oneof![
        (place(), text.clone()).prop_map(|(path, text)| format!("printf '{text}' > '{path}'")),
        (place(), text).prop_map(|(path, text)| format!("printf '{text}' >> '{path}'")),
        place().prop_map(|path| format!("rm -rf '{path}'")),
        place().prop_map(|path| format!("mkdir '{path}'")),
        place().prop_map(|path| format!("chmod 755 '{path}'")),
        place().prop_map(|path| format!("sed -i s/one/eins/ '{path}'")),
        (place(), place()).prop_map(|(from, to)| format!("mv -T '{from}' '{to}'")),
        (place(), place()).prop_map(|(from, to)| format!("cp -r '{from}' '{to}'")),
        // To a place further down the list, so that no two point to each other: behind those not even git can look.
        (place(), place())
            .prop_filter("a link to itself", |(one, other)| one != other)
            .prop_map(|(one, other)| format!("ln -s '{}' '{}'", one.max(other), one.min(other))),
    ]
}

fn deeds() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(deed(), 1..8)
}

/// All that can be seen of a tree, by the real overlay.
const SEE: &str =
    "find . -printf '%p %y %m %s %l %T@\\n' | sort; find . -type f -print0 | sort -z | xargs -r0 cat";

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn layers_made_one_show_the_same(layers in proptest::collection::vec(deeds(), 2..7)) {
        let bed = Bed::new(&FILES);
        for deeds in &layers {
            let script: String = deeds.iter().map(|deed| format!("{deed} 2>&- || :\n")).collect();
            bed.script(&script);
            bed.seal();
        }
        let (seen, told) = (bed.script(SEE).stdout, bed.diff());
        bed.squash();
        prop_assert_eq!(bed.layers().len(), 1);
        let now = bed.script(SEE).stdout;
        prop_assert_eq!(String::from_utf8_lossy(&now), String::from_utf8_lossy(&seen), "{:?}", layers);
        prop_assert_eq!(bed.diff(), told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_patch_makes_the_same_files(layers in proptest::collection::vec(deeds(), 1..5)) {
        let bed = Bed::new(&FILES);
        let seen = bed.path("seen");
        for deeds in layers {
            let script: String = deeds.iter().map(|deed| format!("{deed} 2>&- || :\n")).collect();
            bed.seal();
            bed.script(&format!("{script}rm -rf {seen}; cp -a . {seen}", seen = seen.display()));
        }
        applies(&bed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn the_patch_makes_the_other_of_the_one(one in deeds(), other in deeds()) {
        let [one, other] = [one, other].map(|deeds| {
            let bed = Bed::new(&FILES);
            let script: String = deeds.iter().map(|deed| format!("{deed} 2>&- || :\n")).collect();
            bed.script(&format!("{script}cp -a . {}", bed.path("seen").display()));
            bed
        });
        let pair = Pair::new(one.compare(), other.compare(), Base::Shared, Vec::new());
        let mut patch = Vec::new();
        pair.patch(&mut patch).unwrap();
        makes(&patch, &one.path("seen"), &other.path("seen"))?;
    }
}

/// What left a moved folder is told once, where it is now.
#[test]
fn the_patch_of_what_left_a_moved_folder() {
    let scripts = [
        "mv d x; mv x/d/a y",
        "mv d x; rm x/d/a",
        "mv d x; rm -r x/d; mkdir x/d; echo new > x/d/b",
        "mv d x; mv x/d y; mkdir x/d; echo new > x/d/a",
        "mv d x; mv x/a y; mv x/d/a x/a",
    ];
    for script in scripts {
        let bed = Bed::new(&FILES);
        bed.script(&format!("{script}; cp -a . {}", bed.path("seen").display()));
        applies(&bed).unwrap_or_else(|wrong| panic!("{script}: {wrong}"));
    }
}

/// Does the patch make of the workspace what was seen inside?
fn applies(bed: &Bed) -> Result<(), TestCaseError> {
    makes(&bed.patch(), &bed.lower(), &bed.path("seen"))
}

/// Does the patch make one tree of the other?
fn makes(patch: &[u8], tree: &Path, expected: &Path) -> Result<(), TestCaseError> {
    // Git follows a link that leads to itself when it looks for what is to lie below it, and gives up: no patch can do that.
    if files(expected).keys().any(|name| is_below_a_loop(tree, name)) {
        return Ok(());
    }
    let file = tree.with_extension("patch");
    fs::write(&file, patch).unwrap();
    // Git knows no empty folders: one that lies where a file is to be would keep it from being written.
    let empty = [".", "-mindepth", "1", "-type", "d", "-empty", "-delete"];
    let tidied = Command::new("find").args(empty).current_dir(tree).status().unwrap();
    prop_assert!(tidied.success());
    let applied = Command::new("git")
        .args(["apply", "--allow-empty", "--whitespace=nowarn"])
        .arg(&file)
        .current_dir(tree)
        .env("GIT_CEILING_DIRECTORIES", "/")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&applied.stderr);
    let patch = String::from_utf8_lossy(patch);
    prop_assert!(applied.status.success(), "{said}\n{patch}");
    prop_assert_eq!(files(tree), files(expected), "{}", patch);
    Ok(())
}

fn is_below_a_loop(tree: &Path, name: &str) -> bool {
    let loops = |folder: &Path| {
        fs::metadata(tree.join(folder)).is_err_and(|error| error.raw_os_error() == Some(libc::ELOOP))
    };
    Path::new(name).ancestors().skip(1).any(loops)
}

/// Files and links: whether they can be executed, and their contents.
fn files(root: &Path) -> BTreeMap<String, (bool, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            if stat.is_dir() {
                folders.push(path);
            } else if stat.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                files.insert(name + "@", (false, target.as_os_str().as_bytes().to_vec()));
            } else {
                files.insert(name, (stat.permissions().mode() & 0o100 != 0, fs::read(&path).unwrap()));
            }
        }
    }
    files
}
