//! Commits made inside, brought into the real repository as refs of their own, whatever the sandbox's git folder holds.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::{Listing, listing};
use crate::home::{Home, Ran, finish, is_root};
use crate::yard::git;

#[test]
fn branches_tags_and_a_detached_head_arrive_and_go_again() {
    let home = Home::new();
    let yard = Yard::new(&home);
    for (place, name) in [(&yard.clone, "plain"), (&yard.linked, "linked")] {
        let id = yard.sandbox(&home, place, name);
        inside(
            &home,
            name,
            "echo one > one && git add one && git commit -qm one && echo more >> one && git commit -qa --amend -m amended &&
             echo two > two && git add two && git commit -qm two && git tag light && git tag -a -m told told HEAD~1 &&
             git checkout -q -b topic/deep && echo three > three && git add three && git commit -qm three &&
             git checkout -q --detach && echo four > four && git add four && git commit -qm four && echo five > five",
        );
        let (before, refs) = (yard.untouched(), yard.refs());
        let branch = git(place, &["branch", "--show-current"]).trim().to_owned();
        let tips = ["HEAD", &format!("heads/{branch}"), "heads/topic/deep", "tags/light", "tags/told"];

        let told = home.ok(&["promote", name, "--dry-run"]);
        assert!(
            told.contains(&format!("  2 commits on {branch} -> refs/zeno/{id}/heads/{branch}\n")),
            "{told}"
        );
        assert!(told.contains(&format!("  4 commits on HEAD -> refs/zeno/{id}/HEAD\n")), "{told}");
        assert_eq!(yard.refs(), refs, "a dry run does nothing");

        let done = home.json(&["promote", name]);
        assert_eq!(done["status"], "done", "{done}");
        assert_eq!(done["promotion"]["commits"].as_array().map(Vec::len), Some(tips.len()), "{done}");
        let log = |tip: &str| git(place, &["log", "--format=%s", &format!("refs/zeno/{id}/{tip}")]);
        assert_eq!(log(&format!("heads/{branch}")), "two\namended\nfirst\n");
        assert_eq!(log("HEAD"), "four\nthree\ntwo\namended\nfirst\n");
        assert_eq!(log("heads/topic/deep"), "three\ntwo\namended\nfirst\n");
        assert_eq!(
            (log("tags/light"), log("tags/told")),
            ("two\namended\nfirst\n".into(), "amended\nfirst\n".into())
        );
        assert_eq!(git(place, &["cat-file", "-t", &format!("refs/zeno/{id}/tags/told")]), "tag\n");
        let mut expected: Vec<String> = tips.iter().map(|tip| format!("refs/zeno/{id}/{tip}")).collect();
        expected.extend(refs.iter().map(|line| line.split(' ').next().unwrap().to_owned()));
        expected.sort();
        let now: Vec<String> =
            yard.refs().iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(now, expected);
        git(place, &["fsck", "--strict", "--no-dangling"]);
        assert!(yard.untouched() == before, "an index, a HEAD, a log, settings or a hook changed");
        // What was not committed, too, and all of it is a change of the working tree here.
        assert_eq!(git(place, &["status", "--porcelain"]), "?? five\n?? four\n?? one\n?? three\n?? two\n");

        assert_eq!(home.json(&["promote", name])["status"], "planned", "the same again is nothing");
        home.ok(&["undo"]);
        assert_eq!(yard.refs(), refs);
        assert_eq!(git(place, &["status", "--porcelain"]), "");
    }
}

