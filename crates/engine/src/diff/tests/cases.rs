//! What was done, and what is told of it.

use super::{Bed, told};

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

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let bed = Bed::new(&FILES);
    bed.script(script);
    assert_eq!(told(&bed.diff()), expected, "{script}");
    bed.seal();
    assert_eq!(told(&bed.diff()), expected, "{script}, sealed");
    bed.script("touch .; chmod -R u+r .");
    assert_eq!(told(&bed.diff()), expected, "{script}, sealed and written over");
}

/// Does one thing after the other, each on a layer of its own.
#[track_caller]
fn check_layers(scripts: &[&str], as_root: &[&str], as_user: &[&str]) {
    let bed = Bed::new(&FILES);
    for script in scripts {
        bed.script(script);
        bed.seal();
    }
    let expected = if rustix::process::geteuid().is_root() { as_root } else { as_user };
    assert_eq!(told(&bed.diff()), expected, "{scripts:?}");
}

#[test]
fn one_layer_on_the_other() {
    check_layers(&["echo x > a", "rm a", "echo y > a"], &["M a contents"], &["M a contents"]);
    check_layers(&["echo x > new", "rm new"], &[], &[]);
    check_layers(
        &["rm -r d", "mkdir d", "echo 1 > d/new"],
        &["D d/one", "D d/sub", "D d/sub/deep", "D d/two", "A d/new"],
        &["D d/one", "D d/sub", "D d/sub/deep", "D d/two", "A d/new"],
    );
    let recreated = ["D d/one", "D d/sub/deep", "D d/two"];
    check_layers(&["rm -r d; mkdir -p d/sub"], &recreated, &recreated);
    let moved = ["D x/one", "R d x", "A x/new"];
    let copied = [
        "D d",
        "D d/one",
        "D d/sub",
        "A x",
        "A x/new",
        "A x/sub",
        "R d/sub/deep x/sub/deep",
        "R d/two x/two",
    ];
    check_layers(&["mv d y", "mv y x; rm x/one", "echo 1 > x/new"], &moved, &copied);
    check_layers(&["mv d y", "mv y d"], &[], &[]);
    let nested = ["R d y", "R e y/sub/e"];
    let copied = [
        "D d",
        "D d/sub",
        "D e",
        "A y",
        "R d/one y/one",
        "A y/sub",
        "R d/sub/deep y/sub/deep",
        "A y/sub/e",
        "R e/three y/sub/e/three",
        "R d/two y/two",
    ];
    check_layers(&["mv d y", "mv e y/sub/e"], &nested, &copied);
    check_layers(
        &["mkdir n; echo 1 > n/1", "mv n m", "echo 2 > m/2"],
        &["A m", "A m/1", "A m/2"],
        &["A m", "A m/1", "A m/2"],
    );
}

/// Where a folder can be moved only by whoever may note where it came from.
#[track_caller]
fn check_move(script: &str, as_root: &[&str], as_user: &[&str]) {
    check(script, if rustix::process::geteuid().is_root() { as_root } else { as_user });
}

#[test]
fn files() {
    check("echo new > new", &["A new"]);
    check("echo more >> a", &["M a contents"]);
    check("rm a", &["D a"]);
    check("rm b; echo x > c; echo y > a", &["D b", "M a contents", "A c"]);
    check("printf 'gamma\\n' > a; printf 'zeta.\\n' > b", &["M a contents", "M b contents"]);
    check("mkdir -p x/y; : > x/y/z", &["A x", "A x/y", "A x/y/z"]);
    check("mkfifo pipe", &["A pipe"]);
}

#[test]
fn what_was_put_back_is_no_change() {
    check("touch a d d/one", &[]);
    check("echo more >> a; printf 'alpha\\n' > a", &[]);
    check("rm a; printf 'alpha\\n' > a", &[]);
    check("chmod 600 a; chmod 644 a; chmod 700 d; chmod 755 d", &[]);
    check("mv a x; mv x a", &[]);
    check("echo x > d/new; rm d/new", &[]);
    check("rm -r e; mkdir e; printf 'three\\n' > e/three", &[]);
    check("mv d x; mv x d", &[]);
}

#[test]
fn what_is_said_about_a_file() {
    check("chmod 755 run.sh", &["M run.sh 644-755"]);
    check("chmod 700 d", &["M d 755-700"]);
    check("chmod 700 .", &["M . 755-700"]);
    check("chmod 600 a; echo x > a", &["M a 644-600 contents"]);
}

