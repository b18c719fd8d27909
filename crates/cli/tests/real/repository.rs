//! What people do in a repository all day, done in a sandbox: it works there, and the real repository is untouched to
//! the byte. In a clone and in a linked worktree, whose git folder lies elsewhere.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::files::{Listing, listing};
use crate::home::{Home, Ran, finish, is_root};
use crate::yard::git;

/// A line for a shell in the repository, and what it says.
type Case = (&'static str, &'static str);

const CASES: &[Case] = &[
    // What it would have to read to know whether it changed.
    ("git diff-files", ""),
    ("rm -rf node_modules && ls", "README\nnotes\nsrc\ntarget\n"),
    ("mv target x && ls . x", ".:\nREADME\nnode_modules\nnotes\nsrc\nx\n\nx:\ndebug\n"),
    ("git clean -qfdx && ls -A", ".git\n.gitignore\nREADME\nsrc\n"),
    ("echo more >> README && git commit -qam inside && git log --format=%s", "inside\nsecond\nfirst\n"),
    ("git checkout -q -b topic && git branch --show-current", "topic\n"),
    (
        "echo more >> README && git stash -q && cat README && git stash pop -q && cat README",
        "readme\nreadme\nmore\n",
    ),
    (
        "git worktree add -q -b other ../other && cat ../other/README && git worktree remove ../other && \
         ls .. | grep other; git branch --list other --format='%(refname:short)'",
        "readme\nother\n",
    ),
    ("git gc -q && git fsck --no-progress && git log --format=%s", "second\nfirst\n"),
];

#[test]
fn a_clone_is_worked_in_and_not_touched() {
    let home = Home::new();
    let yard = Yard::new(&home);
    yard.check(&home, &yard.clone);
}

#[test]
fn a_linked_worktree_is_worked_in_and_not_touched() {
    let home = Home::new();
    let yard = Yard::new(&home);
    yard.check(&home, &yard.linked);
}

#[test]
fn no_edit_of_the_hosts_reaches_a_sandbox_that_lives() {
    let home = Home::new();
    let yard = Yard::new(&home);
    for (place, name) in [(&yard.clone, "plain"), (&yard.linked, "linked")] {
        let made = zeno(&home, place, &["create", "--name", name]);
        assert_eq!(made.code, 0, "{made}");
        let before = view(&home, name);
        assert!(before.contains("./src/main.rs"), "{before}");

        // In place, by rename, gone, new, with other rights; what git knows, what it does not, what it ignores beside.
        fs::write(place.join("README"), "in place").unwrap();
        fs::write(place.join("new"), "renamed over").unwrap();
        fs::rename(place.join("new"), place.join("src/main.rs")).unwrap();
        fs::remove_file(place.join("src/gone.rs")).unwrap();
        fs::write(place.join("src/made.rs"), "made").unwrap();
        fs::create_dir(place.join("folder")).unwrap();
        fs::write(place.join("folder/deep"), "deep").unwrap();
        symlink("README", place.join("link")).unwrap();
        fs::set_permissions(place.join("src/kept.rs"), Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(place.join("src"), Permissions::from_mode(0o700)).unwrap();
        fs::write(place.join("notes"), "other notes").unwrap();
        fs::write(place.join("beside-node_modules"), "beside").unwrap();
        git(place, &["commit", "-qam", "outside"]);
        git(place, &["branch", &format!("outside-{name}")]);
        assert_eq!(view(&home, name), before, "{name}");

        fs::remove_dir_all(place.join("src")).unwrap();
        assert_eq!(view(&home, name), before, "{name}, a folder gone");
        let mut behind: Vec<String> =
            serde_json::from_value(home.json(&["status", name])["freshness"]["behind"].clone()).unwrap();
        behind.sort();
        let moved = ["README", "beside-node_modules", "folder", "folder/deep", "link", "notes", "src"];
        assert_eq!(behind, moved, "it knows what moved on; a folder that is gone counts once");
    }
}

/// A thousand times as root, a hundred as a user, who is slower. With more files it is `cargo xtask soak freshness`.
#[test]
fn what_was_just_written_is_seen_at_once() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let rounds = if is_root() { 500 } else { 50 };
    for place in [&yard.clone, &yard.linked] {
        for round in 0..rounds {
            // Of one length, so that the size alone never tells.
            let text = format!("{round:04}");
            let name = ["README", "notes", "src/kept.rs"][round % 3];
            fs::write(place.join(name), &text).unwrap();
            let ran = zeno(&home, place, &["run", "--", "cat", name]);
            assert_eq!((ran.code, ran.out()), (0, text), "round {round}: {ran}");
        }
    }
}

