//! Which names are one file: in the sandbox, and here.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use model::promotion::{Action, Assessment};

use super::{Lab, Tree, Wish, actions, deciding};

/// For each name of a file, all names of the same file.
pub(super) type Families = BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>;

/// The files of a tree that was read there. Symbolic links are no files: each comes for itself.
pub(super) fn families(root: &Path, tree: &Tree) -> Families {
    let mut names: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for path in tree.iter().filter(|(_, node)| node.mode & 0o170_000 == 0o100_000).map(|(path, _)| path) {
        let place = root.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path));
        names.entry(std::fs::symlink_metadata(place).unwrap().ino()).or_default().insert(path.clone());
    }
    names.values().flat_map(|family| family.iter().map(|name| (name.clone(), family.clone()))).collect()
}

/// What is to be one file afterwards: what is one in the sandbox, as far as at least one of two names is promoted, and what
/// was one here, as far as neither is.
pub(super) fn expected_families(before: &Families, seen: &Families, report: &Assessment) -> Families {
    let promoted: BTreeSet<&[u8]> = promoted(report).collect();
    let mut expected: Families = seen.keys().map(|name| (name.clone(), [name.clone()].into())).collect();
    for (families, is_meant) in [(seen, true), (before, false)] {
        for (one, family) in families {
            for other in family {
                let is_promoted = [one, other].iter().any(|name| promoted.contains(name.as_slice()));
                if is_promoted == is_meant && expected.contains_key(one) && expected.contains_key(other) {
                    unite(&mut expected, one, other);
                }
            }
        }
    }
    expected
}

/// A further name of a file that stays has the time of that file.
pub(super) fn with_times_of_what_stays(
    mut expected: Tree,
    before: &Tree,
    families: &Families,
    report: &Assessment,
) -> Tree {
    let promoted: BTreeSet<&[u8]> = promoted(report).collect();
    for (name, family) in families {
        let stays = family.iter().find(|other| !promoted.contains(other.as_slice()));
        if let (Some(stays), Some(node)) = (stays, expected.get_mut(name)) {
            node.mtime = before[stays].mtime;
        }
    }
    expected
}

fn promoted(report: &Assessment) -> impl Iterator<Item = &[u8]> {
    let come = report.actions.iter().filter(|planned| planned.action != Action::Delete);
    come.map(|planned| planned.path.0.as_slice())
}

fn unite(families: &mut Families, one: &[u8], other: &[u8]) {
    let both: BTreeSet<Vec<u8>> = families[one].union(&families[other]).cloned().collect();
    for name in &both {
        families.insert(name.clone(), both.clone());
    }
}

const FILES: [(&str, &str); 3] = [("a", "alpha\n"), ("b", "beta\n"), ("d/one", "one\n")];

fn inodes<const N: usize>(lab: &Lab, paths: [&str; N]) -> [u64; N] {
    paths.map(|path| std::fs::metadata(lab.file(path)).unwrap().ino())
}

#[test]
fn a_further_name_of_an_untouched_file_is_one_of_the_real_file() {
    let lab = Lab::new(&FILES);
    let [a] = inodes(&lab, ["a"]);
    let before = lab.tree();
    lab.inside("ln a new; ln a d/new; rm b; ln a b");
    let report = lab.promote(&Wish::default()).unwrap();
    assert_eq!(actions(&report), ["~ b", "+ d/new", "+ new"]);
    assert_eq!(report.caveats, []);
    assert_eq!(inodes(&lab, ["a", "b", "new", "d/new"]), [a; 4]);
    lab.undo().unwrap();
    super::assert_same(&lab.tree(), &before);
    assert_eq!(std::fs::metadata(lab.file("a")).unwrap().nlink(), 1);
}

#[test]
fn what_is_written_later_under_one_name_keeps_undo_from_taking_the_other() {
    let lab = Lab::new(&FILES);
    lab.inside("ln a new");
    lab.promote(&Wish::default()).unwrap();
    lab.outside("echo more >> a");
    assert!(lab.undo().is_err(), "`new` has moved on");
    assert_eq!(lab.read("new"), "alpha\nmore\n");
}

#[test]
fn a_further_name_of_what_changed_here_or_stays_behind_is_a_file_of_its_own_and_told() {
    let told = |lab: &Lab, wish: &Wish| {
        let caveats = lab.promote(wish).unwrap().caveats;
        let [caveat] = caveats.as_slice() else { panic!("{caveats:?}") };
        caveat.text.clone()
    };
    // Reality has changed the file.
    let lab = Lab::new(&FILES);
    lab.inside("ln a new");
    lab.outside("echo other > a");
    assert!(
        told(&lab, &Wish::default())
            .starts_with("`new` and `a` are one file in the sandbox and are two here:")
    );
    assert_eq!((lab.read("a"), lab.read("new")), ("other\n".into(), "alpha\n".into()));

    // Its change is not promoted.
    let lab = Lab::new(&FILES);
    lab.inside("echo more >> a; ln a new");
    told(&lab, &Wish { paths: vec![lab.file("new")], ..Wish::default() });
    assert_eq!((lab.read("a"), lab.read("new")), ("alpha\n".into(), "alpha\nmore\n".into()));

    // Reality's version of it is kept.
    let lab = Lab::new(&FILES);
    lab.inside("echo inside > a; ln a new");
    lab.outside("echo other > a");
    told(&lab, &deciding(model::promotion::OnConflict::Theirs));
    assert_eq!((lab.read("a"), lab.read("new")), ("other\n".into(), "inside\n".into()));

    // It is masked: nobody gets at it under another name.
    let lab = Lab::new(&FILES);
    lab.inside("ln a new");
    told(&lab, &Wish { masked: vec![lab.file("a")], ..Wish::default() });
    assert_eq!(std::fs::metadata(lab.file("a")).unwrap().nlink(), 1);
}

#[test]
fn the_same_change_on_both_sides_is_one_file_with_its_further_name() {
    let lab = Lab::new(&FILES);
    lab.inside("echo more >> a; ln a new");
    lab.outside("echo more >> a");
    let report = lab.promote(&Wish::default()).unwrap();
    assert_eq!((actions(&report), report.caveats), (vec!["= a".to_owned(), "+ new".to_owned()], vec![]));
    let [a, new] = inodes(&lab, ["a", "new"]);
    assert_eq!(a, new);
}

#[test]
fn names_that_were_one_file_here_are_again_after_undoing() {
    let lab = Lab::linked(&FILES, &[("a", "d/a")]);
    let before = families(&lab.real(), &lab.tree());
    lab.inside("echo more >> a");
    lab.promote(&Wish::default()).unwrap();
    assert_eq!((lab.read("a"), lab.read("d/a")), ("alpha\nmore\n".into(), "alpha\n".into()));
    lab.undo().unwrap();
    assert_eq!(families(&lab.real(), &lab.tree()), before);
}