#[test]
fn stashes_arrive_and_what_stays_behind_is_told() {
    let home = Home::new();
    let yard = Yard::new(&home);
    // One that was there before is not the sandbox's.
    fs::write(yard.clone.join("README"), "before\n").unwrap();
    git(&yard.clone, &["stash", "-q"]);
    for (place, name) in [(&yard.clone, "plain"), (&yard.linked, "linked")] {
        let id = yard.sandbox(&home, place, name);
        inside(
            &home,
            name,
            "echo one >> README && git stash -q && echo two > two && git stash -q -u -m second && git notes add -m note HEAD",
        );
        let (before, refs) = (yard.untouched(), yard.refs());
        let told = home.ok(&["promote", name]);
        let stash = |number: u32| format!("  stash@{{{number}}} -> refs/zeno/{id}/stash/{number}\n");
        assert!(told.contains(&(stash(0) + &stash(1))) && !told.contains(&stash(2)), "{told}");
        assert!(
            told.contains(&format!("see what was stashed: git stash show -p refs/zeno/{id}/stash/0\n")),
            "{told}"
        );
        assert!(told.contains("What `refs/notes/commits` stands for stays behind"), "{told}");
        let show = |number: u32| {
            git(
                place,
                &["stash", "show", "-p", "--include-untracked", &format!("refs/zeno/{id}/stash/{number}")],
            )
        };
        assert!(show(0).contains("+two") && show(1).contains("+one"), "{} {}", show(0), show(1));
        assert_eq!(yard.refs().len(), refs.len() + 2);
        assert!(yard.untouched() == before, "an index, a HEAD, a log, settings or a hook changed");
        git(place, &["fsck", "--strict", "--no-dangling"]);
        home.ok(&["undo"]);
        assert_eq!(yard.refs(), refs);
    }
}

#[test]
fn commits_in_submodules_and_repositories_within_arrive_in_these() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let repository = |place: &Path| {
        fs::create_dir_all(place).unwrap();
        git(place, &["init", "-q", "-b", "main"]);
        fs::write(place.join("file"), "file\n").unwrap();
        git(place, &["add", "-A"]);
        git(place, &["commit", "-qm", "first"]);
    };
    let (source, within, lib) =
        (yard.folder.join("source"), yard.clone.join("within"), yard.clone.join("lib"));
    repository(&source);
    let source = source.to_str().unwrap();
    git(&yard.clone, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "lib"]);
    git(&yard.clone, &["commit", "-qm", "lib"]);
    repository(&within);
    let id = yard.sandbox(&home, &yard.clone, "box");
    let commit = |folder: &str| {
        format!("cd {folder} && echo new > new && git add new && git commit -qm in-{folder} && cd ..")
    };
    let fresh = "git init -q -b main fresh";
    inside(
        &home,
        "box",
        &format!("{} && {} && {fresh} && {}", commit("lib"), commit("within"), commit("fresh")),
    );
    let refs = |place: &Path| git(place, &["for-each-ref"]);
    let before = [refs(&lib), refs(&within), refs(&yard.clone)];
    let dry = home.ok(&["promote", "box", "--dry-run"]);
    assert_eq!([refs(&lib), refs(&within), refs(&yard.clone)], before, "a dry run does nothing");
    let told = home.ok(&["promote", "box"]);
    for told in [&dry, &told] {
        let came =
            |repository: &str| format!("  1 commit on main -> refs/zeno/{id}/heads/main in {repository}\n");
        assert!(told.contains(&came(".git/modules/lib")) && told.contains(&came("within/.git")), "{told}");
        assert!(told.contains("Commits made in `fresh/.git` stay behind"), "{told}");
    }
    let seen = format!("git --git-dir=.git/modules/lib log refs/zeno/{id}/heads/main");
    assert!(told.contains(&format!("see what was committed: {seen}\n")), "{told}");
    for (place, subjects) in [(&lib, "in-lib\nfirst\n"), (&within, "in-within\nfirst\n")] {
        assert_eq!(git(place, &["log", "--format=%s", &format!("refs/zeno/{id}/heads/main")]), subjects);
        git(place, &["fsck", "--strict"]);
        assert_eq!(fs::read_to_string(place.join("new")).unwrap(), "new\n");
    }
    // What stays behind can be had in the way that is told.
    let make = told.split('`').find(|part| part.starts_with("zeno exec")).unwrap();
    let make: Vec<&str> = make.split_whitespace().skip(1).collect();
    home.ok(&make);
    let copy = told.split('`').find(|part| part.starts_with("zeno cp")).unwrap();
    let copy: Vec<&str> = copy.split_whitespace().skip(1).collect();
    home.ok(&copy);
    let bundle = home.yard().join("commits.bundle");
    git(&within, &["fetch", "-q", bundle.to_str().unwrap(), "main:fetched"]);
    assert_eq!(git(&within, &["log", "--format=%s", "fetched"]), "in-fresh\n");
    git(&within, &["branch", "-q", "-D", "fetched"]);

    assert_eq!(home.json(&["promote", "box"])["status"], "planned", "the same again is nothing");
    home.ok(&["undo"]);
    assert_eq!([refs(&lib), refs(&within), refs(&yard.clone)], before);
    assert!(!home.path().join("scratch").exists(), "scratch is removed");
}

