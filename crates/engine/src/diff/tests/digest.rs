//! One state, one digest.

use super::Bed;

fn digest(bed: &Bed) -> model::Digest {
    bed.compare().digest(b"base").unwrap().digest
}

const FILES: &[(&str, &str)] = &[("a", "one"), ("b", "two"), ("folder/x", "x"), (".git/HEAD", "ref: main")];

/// Both are done to the same files.
#[track_caller]
fn check(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|script| {
        let bed = Bed::new(FILES);
        bed.script(script);
        digest(&bed)
    });
    one == other
}

#[track_caller]
fn same(one: &str, other: &str) {
    assert!(check(one, other), "{one} / {other}");
}

#[track_caller]
fn differs(one: &str, other: &str) {
    assert!(!check(one, other), "{one} / {other}");
}

#[test]
fn the_way_does_not_matter() {
    same("true", "true");
    same("echo 1 > a", "echo 0 > a; echo 1 > a");
    same("echo 1 > a", "echo 1 > c; mv c a");
    same("echo 1 > n; touch -d 2001-01-01 n", "echo 1 > n");
    same("true", "echo > n; rm n; touch a");
    same("mv a c", "cp a c; rm a");
    same("mv a c; mv b a", "echo -n one > c; echo -n two > a; rm b");
    same("rm -r folder", "rm folder/x; rmdir folder");
}

#[test]
fn every_bit_of_it_does() {
    differs("true", "echo -n onE > a");
    differs("echo 1 > n", "echo 2 > n");
    differs("echo 1 > n", "echo 1 > m");
    differs("rm a", "true");
    differs("rm a", "rm b");
    differs("true", "chmod 600 a");
    differs("ln -s a n", "ln -s b n");
    differs("ln -s a n", "echo -n a > n");
    differs("mkdir n", "touch n");
    differs("mkdir n", "true");
    differs("mv folder other", "true");
    differs("mv folder other", "mkdir other; cp folder/x other; rm -r folder; echo y >> other/x");
}

#[test]
fn of_git_only_where_branches_stand() {
    same("true", "echo i > .git/index; mkdir -p .git/objects/aa .git/logs; echo l > .git/logs/HEAD");
    differs("true", "echo ref: other > .git/HEAD");
    differs("true", "mkdir -p .git/refs/heads; echo 1 > .git/refs/heads/topic");
}

#[test]
fn sealed_or_not_it_is_the_same_state_and_the_base_is_part_of_it() {
    let bed = Bed::new(FILES);
    bed.script("echo 1 > a; rm b; echo 2 > folder/y");
    let before = digest(&bed);
    bed.seal();
    assert_eq!(digest(&bed), before);
    assert_eq!(bed.compare_sealed().digest(b"base").unwrap().digest, before);
    assert_ne!(bed.compare().digest(b"other base").unwrap().digest, before);
    bed.script("echo 3 >> folder/y");
    assert_ne!(digest(&bed), before);
    bed.script("echo 2 > folder/y");
    assert_eq!(digest(&bed), before, "changed back");
}