/// An origin, a clone of it, and a worktree linked to the clone.
struct Yard {
    folder: PathBuf,
    clone: PathBuf,
    linked: PathBuf,
}

impl Yard {
    fn new(home: &Home) -> Self {
        let folder = home.yard().join("repositories");
        let [origin, clone, linked] = ["origin", "clone", "linked"].map(|name| folder.join(name));
        fs::create_dir_all(origin.join("src")).unwrap();
        git(&origin, &["init", "-q", "-b", "main"]);
        fs::write(origin.join(".gitignore"), "node_modules\ntarget\n").unwrap();
        for name in ["main.rs", "gone.rs", "kept.rs"] {
            fs::write(origin.join("src").join(name), name).unwrap();
        }
        git(&origin, &["add", "-A"]);
        git(&origin, &["commit", "-qm", "first"]);
        fs::write(origin.join("README"), "readme\n").unwrap();
        git(&origin, &["add", "-A"]);
        git(&origin, &["commit", "-qm", "second"]);
        git(&folder, &["clone", "-q", "origin", "clone"]);
        git(&clone, &["config", "user.name", "Ada"]);
        git(&clone, &["config", "user.email", "ada@example.invalid"]);
        git(&clone, &["worktree", "add", "-q", "-b", "linked", "../linked"]);
        for place in [&clone, &linked] {
            for (name, text) in
                [("node_modules/a/index.js", "a"), ("target/debug/out", "out"), ("notes", "n")]
            {
                let path = place.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        Self { folder, clone, linked }
    }

    /// Every case in a throwaway of its own, and all of them, one after the other, in one sandbox.
    fn check(&self, home: &Home, place: &Path) {
        let before = self.state();
        for (line, expected) in CASES {
            let ran = zeno(home, place, &["run", "--", "sh", "-c", line]);
            assert_eq!((ran.code, ran.out().as_str()), (0, *expected), "{line}: {ran}");
            assert!(self.state() == before, "`{line}` reached the real repository");
        }
        let made = zeno(home, place, &["create", "--name", "box"]);
        assert_eq!(made.code, 0, "{made}");
        for (line, _) in CASES {
            let ran = home.exec("box", line);
            assert_eq!(ran.code, 0, "{line}: {ran}");
        }
        let history = home.exec("box", "git log --format=%s && git branch --show-current && ls").out();
        assert_eq!(history, "inside\nsecond\nfirst\ntopic\nREADME\nsrc\n");
        assert!(self.state() == before, "a sandbox reached the real repository");
        home.ok(&["destroy", "box"]);
        assert!(self.state() == before, "a sandbox's end reached the real repository");
    }

    /// Every file with its bytes and rights, the git folders among them, and what git says of it.
    fn state(&self) -> (Listing, Vec<String>) {
        let asked = [&self.clone, &self.linked]
            .into_iter()
            .flat_map(|place| [git(place, &["status", "--porcelain"]), git(place, &["show-ref"])]);
        let asked = asked.collect();
        (listing(&self.folder), asked)
    }
}

fn zeno(home: &Home, place: &Path, arguments: &[&str]) -> Ran {
    let ran = finish(home.command(arguments).current_dir(place).spawn().unwrap(), b"");
    home.daemon();
    ran
}

/// All a sandbox sees of its repository but the ignored folders, which are read live.
fn view(home: &Home, name: &str) -> String {
    let ran = home.exec(
        name,
        "seen() { find . \\( -name node_modules -o -name target \\) -prune -o \"$@\"; }; \
         seen -printf '%y %m %p %l\\n' | sort; seen -type f -exec sha256sum {} + | sort; \
         git --no-optional-locks status --porcelain; git rev-parse HEAD; git show-ref; ls node_modules target",
    );
    assert_eq!(ran.code, 0, "{ran}");
    ran.out()
}