#[test]
fn more_commits_move_the_ref_on_and_undo_moves_it_back() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let id = yard.sandbox(&home, &yard.clone, "box");
    let log = || git(&yard.clone, &["log", "--format=%s", &format!("refs/zeno/{id}/heads/main")]);
    // Commits alone, of what was there already.
    fs::write(yard.clone.join("README"), "changed here\n").unwrap();
    let id_of = |name: &str| yard.sandbox(&home, &yard.clone, name);
    let dirty = id_of("dirty");
    inside(&home, "dirty", "git commit -qam 'what was here'");
    let done = home.json(&["promote", "dirty"]);
    assert_eq!(done["promotion"]["counts"]["modified"], 0, "{done}");
    assert_eq!(done["promotion"]["commits"][0]["commits"], 1, "{done}");
    home.ok(&["undo"]);
    assert!(!git(&yard.clone, &["show-ref"]).contains(&dirty));
    git(&yard.clone, &["checkout", "-q", "README"]);

    inside(&home, "box", "echo a > a && git add a && git commit -qm a");
    home.ok(&["promote", "box"]);
    inside(&home, "box", "echo b > b && git add b && git commit -qm b && git gc -q && git pack-refs --all");
    let told = home.json(&["promote", "box"]);
    assert_eq!(told["promotion"]["commits"][0]["commits"], 1, "the first is known by now: {told}");
    assert_eq!(log(), "b\na\nfirst\n");
    home.ok(&["undo"]);
    assert_eq!(log(), "a\nfirst\n");
    // A ref that the user has moved since is the user's.
    git(&yard.clone, &["update-ref", &format!("refs/zeno/{id}/heads/main"), "HEAD"]);
    home.ok(&["undo"]);
    assert_eq!(log(), "first\n");
    // Left where they are, when nobody wants them.
    inside(&home, "box", "echo c > c && git add c && git commit -qm c");
    let refs = yard.refs();
    home.ok(&["promote", "box", "--no-commits"]);
    assert_eq!(yard.refs(), refs);
}

#[test]
fn what_the_real_repository_has_lost_since_comes_too() {
    let home = Home::new();
    let yard = Yard::new(&home);
    fs::write(yard.clone.join("extra"), "extra\n").unwrap();
    git(&yard.clone, &["add", "extra"]);
    git(&yard.clone, &["commit", "-qm", "lost"]);
    let id = yard.sandbox(&home, &yard.clone, "box");
    inside(&home, "box", "echo a > a && git add a && git commit -qm a");
    git(&yard.clone, &["reset", "-q", "--hard", "HEAD~1"]);
    git(&yard.clone, &["reflog", "expire", "--expire=now", "--all"]);
    git(&yard.clone, &["gc", "-q", "--prune=now"]);
    home.ok(&["promote", "box", "--on-conflict", "theirs"]);
    assert_eq!(
        git(&yard.clone, &["log", "--format=%s", &format!("refs/zeno/{id}/heads/main")]),
        "a\nlost\nfirst\n"
    );
    git(&yard.clone, &["fsck", "--strict"]);
}

