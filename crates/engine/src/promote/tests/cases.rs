//! What is done inside arrives outside, and goes away again.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::{Lab, Wish, actions, assert_same, expected, is_root};

const FILES: [(&str, &str); 8] = [
    ("a", "alpha\n"),
    ("b", "beta\n"),
    ("d/one", "one\n"),
    ("d/two", "two\n"),
    ("d/sub/deep", "deep\n"),
    ("e/three", "three\n"),
    ("empty/", ""),
    ("run.sh", "#!/bin/sh\n"),
];

/// Promotes, compares with what the sandbox shows, takes it back, compares with what was there.
#[track_caller]
fn check(script: &str) -> Lab {
    let lab = Lab::new(&FILES);
    let before = lab.tree();
    let seen = lab.inside(script);
    let report = lab.promote(&Wish::default()).unwrap();
    assert_same(&lab.tree(), &expected(&before, &seen, &report));
    lab.assert_tidy();
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
    lab.assert_tidy();
    assert!(!report.actions.is_empty(), "{script}");
    lab
}

#[test]
fn files_come_change_and_go() {
    check("echo new > new");
    check("echo more >> a");
    check("rm a");
    check("rm b; echo x > c; echo y > a");
    check("chmod 755 run.sh");
    check("touch -d 2001-01-01 new a; echo x >> a; touch -d 2002-02-02 a");
    check("mv a c; mv b a");
    check("mv d/one e; mv d/two e");
}

#[test]
fn folders_come_change_and_go() {
    check("mkdir -p x/y; : > x/y/z; echo z > x/w; touch -d 2001-01-01 x/y x");
    check("rm -r d");
    check("rmdir empty");
    check("chmod 700 d");
    check("chmod 700 .");
    check("rm -r d; mkdir d; echo 2 > d/two; echo 3 > d/three");
    check("mv d x");
    check("mv d x; echo 1 > x/one; rm x/two; mkdir d; echo new > d/one");
    check("mv d x; mv x/sub y; mv y/deep a");
    check("mkdir n; mv e n/e; chmod 500 n/e");
    check("mv d/sub/deep y; mv d x");
    check("mv d x; mv x/sub/deep y; rm -r x/sub");
    check("mv d x; mv x/sub/deep y; rm -r x/sub; mkdir x/sub; echo x > x/sub/new");
    check("mv d x; rm -r x/sub; mv e x/sub; touch -d 2001-01-01 x/one x/sub");
    check("chmod 500 d/sub; chmod 500 d");
}

#[test]
fn types_change() {
    check("ln -s a link; touch -h -d 2001-01-01 link");
    check("rm a; ln -s b a");
    check("rm a; mkdir a; echo x > a/x");
    check("rm -r d; echo d > d");
    check("rm -r d; ln -s e d");
    check("rm a; mv e a");
}

#[test]
fn names_nobody_would_choose() {
    check(
        "printf x > \"$(printf 'new\\nline\\377')\"; printf y > ' \"\\\\'; printf z > ./-rf; mkdir 'd e'; : > 'd e/a-b'",
    );
}

#[test]
fn folders_that_their_owner_may_not_write_to() {
    let lab = Lab::new(&[("d/one", "one\n"), ("d/sub/deep", "deep\n")]);
    for folder in [lab.bed.lower(), lab.real()] {
        let script = "chmod 500 d d/sub; touch -d 2001-01-01 d";
        let done = std::process::Command::new("sh").args(["-c", script]).current_dir(folder).status();
        assert!(done.unwrap().success());
    }
    let before = lab.tree();
    let seen = lab.inside(
        "chmod 700 d d/sub; rm d/one; rm -r d/sub; mkdir d/new; : > d/new/x; chmod 500 d/new; \
         touch -d 2001-01-01 d; chmod 500 d",
    );
    lab.promote(&Wish::default()).unwrap();
    assert_same(&lab.tree(), &seen);
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
}

#[test]
fn holes_stay_holes() {
    let lab = Lab::new(&FILES);
    lab.inside("truncate -s 64M sparse; echo end >> sparse");
    lab.promote(&Wish::default()).unwrap();
    let stat = std::fs::metadata(lab.file("sparse")).unwrap();
    assert_eq!(stat.len(), (64 << 20) + 4);
    assert!(stat.blocks() * 512 < 1 << 20, "{} blocks", stat.blocks());
}

#[test]
fn one_file_with_two_names_is_still_one() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > new; ln new d/other; ln new third");
    lab.promote(&Wish::default()).unwrap();
    let inode = |path| std::fs::metadata(lab.file(path)).unwrap().ino();
    assert_eq!((inode("new"), inode("new")), (inode("d/other"), inode("third")));
}

