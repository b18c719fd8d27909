//! Two states, side by side.

use std::path::{Path, PathBuf};

use model::diff::{Between, By, Detail};
use model::exec::Text;

use super::{Bed, WORKSPACE, told};
use crate::diff::{Base, Pair};

const FILES: [(&str, &str); 5] =
    [("a", "alpha\n"), ("b", "beta\n"), ("d/one", "one\n"), ("d/two", "two\n"), ("run.sh", "#!/bin/sh\n")];

fn bed(script: &str) -> Bed {
    let bed = Bed::new(&FILES);
    bed.script(script);
    bed
}

fn between(one: &Bed, other: &Bed, base: Base, paths: &[&str]) -> Between {
    let paths = paths.iter().map(|path| Path::new(WORKSPACE).join(path)).collect();
    Pair::new(one.compare(), other.compare(), base, paths).between(Detail::Lines).unwrap()
}

/// Each line ends in who changed it.
#[track_caller]
fn check(one: &str, other: &str, expected: &[&str]) {
    let (first, second) = (bed(one), bed(other));
    let between = between(&first, &second, Base::Shared, &[]);
    let by = between.diff.workspace.iter().map(|change| match change.by.unwrap() {
        By::One => "one",
        By::Other => "other",
        By::Both => "both",
    });
    let lines = told(&between.diff);
    let lines: Vec<_> = lines.iter().zip(by).map(|(line, by)| format!("{line}, {by}")).collect();
    assert_eq!(lines, expected, "{one} / {other}");
}

/// What each changed counts from a state that neither stands on.
#[test]
fn from_one_to_the_other_since_an_earlier_state() {
    let earlier = bed("echo x > a; rm b; echo n > n; echo m > m");
    let one = bed("echo x > a; rm b; echo n > n; echo m > m; echo 1 > n; echo same > d/one");
    let other = bed("echo y > a; rm b; echo n > n; echo 2 > m; echo same > d/one");
    let pair = Pair::new(one.compare(), other.compare(), Base::Shared, Vec::new()).since(earlier.compare());
    let between = pair.between(Detail::Paths).unwrap();
    let listed = |paths: &[Text]| paths.iter().map(|path| path.display().into_owned()).collect::<Vec<_>>();
    assert_eq!(
        (listed(&between.one), listed(&between.other)),
        (vec!["n".to_owned()], vec!["a".to_owned(), "m".to_owned()])
    );
    // Both removed `b` before, and both wrote the same since.
    assert_eq!((listed(&between.different), between.same), (Vec::new(), 1));
    let by: Vec<_> =
        between.diff.workspace.iter().map(|change| (change.path.display(), change.by.unwrap())).collect();
    assert_eq!(by, [("a".into(), By::Other), ("m".into(), By::Other), ("n".into(), By::One)]);
}

#[test]
fn from_one_to_the_other() {
    check("true", "true", &[]);
    check("echo x > a", "echo x > a", &[]);
    check("echo x > a", "true", &["M a contents, one"]);
    check("true", "echo x > a", &["M a contents, other"]);
    check("echo x > a", "echo y > a", &["M a contents, both"]);
    check("rm a", "true", &["A a, one"]);
    check("true", "rm a", &["D a, other"]);
    check("rm a", "rm a", &[]);
    check("rm a", "echo x > a", &["A a, both"]);
    check("echo x > n", "echo x > n; chmod 755 n", &["M n 644-755, both"]);
    check("chmod 755 run.sh", "true", &["M run.sh 755-644, one"]);
    check("chmod 700 d", "chmod 750 d", &["M d 700-750, both"]);
    check("rm a; ln -s b a", "true", &["T a, one"]);
    check("rm a; ln -s b a", "rm a; ln -s c a", &["M a contents, both"]);
    check("rm -r d", "rm d/one", &["A d, one", "A d/two, one"]);
    check("rm a; mkdir a; echo x > a/x", "true", &["D a/x, one", "T a, one"]);
}