#[test]
fn a_hostile_repository_brings_its_commits_and_nothing_else() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let trap = home.yard().join("trap");
    let spring = format!("touch {}", trap.display());
    // Not even the user's own: nobody asked git for anything.
    let hook = yard.clone.join(".git/hooks/reference-transaction");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\n{spring}\n")).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let id = yard.sandbox(&home, &yard.clone, "box");
    let hooks =
        "reference-transaction post-update pre-receive update post-receive pre-push fsmonitor-watchman";
    inside(
        &home,
        "box",
        &format!(
            "echo a > a && git add a && git commit -qm a && tip=$(git rev-parse HEAD) first=$(git rev-parse HEAD~1)
             for hook in {hooks}; do printf '#!/bin/sh\\n{spring}\\n' > .git/hooks/$hook; chmod 755 .git/hooks/$hook; done
             git config core.fsmonitor '{spring}'; git config core.sshCommand '{spring}'; git config core.hooksPath .git/hooks
             git config uploadpack.packObjectsHook '{spring}'; git config core.alternateRefsCommand '{spring}'
             git config extensions.worktreeConfig true; git config core.gitProxy '{spring}'
             echo /etc > .git/objects/info/alternates; echo ../../../.. > .git/commondir
             mkdir -p .git/refs/replace; echo $first > .git/refs/replace/$tip
             mkdir -p .git/refs/heads/odd; echo $tip > '.git/refs/heads/odd/a..b'; echo $tip > '.git/refs/heads/odd/x.lock'
             echo $tip > '.git/refs/heads/odd/new
line'; echo ref: refs/heads/main > .git/refs/heads/symbolic; ln -s /etc/passwd .git/refs/heads/linked
             printf '%s refs/heads/../../../../../escape\\n%s refs/heads/main\\n' $tip $tip > .git/packed-refs"
        ),
    );
    let (before, refs) = (yard.untouched(), yard.refs());
    let done = home.json(&["promote", "box"]);
    assert_eq!(done["status"], "done", "{done}");
    let brought: Vec<&str> = done["promotion"]["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|brought| brought["outside"].as_str().unwrap())
        .collect();
    assert_eq!(brought, [format!("refs/zeno/{id}/heads/main")]);
    assert!(
        done["assessment"]["caveats"][0]["text"]
            .as_str()
            .unwrap()
            .contains("refs made inside do not come along"),
        "{done}"
    );
    assert!(yard.untouched() == before, "something of the real repository changed");
    assert_eq!(yard.refs().len(), refs.len() + 1);
    home.ok(&["undo"]);
    assert_eq!(yard.refs(), refs);
    assert!(!trap.exists(), "something of the sandbox's was executed");
    assert!(!home.path().join("scratch").exists(), "scratch is removed");
}

#[test]
fn objects_that_are_not_what_they_say_are_refused() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let commit = "echo a > a && git add a && git commit -qm a";
    let object = "$(git rev-parse HEAD | sed 's|^..|.git/objects/&/|')";
    let blob = "$(git rev-parse HEAD:a | sed 's|^..|.git/objects/&/|')";
    let cases = [
        ("corrupt", format!("{commit} && chmod u+w {object} && head -c 40 /dev/urandom > {object}")),
        ("missing", format!("{commit} && rm -f {blob}")),
        (
            "other",
            format!(
                "{commit} && f={blob} && o=$(echo other | git hash-object -w --stdin | sed 's|^..|.git/objects/&/|') && \
            chmod u+w $f && cat $o > $f"
            ),
        ),
        (
            "linked",
            format!("{commit} && mv .git/objects /var/tmp/objects && ln -s /var/tmp/objects .git/objects"),
        ),
        (
            "pack",
            format!(
                "{commit} && git repack -qad && p=$(ls .git/objects/pack/*.pack) && chmod u+w $p && \
            printf x | dd of=$p bs=1 seek=40 conv=notrunc 2>/dev/null"
            ),
        ),
        ("nowhere", "echo 0123456789abcdef0123456789abcdef01234567 > .git/refs/heads/nowhere".to_owned()),
    ];
    let (before, refs) = (listing(&yard.folder), yard.refs());
    for (name, script) in cases {
        yard.sandbox(&home, &yard.clone, name);
        inside(&home, name, &script);
        let ran = home.zeno(&["promote", name]);
        assert_eq!(ran.code, 4, "{name}: {ran}");
        assert!(ran.err().contains("--no-commits"), "{name}: {ran}");
        assert_eq!(yard.refs(), refs, "{name}");
        let now: Listing = listing(&yard.folder);
        let is_object = |path: &[u8]| path.windows(9).any(|part| part == b"/objects/");
        let gone = |one: &Listing, other: &Listing| {
            one.iter().filter(|entry| !is_object(&entry.0) && !other.contains(*entry)).count()
        };
        assert_eq!((gone(&before, &now), gone(&now, &before)), (0, 0), "{name} reached the real repository");
    }
    home.ok(&["promote", "corrupt", "--no-commits"]);
    assert_eq!(fs::read_to_string(yard.clone.join("a")).unwrap(), "a\n");
    home.ok(&["undo"]);
}

