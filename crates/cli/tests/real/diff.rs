//! What a sandbox changed, as `zeno diff` tells it, and the patch made of it with the real git.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::files::{Listing, listing};
use crate::home::{Home, Ran, finish, is_root};

#[test]
fn the_workspace_and_the_machine_apart() {
    let home = Home::new();
    let repository = Repository::new(&home);
    assert_eq!(
        home.plain(&home.zeno(&["diff", "box"])),
        "------- stderr -------\nnothing has changed\n[exit 0]"
    );
    assert_eq!(
        home.json(&["diff", "box"]),
        json!({ "root": repository.path, "workspace": [], "machine": [] })
    );

    home.exec_ok(
        "rm src/gone.rs; echo more >> README; mv notes src/notes; chmod 755 run.sh; rm link; ln -s src link
         touch empty; rm -r folder; mkdir folder; echo new > folder/new; printf 'a\\0b' > bin; rm file; mkdir file
         echo tracked > node_modules/made; rm node_modules/a.js; git commit -qam inside
         echo here > /var/tmp/zeno-real-diff; mkdir /tmp/zeno-real-diff",
    );
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box"])), @"
        workspace  ~/repository  2 deleted, 1 added, 4 modified, 1 renamed, 1 type changed
          deleted       folder/old  4B
          deleted       src/gone.rs  5B
          modified      README  7B -> 12B
          modified      bin  binary
          type changed  file/  file -> folder
          added         folder/new  4B
          modified      link -> src  was -> README
          modified      run.sh  mode 644 -> 755
          renamed       src/notes  from notes
        machine  2 added
          added         /tmp/zeno-real-diff/
          added         /var/tmp/zeno-real-diff  5B
        ignored  2 changes that git ignores: node_modules 2 (--ignored lists them)
        git  ~/repository/.git changed; git's own files are not listed
        [exit 0]
        ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box", "--stat"])), @"
        workspace  ~/repository  2 deleted, 1 added, 4 modified, 1 renamed, 1 type changed
          folder/old              | 1 -
          src/gone.rs             | 1 -
          README                  | 1 +
          bin                     | binary 3B -> 3B
          file/                   | type changed
          folder/new              | 1 +
          link -> src             | modified
          run.sh                  | modified
          src/notes               | renamed
          9 paths, 2 lines added, 2 lines removed
        machine  2 added
          /tmp/zeno-real-diff/    | added
          /var/tmp/zeno-real-diff | 1 +
          2 paths, 1 line added, 0 lines removed
        ignored  2 changes that git ignores: node_modules 2 (--ignored lists them)
        git  ~/repository/.git changed; git's own files are not listed
        [exit 0]
        ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box", "--name-status"])), @"
        D	folder/old
        D	node_modules/a.js
        D	src/gone.rs
        M	README
        M	bin
        T	file
        A	folder/new
        M	link
        A	node_modules/made
        M	run.sh
        R100	notes	src/notes
        A	/tmp/zeno-real-diff
        A	/var/tmp/zeno-real-diff
        [exit 0]
        ");
    insta::assert_snapshot!(home.plain(&repository.zeno(&home, &["diff", "box", "--ignored", "node_modules", "src/../README"])), @"
        workspace  ~/repository  1 deleted, 1 added, 1 modified
          deleted       node_modules/a.js  2B
          modified      README  7B -> 12B
          added         node_modules/made  8B
        [exit 0]
        ");
    repository.is_untouched();
    // A sandbox that is stopped has changed the same.
    let before = home.json(&["diff", "box"]);
    home.ok(&["stop", "box"]);
    assert_eq!(home.json(&["diff", "box"]), before);
    home.ok(&["destroy", "box"]);
    assert_eq!(home.zeno(&["diff", "box"]).code, 6);
}

#[test]
fn a_folder_that_moved() {
    let home = Home::new();
    let repository = Repository::new(&home);
    home.exec_ok("mv src lib; echo more >> lib/main.rs");
    let told = home.ok(&["diff", "box", "--name-status"]);
    // An ordinary user's overlay cannot note where a folder came from, so it is copied, file by file.
    let expected = if is_root() {
        "R100\tsrc\tlib\nM\tlib/main.rs\n"
    } else {
        "D\tsrc\nD\tsrc/main.rs\nA\tlib\nR100\tsrc/gone.rs\tlib/gone.rs\nA\tlib/main.rs\n"
    };
    assert_eq!(told, expected);
    repository.applies(&home);
}

#[test]
fn the_patch_makes_the_same_tree() {
    let home = Home::new();
    let repository = Repository::new(&home);
    home.exec_ok(
        "rm src/gone.rs; printf more >> README; mv notes src/notes; chmod 755 run.sh; rm link; ln -s src link
         rm -r folder; mkdir folder; echo new > folder/new; printf 'a\\0b' > bin; rm file; mkdir file; echo x > file/x
         : > made; chmod 600 made; printf 'one\\rtwo\\r\\n' > 'a \"b\"'; printf x > \"$(printf 'new\\nline\\377')\"
         seq 100 > numbers; rm empty; ln -s nowhere empty; head -c 100000 /dev/urandom > random",
    );
    repository.applies(&home);
    repository.is_untouched();
}

#[test]
fn a_patch_says_what_it_leaves_out() {
    let home = Home::new();
    let repository = Repository::new(&home);
    home.exec_ok("echo more >> README; mkdir n; echo x > n/x");
    assert_eq!(home.zeno(&["diff", "box", "--patch"]).err(), "", "all of it is in there");
    home.exec_ok("mkdir void; chmod 600 notes; echo y > node_modules/b.js; echo z > /var/tmp/zeno-real-z");
    let ran = home.zeno(&["diff", "box", "--patch"]);
    let told = "not in the patch: 1 change of the machine, 1 ignored change, 2 changes that no patch can tell (owners, \
                rights, attributes, empty folders, pipes) (zeno diff box --ignored lists them)\n";
    assert_eq!((ran.code, ran.err().as_str()), (0, told), "{ran}");
    repository.is_untouched();
}

#[test]
fn by_http() {
    let home = Home::new();
    let repository = Repository::new(&home);
    home.exec_ok("echo more >> README; echo new > new");
    let at = |query: &str| home.ask("GET", &format!("/v1/sandboxes/box/diff{query}"), b"");
    let told = at(&format!("?lines&path={}/README", repository.path.display())).json();
    assert_eq!(told["workspace"].as_array().map(Vec::len), Some(1));
    assert_eq!(told["workspace"][0]["lines"], json!({ "added": 1, "removed": 0 }));
    let two = at(&format!("?path={0}/README&path={0}/new", repository.path.display())).json();
    assert_eq!(paths(&two), ["README", "new"]);
    let patch = at("?patch=true");
    assert_eq!((patch.status, patch.header("content-type")), (200, Some("text/x-diff")));
    assert!(patch.body.starts_with(b"diff --git a/README b/README\nindex "), "{patch:?}");
    assert_eq!(at("?path=README").status, 400, "not absolute");
    assert_eq!(at("?patch&patch").status, 400, "twice");
}

#[test]
fn two_sandboxes_side_by_side() {
    let home = Home::new();
    let repository = Repository::new(&home);
    repository.two(&home);
    let expected = json!({
        "one": ["n/mine", "run.sh"],
        "other": ["lib/gone.rs", "lib/main.rs", "src/gone.rs", "src/main.rs"],
        "different": ["empty", "file"],
        "same": 2,
    });
    let told = home.json(&["diff", "box", "other"]);
    assert_eq!(sum(&told), expected);
    assert_eq!(home.json(&["diff", "box", "--with", "other"]), told);
    assert_eq!(home.ask("GET", "/v1/sandboxes/box/between?with=other", b"").json(), told);
    assert_eq!(told["workspace"][0]["by"], "one");
    assert_eq!(home.ask("GET", "/v1/sandboxes/box/between", b"").status, 400);
    assert_eq!(home.ask("GET", "/v1/sandboxes/box/between?with=nobody", b"").status, 404);
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box", "other"])), @"
    workspace  ~/repository  3 deleted, 2 added, 2 modified, 2 renamed
      deleted       n/  only box changed it
      deleted       n/mine  5B, only box changed it
      deleted       src/  only other changed it
      added         empty  2B, both changed it
      modified      file  both changed it
      added         lib/  only other changed it
      renamed       lib/gone.rs  from src/gone.rs, only other changed it
      renamed       lib/main.rs  from src/main.rs, only other changed it
      modified      run.sh  mode 755 -> 644, only box changed it
    machine  1 deleted, 1 added
      deleted       /var/tmp/zeno-real-one  5B, only box changed it
      added         /var/tmp/zeno-real-other  10B, only other changed it
    alike  2 files that both changed to the same
    [exit 0]
    ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box", "other", "--name-status"])), @"
    D	n
    D	n/mine
    D	src
    A	empty
    M	file
    A	lib
    R100	src/gone.rs	lib/gone.rs
    R100	src/main.rs	lib/main.rs
    M	run.sh
    D	/var/tmp/zeno-real-one
    A	/var/tmp/zeno-real-other
    [exit 0]
    ");
    insta::assert_snapshot!(home.plain(&repository.zeno(&home, &["diff", "box", "other", "--stat", "n", "file"])), @"
    workspace  ~/repository  2 deleted, 1 modified
      n/     | deleted
      n/mine | 1 -
      file   | 2 +-
      3 paths, 1 line added, 2 lines removed
    [exit 0]
    ");
    // A snapshot does as well, and what it was taken of is not different from it.
    home.ok(&["snapshot", "other", "--name", "kept"]);
    let kept = home.json(&["diff", "box", "kept"]);
    assert_eq!((&kept["workspace"], &kept["machine"]), (&told["workspace"], &told["machine"]));
    assert_eq!(
        home.plain(&home.zeno(&["diff", "other", "kept"])),
        "------- stderr -------\n`other` and `kept` do not differ\n[exit 0]"
    );
    repository.is_untouched();
}

#[test]
fn the_patch_makes_the_other_of_the_one() {
    let home = Home::new();
    let repository = Repository::new(&home);
    repository.two(&home);
    for (name, seen) in [("box", "seen-one"), ("other", "seen-other")] {
        home.ok(&["cp", &format!("{name}:{}", repository.path.display()), seen]);
    }
    let patch = home.zeno(&["diff", "box", "other", "--patch"]);
    assert_eq!(patch.code, 0, "{patch}");
    let by_http = home.ask("GET", "/v1/sandboxes/box/between?with=other&patch", b"");
    assert_eq!((by_http.header("content-type"), &by_http.body), (Some("text/x-diff"), &patch.stdout));
    let place = home.yard().join("seen-one");
    let mut apply = Command::new("git");
    apply.args(["apply", "--whitespace=nowarn"]).current_dir(&place).stdin(Stdio::piped());
    let applied = finish(apply.stderr(Stdio::piped()).spawn().unwrap(), &patch.stdout);
    assert_eq!(applied.code, 0, "{applied}\n{patch}");
    assert_eq!(files(&place), files(&home.yard().join("seen-other")), "{patch}");
}

/// A word may be another sandbox or a path: what is clear is done, what is not is said.
#[test]
fn what_a_word_means() {
    let home = Home::new();
    let repository = Repository::new(&home);
    home.exec_ok("echo more >> README; mkdir n; echo x > n/mine");
    home.create("n", &[]);
    let diff = |words: &[&str]| repository.zeno(&home, &[&["diff", "box"], words].concat());
    insta::assert_snapshot!(home.plain(&diff(&["nobody"])), @"
    ------- stderr -------
    error: there is no sandbox, snapshot or candidate `nobody`, and no such path here or among what `box` changed
      try: see which there are: `zeno list`, `zeno snapshots`
      try: or, if a path is meant, say so: `zeno diff box -- nobody`
    [exit 6]
    ");
    insta::assert_snapshot!(home.plain(&diff(&["n"])), @"
    ------- stderr -------
    error: `n` may mean a sandbox or snapshot, and a path that `box` changed
      try: compare the two: `zeno diff box --with n`
      try: or show that path: `zeno diff box -- n`
    [exit 2]
    ");
    for words in [&["--name-status", "--", "n"][..], &["./n", "--name-status"]] {
        assert_eq!(diff(words).out(), "A\tn\nA\tn/mine\n", "{words:?}");
    }
    let elsewhere = home.plain(&diff(&["--with", "n"]));
    insta::assert_snapshot!(elsewhere, @"
    ------- stderr -------
    error: they do not have the same workspace: `FOLDER/yard/repository` and none
      try: look at each by itself: zeno diff SANDBOX
    [exit 4]
    ");
    // What is there and has not changed is a path all the same.
    assert_eq!(home.plain(&diff(&["run.sh"])), "------- stderr -------\nnothing has changed\n[exit 0]");
    assert_eq!(diff(&["-p", "src", "n"]).out().lines().next(), Some("diff --git a/n/mine b/n/mine"));
    assert_eq!(diff(&["--", "nobody"]).code, 0);
    assert_eq!(diff(&["--with", "nobody"]).code, 6);
}

/// Two that started from different states of the workspace, and a snapshot that did.
#[test]
fn reality_went_on_in_between() {
    let home = Home::new();
    let repository = Repository::new(&home);
    home.exec_ok("echo more >> README; rm notes");
    home.ok(&["snapshot", "box", "--name", "early"]);
    fs::write(repository.path.join("late"), "late\n").unwrap();
    fs::write(repository.path.join("README"), "readme\nmore\n").unwrap();
    let made = repository.zeno(&home, &["create", "--name", "second"]);
    assert_eq!(made.code, 0, "{made}");
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box", "second"])), @"
    workspace  ~/repository  1 added
      added         notes  11B, only box changed it
    ------- stderr -------
    they started from different states of the workspace: only what one of them changed is compared
    [exit 0]
    ");
    assert_eq!(home.json(&["diff", "box", "second"])["apart"], true);
    home.ok(&["refresh", "box"]);
    insta::assert_snapshot!(home.plain(&home.zeno(&["diff", "box", "--from", "early"])), @"
    ------- stderr -------
    error: the snapshot was taken on another state of the workspace than the sandbox stands on
      try: compare the two as they are: zeno diff SANDBOX --with SNAPSHOT
      try: or the sandbox with what it started from: leave out --from
    [exit 4]
    ");
    assert_eq!(home.zeno(&["diff", "box", "early"]).code, 0);
}

/// Who changed what, without the changes.
fn sum(between: &Value) -> Value {
    let names = ["one", "other", "different", "same"];
    names.iter().map(|name| ((*name).to_owned(), between[name].clone())).collect()
}

fn paths(diff: &Value) -> Vec<&str> {
    diff["workspace"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect()
}

impl Home {
    #[track_caller]
    fn exec_ok(&self, script: &str) {
        let ran = self.exec("box", &format!("set -e\n{script}"));
        assert_eq!(ran.code, 0, "{script}: {ran}");
    }
}

/// A repository, and a sandbox `box` whose workspace it is.
struct Repository {
    path: PathBuf,
    before: Listing,
}

impl Repository {
    fn new(home: &Home) -> Self {
        let path = home.yard().join("repository");
        let files = [
            (".gitignore", "node_modules\n"),
            ("README", "readme\n"),
            ("notes", "some notes\n"),
            ("run.sh", "#!/bin/sh\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("src/gone.rs", "gone\n"),
            ("folder/old", "old\n"),
            ("file", "file\n"),
            ("empty", ""),
            ("bin", "a\0c"),
            ("node_modules/a.js", "a\n"),
        ];
        for (name, text) in files {
            let path = path.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink("README", path.join("link")).unwrap();
        git(&path, &["init", "-q", "-b", "main"]);
        for (key, value) in [("user.name", "Ada"), ("user.email", "ada@example.invalid")] {
            git(&path, &["config", key, value]);
        }
        git(&path, &["add", "-A"]);
        git(&path, &["commit", "-qm", "first"]);
        let repository = Self { before: listing(&path), path };
        let made = repository.zeno(home, &["create", "--name", "box"]);
        assert_eq!(made.code, 0, "{made}");
        repository
    }

    fn zeno(&self, home: &Home, arguments: &[&str]) -> Ran {
        let ran = finish(home.command(arguments).current_dir(&self.path).spawn().unwrap(), b"");
        home.daemon();
        ran
    }

    /// Makes a sandbox `other`, and changes both.
    fn two(&self, home: &Home) {
        let made = self.zeno(home, &["create", "--name", "other"]);
        assert_eq!(made.code, 0, "{made}");
        home.exec_ok(
            "echo more >> README; rm notes; mkdir n; echo mine > n/mine; echo one > file; chmod 755 run.sh; rm empty
             echo here > /var/tmp/zeno-real-one",
        );
        let ran = home.exec(
            "other",
            "echo more >> README; rm notes; echo two > file; mv src lib; echo x > empty
             echo elsewhere > /var/tmp/zeno-real-other",
        );
        assert_eq!(ran.code, 0, "{ran}");
    }

    fn is_untouched(&self) {
        assert!(listing(&self.path) == self.before, "a sandbox or its diff reached the real repository");
    }

    /// Applies the patch to a clone, and compares it with what the sandbox has.
    #[track_caller]
    fn applies(&self, home: &Home) {
        let patch = home.zeno(&["diff", "box", "--patch"]);
        assert_eq!(patch.code, 0, "{patch}");
        let clone = home.yard().join("clone");
        git(&home.yard(), &["clone", "-q", "repository", "clone"]);
        let mut apply = Command::new("git");
        apply.args(["apply", "--index", "--whitespace=nowarn"]).current_dir(&clone).stdin(Stdio::piped());
        let applied = finish(apply.stderr(Stdio::piped()).spawn().unwrap(), &patch.stdout);
        assert_eq!(applied.code, 0, "{applied}\n{patch}");
        home.ok(&["cp", &format!("box:{}", self.path.display()), "seen"]);
        assert_eq!(files(&clone), files(&home.yard().join("seen")), "{patch}");
    }
}

/// What git knows of a tree: files and links, and whether they can be executed.
fn files(root: &Path) -> Listing {
    let known = listing(root).into_iter().filter(|(name, mode, _)| {
        let is_folder = mode & 0o170_000 == 0o040_000;
        !is_folder && !name.starts_with(b".git/") && !name.starts_with(b"node_modules/")
    });
    known.map(|(name, mode, contents)| (name, mode & 0o170_100, contents)).collect()
}

/// With nobody's settings but the repository's own.
fn git(place: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let status = command.args(arguments).current_dir(place).status().unwrap();
    assert!(status.success(), "git {arguments:?}");
}