#[test]
fn another_name_of_a_real_file_is_not_written_through() {
    let lab = Lab::new(&FILES);
    let elsewhere = lab.bed.path("elsewhere");
    std::fs::hard_link(lab.file("a"), &elsewhere).unwrap();
    lab.inside("echo changed > a; chmod 600 a");
    lab.promote(&Wish::default()).unwrap();
    assert_eq!(lab.read("a"), "changed\n");
    assert_eq!(std::fs::read_to_string(elsewhere).unwrap(), "alpha\n");
}

#[test]
fn extended_attributes_come_along() {
    let lab = Lab::new(&FILES);
    let before = lab.tree();
    lab.inside("echo x > a; mkdir new; : > new/file");
    for path in ["a", "new", "new/file"] {
        let file = std::fs::File::open(lab.bed.path("upper/0/.zeno-frozen").join(path)).unwrap();
        rustix::fs::fsetxattr(file, c"user.note", b"kept", rustix::fs::XattrFlags::empty()).unwrap();
    }
    lab.promote(&Wish::default()).unwrap();
    let tree = lab.tree();
    for path in ["a", "new", "new/file"] {
        assert_eq!(tree[path.as_bytes()].attributes, [(b"user.note".to_vec(), b"kept".to_vec())], "{path}");
    }
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
}

#[test]
fn a_folder_with_attributes_that_stays_keeps_and_gets_them() {
    let lab = Lab::new(&FILES);
    let mark = |folder: PathBuf, name: &str, value: &[u8]| {
        let file = std::fs::File::open(folder).unwrap();
        rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    mark(lab.bed.lower().join("d"), "user.old", b"1");
    mark(lab.file("d"), "user.old", b"1");
    let before = lab.tree();
    lab.inside("echo x > d/one");
    mark(lab.bed.path("upper/0/.zeno-frozen/d"), "user.new", b"2");
    lab.promote(&Wish::default()).unwrap();
    let pairs = [(b"user.new".to_vec(), b"2".to_vec()), (b"user.old".to_vec(), b"1".to_vec())];
    let mut found = lab.tree()[b"d".as_slice()].attributes.clone();
    found.sort();
    assert_eq!(found, pairs);
    lab.undo().unwrap();
    assert_same(&lab.tree(), &before);
}

#[test]
fn only_what_is_named() {
    let lab = Lab::new(&FILES);
    lab.inside("echo x > a; echo x > b; mkdir -p x/y; echo x > x/y/z; echo x > x/w; rm -r d");
    let wish = Wish { paths: vec![lab.file("a"), lab.file("x/y/z"), lab.file("d/sub")], ..Wish::default() };
    let report = lab.promote(&wish).unwrap();
    assert_eq!(actions(&report), ["- d/sub", "- d/sub/deep", "~ a", "+ x", "+ x/y", "+ x/y/z"]);
    assert_eq!(report.left_out.unnamed, 5);
    assert_eq!(
        (lab.read("a"), lab.read("b"), lab.read("d/one")),
        ("x\n".into(), "beta\n".into(), "one\n".into())
    );
    assert!(!lab.file("x/w").exists() && lab.file("x/y/z").exists());
}

#[test]
fn what_git_ignores_must_be_named() {
    let lab =
        Lab::new(&[(".git/HEAD", "ref: refs/heads/main\n"), (".gitignore", "out\n"), ("out/old", "old\n")]);
    lab.outside("rm -r .git; git init -q .");
    lab.inside("echo x > out/new; echo x > file; echo x > .git/config");
    let report = lab.promote(&Wish::default()).unwrap();
    assert_eq!((actions(&report), report.left_out.ignored), (vec!["+ file".to_owned()], 1));
    assert_eq!(report.left_out.git.len(), 1);
    assert!(!lab.file("out/new").exists());
}

#[test]
fn the_owner_comes_along() {
    let lab = Lab::new(&FILES);
    // An ordinary user's sandbox has no other users: there it fails, and all stays theirs.
    lab.inside("chown 1234:4321 a d || :; echo x > new; chown -h 99 new || :");
    lab.promote(&Wish::default()).unwrap();
    let owner = |path: &str| lab.tree()[path.as_bytes()].owner;
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let expected = if is_root() { [(1234, 4321), (1234, 4321), (99, 0)] } else { [own; 3] };
    assert_eq!([owner("a"), owner("d"), owner("new")], expected);
}