#[test]
fn what_root_brings_belongs_to_the_repositorys_owner() {
    if !is_root() {
        // Nobody else can work in somebody else's repository.
        return;
    }
    let home = Home::new();
    let yard = Yard::new(&home);
    fs::set_permissions(home.yard().parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    for path in std::iter::once(yard.folder.clone()).chain(tree(&yard.folder)) {
        std::os::unix::fs::lchown(&path, Some(OWNER), Some(OWNER)).unwrap();
    }
    chown(home.yard(), None, None).unwrap();
    yard.sandbox(&home, &yard.clone, "box");
    inside(
        &home,
        "box",
        "git config --global safe.directory '*' && echo a > a && git add a && git commit -qm a",
    );
    home.ok(&["promote", "box"]);
    for path in tree(&yard.clone.join(".git")) {
        let owner = fs::symlink_metadata(&path).unwrap();
        assert_eq!((owner.uid(), owner.gid()), (OWNER, OWNER), "{}", path.display());
    }
    home.ok(&["undo"]);
}

const OWNER: u32 = 12345;

/// A repository, and a worktree linked to it.
struct Yard {
    folder: PathBuf,
    clone: PathBuf,
    linked: PathBuf,
}

impl Yard {
    fn new(home: &Home) -> Self {
        let folder = home.yard().join("repositories");
        let [clone, linked] = ["clone", "linked"].map(|name| folder.join(name));
        fs::create_dir_all(&clone).unwrap();
        git(&clone, &["init", "-q", "-b", "main"]);
        fs::write(clone.join("README"), "readme\n").unwrap();
        git(&clone, &["add", "-A"]);
        git(&clone, &["commit", "-qm", "first"]);
        git(&clone, &["worktree", "add", "-q", "-b", "other", "../linked"]);
        Self { folder, clone, linked }
    }

    /// Makes a sandbox of one of them, and returns its id.
    fn sandbox(&self, home: &Home, place: &Path, name: &str) -> String {
        let made: Ran = finish(
            home.command(&["create", "--json", "--name", name]).current_dir(place).spawn().unwrap(),
            b"",
        );
        assert_eq!(made.code, 0, "{made}");
        home.daemon();
        let made: Value = serde_json::from_str(&made.out()).unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// Every ref and where it stands.
    fn refs(&self) -> Vec<String> {
        let said = git(&self.clone, &["for-each-ref", "--format=%(refname) %(objectname)"]);
        said.lines().map(str::to_owned).collect()
    }

    /// All of the git folder but objects and `refs/zeno`.
    fn untouched(&self) -> Listing {
        let mut all = listing(&self.clone.join(".git"));
        let ours: [&[u8]; 3] = [b"objects", b"refs/zeno", b"refs"];
        all.retain(|entry| !ours.iter().any(|ours| entry.0.starts_with(ours)));
        all
    }
}

#[track_caller]
fn inside(home: &Home, name: &str, script: &str) {
    let identity =
        "export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=a@b";
    let ran = home.exec(name, &format!("set -e; {identity}\n{script}"));
    assert_eq!(ran.code, 0, "{script}: {ran}");
}

/// Everything below a folder.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}