#[test]
fn links_and_types() {
    check("ln -s a link", &["A link"]);
    check("rm a; ln -s b a", &["T a"]);
    check("rm a; mkdir a; echo x > a/x", &["T a", "A a/x"]);
    check("rm -r d; echo d > d", &["D d/one", "D d/sub", "D d/sub/deep", "D d/two", "T d"]);
    check("rm -r d; ln -s e d", &["D d/one", "D d/sub", "D d/sub/deep", "D d/two", "T d"]);
}

#[test]
fn folders_that_went_and_came_again() {
    check("rm -r d", &["D d", "D d/one", "D d/sub", "D d/sub/deep", "D d/two"]);
    check("rmdir empty", &["D empty"]);
    check("rm -r d; mkdir d", &["D d/one", "D d/sub", "D d/sub/deep", "D d/two"]);
    check(
        "rm -r d; mkdir d; printf 'one\\n' > d/one; echo 2 > d/two; echo 3 > d/three",
        &["D d/sub", "D d/sub/deep", "A d/three", "M d/two contents"],
    );
}

#[test]
fn renamed_files() {
    check("mv a c", &["R a c"]);
    check("mv a e/a", &["R a e/a"]);
    check("mv a c; chmod 755 c", &["R a c 644-755"]);
    check("mv a c; mv b a", &["D b", "M a contents", "A c"]);
    check("cp a c", &["A c"]);
    check("mv d/one e; mv d/two e", &["R d/one e/one", "R d/two e/two"]);
}

#[test]
fn moved_folders() {
    check_move(
        "mv d x",
        &["R d x"],
        &["D d", "D d/sub", "A x", "R d/one x/one", "A x/sub", "R d/sub/deep x/sub/deep", "R d/two x/two"],
    );
    check_move(
        "mv e x; echo 3 > x/three",
        &["R e x", "M x/three contents"],
        &["D e", "D e/three", "A x", "A x/three"],
    );
    check_move(
        "mv e x; mkdir e; echo new > e/three",
        &["A e", "A e/three", "R e x"],
        &["M e/three contents", "A x", "A x/three"],
    );
    check_move(
        "mv e x; rm x/three; chmod 700 x",
        &["D x/three", "R e x 755-700"],
        &["D e", "D e/three", "A x"],
    );
    check_move(
        "mv d x; mv x/sub y; mv y/deep a",
        &["D y/deep", "M a contents", "R d x", "R d/sub y"],
        &["D d", "D d/sub", "D d/sub/deep", "M a contents", "A x", "R d/one x/one", "R d/two x/two", "A y"],
    );
    check_move(
        "mv d/sub d/other; mv d x",
        &["R d x", "R d/sub x/other"],
        &[
            "D d",
            "D d/sub",
            "A x",
            "R d/one x/one",
            "A x/other",
            "R d/sub/deep x/other/deep",
            "R d/two x/two",
        ],
    );
}

#[test]
fn folders_moved_into_new_ones_and_back() {
    check_move("mkdir n; mv e n/e", &["A n", "R e n/e"], &["D e", "A n", "A n/e", "R e/three n/e/three"]);
    check_move("rm a; mv e a", &["D a", "R e a"], &["D e", "T a", "R e/three a/three"]);
    check_move(
        "mv d x; mkdir d; mv x/sub d/sub",
        &["A d", "R d x"],
        &["A x", "R d/one x/one", "R d/two x/two"],
    );
}

#[test]
fn git_has_its_own_line() {
    let bed = Bed::new(&[(".git/HEAD", "ref\n"), ("a", "a\n"), ("sub/.git/HEAD", "ref\n")]);
    bed.script("echo x > .git/index; echo y > sub/.git/index; echo z > sub/z");
    let diff = bed.diff();
    assert_eq!(told(&diff), ["A sub/z"]);
    let git: Vec<_> = diff.git.iter().map(|folder| folder.display().into_owned()).collect();
    assert_eq!(git, ["/no/such/workspace/.git", "/no/such/workspace/sub/.git"]);
}

#[test]
fn names_nobody_would_choose() {
    let bed = Bed::new(&FILES);
    bed.script("printf x > \"$(printf 'new\\nline\\377')\"; printf y > ' \"\\\\'; printf z > ./-rf");
    let names: Vec<_> = bed.diff().workspace.into_iter().map(|change| change.path.0).collect();
    assert_eq!(names, [b" \"\\\\".to_vec(), b"-rf".to_vec(), b"new\nline\xff".to_vec()]);
}

#[test]
fn a_link_out_of_the_upper_is_not_followed() {
    let bed = Bed::new(&FILES);
    bed.script("rm -r d; ln -s /etc d; ln -s / root");
    assert_eq!(told(&bed.diff()), ["D d/one", "D d/sub", "D d/sub/deep", "D d/two", "T d", "A root"]);
}