#[test]
fn what_moved() {
    check("true", "mv a c", &["R a c, other"]);
    check("mv a c", "mv a e", &["R c e, both"]);
    check("mv d e", "mv d e", &[]);
    check("mv d e; echo 1 > e/one", "mv d e", &["M e/one contents, both"]);
    check("true", "mv d e", &["D d, other", "A e, other", "R d/one e/one, other", "R d/two e/two, other"]);
    check(
        "mv d e",
        "echo 2 > d/two",
        &["D e, one", "D e/two, one", "A d, one", "R e/one d/one, one", "A d/two, both"],
    );
}

#[test]
fn how_each_lies_in_layers_does_not_matter() {
    let (one, other) = (Bed::new(&FILES), Bed::new(&FILES));
    let scripts =
        ["mv d e; echo 1 > a", "rm -r e; mkdir e; echo 1 > e/new", "echo 2 >> a; mkdir f", "rm b; mv f g"];
    for script in scripts {
        one.script(script);
        one.seal();
        other.script(script);
    }
    assert_eq!(between(&one, &other, Base::Shared, &[]).diff.workspace, []);
    let layers: Vec<PathBuf> = one.layers();
    one.squash();
    let old: Vec<PathBuf> =
        layers.iter().map(|layer| one.path("old-layers").join(layer.file_name().unwrap())).collect();
    let deep = one.compare_from(&old[0], &old[1..], Path::new(WORKSPACE));
    let pair = Pair::new(deep, one.compare(), Base::Shared, Vec::new());
    assert_eq!(told(&pair.diff(Detail::Paths).unwrap()), [""; 0]);
    one.script("echo later > later; rm a");
    let deep = one.compare_from(&old[0], &old[1..], Path::new(WORKSPACE));
    let pair = Pair::new(deep, one.compare(), Base::Shared, Vec::new());
    assert_eq!(told(&pair.diff(Detail::Paths).unwrap()), ["D a", "A later"]);
}

#[test]
fn the_sum_the_paths_and_the_lines() {
    let one = bed("echo x > a; rm b; echo 1 > d/one; echo n > n; echo 3 >> run.sh");
    let other = bed("echo x > a; rm b; echo 2 > d/one; mkdir e; echo m > e/m; echo mm > m");
    let sum = between(&one, &other, Base::Shared, &[]);
    let texts = |names: &[&str]| names.iter().map(|name| Text::from(*name)).collect::<Vec<_>>();
    assert_eq!(
        (sum.one, sum.other, sum.different, sum.same, sum.apart),
        (texts(&["n", "run.sh"]), texts(&["e/m", "m"]), texts(&["d/one"]), 2, false)
    );
    let some = between(&one, &other, Base::Shared, &["d", "run.sh"]);
    assert_eq!(told(&some.diff), ["M d/one contents", "M run.sh contents"]);
    let lines: Vec<_> = some.diff.workspace.iter().map(|change| change.lines.unwrap()).collect();
    assert_eq!(lines.iter().map(|lines| (lines.added, lines.removed)).collect::<Vec<_>>(), [(1, 1), (0, 1)]);
}

/// Where one changed nothing, it has what it started from itself; even if it wrote nothing at all.
#[test]
fn on_different_states_of_the_workspace() {
    let one = bed("echo x > a; rm b; echo later > c");
    let other = Bed::new(&[("a", "x\n"), ("b", "beta, later\n"), ("z", "only here\n")]);
    let parted = between(&one, &other, Base::Apart, &[]);
    assert!(parted.apart);
    // Both have this `a`, and nobody changed `z`.
    assert_eq!(told(&parted.diff), ["D c", "A b"]);
    other.script("echo mine > mine");
    assert_eq!(told(&between(&one, &other, Base::Apart, &[]).diff), ["D c", "A b", "A mine"]);
    assert_eq!(told(&between(&other, &one, Base::Apart, &[]).diff), ["D b", "D mine", "A c"]);
}
