//! Frozen workspaces as a sandbox sees them: mounted as real overlays over the real place.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::AtomicBool;

use model::SandboxId;

use super::super::index::Role;
use super::super::place::Place;
use super::super::{FROZEN_ROOT, Frozen, Live, Step, count};
use super::tree::{assert_same, reality};
use super::{Lab, git};

/// Runs a shell script where the frozen workspace is mounted, writable, in a mount namespace of its own.
pub(super) fn inside(lab: &Lab, frozen: &Frozen, script: &str) -> Output {
    let is_root = rustix::process::geteuid().is_root();
    let mut mounts = String::from("set -e\n");
    for (number, part) in frozen.parts.iter().enumerate() {
        let area = tempfile::tempdir_in(lab.outside("")).unwrap().keep();
        for folder in ["upper", "work", "mount"] {
            std::fs::create_dir(area.join(folder)).unwrap();
        }
        let mut lowers: Vec<_> = part.layers.iter().map(|layer| layer.display().to_string()).collect();
        let live = part.live.as_ref().map(|live| live.display().to_string());
        let lower = match (lab.live, live) {
            (Live::Stubs, Some(live)) => format!("{}::{live}", lowers.join(":")),
            (_, live) => {
                lowers.extend(live);
                lowers.join(":")
            }
        };
        let flavour = if is_root { "redirect_dir=on" } else { "userxattr" };
        let (area, mountpoint) = (area.display(), part.mountpoint.display());
        mounts += &format!(
            "mount -t overlay zeno{number} -o lowerdir={lower},upperdir={area}/upper,workdir={area}/work,{flavour} {area}/mount\n\
             mount --bind {area}/mount/{FROZEN_ROOT} {mountpoint}\n"
        );
    }
    let flags = if is_root { "-m" } else { "-Urm" };
    Command::new("unshare")
        .args([flags, "sh", "-c", &format!("{mounts}cd {}\n{script}", frozen.workspace.display())])
        .env("GIT_AUTHOR_NAME", "zeno")
        .env("GIT_AUTHOR_EMAIL", "zeno@localhost")
        .env("GIT_COMMITTER_NAME", "zeno")
        .env("GIT_COMMITTER_EMAIL", "zeno@localhost")
        .output()
        .unwrap()
}

#[track_caller]
pub(super) fn check(lab: &Lab, frozen: &Frozen, script: &str, expected: &str) {
    let output = inside(lab, frozen, script);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected, "{script}: {error}");
}

pub(super) fn repository() -> Lab {
    repository_in(Lab::new())
}

pub(super) fn repository_in(lab: Lab) -> Lab {
    lab.git(&["init"]);
    lab.write(".gitignore", "node_modules/\ntarget\n*.log\n");
    lab.write("src/main.rs", "fn main() {}\n");
    lab.git(&["add", "."]);
    lab.git(&["commit", "-m", "first"]);
    lab.write("web/node_modules/left/index.js", "left\n");
    lab.write("web/node_modules/right/index.js", "right\n");
    lab.write("target/debug/app", "binary\n");
    lab.write("small.log", "ignored but small\n");
    lab
}

#[test]
fn ignored_folders_behave_as_ordinary_ones() {
    let mut lab = repository();
    let (_, frozen) = lab.freeze();
    let before = reality(&lab.work());
    check(&lab, &frozen, "cat web/node_modules/left/index.js small.log", "left\nignored but small");
    check(
        &lab,
        &frozen,
        "ls -A . web/node_modules",
        ".:\n.git\n.gitignore\nsmall.log\nsrc\ntarget\nweb\n\nweb/node_modules:\nleft\nright",
    );
    check(
        &lab,
        &frozen,
        "rm -rf web/node_modules && ls -A web && mkdir web/node_modules && ls -A web/node_modules",
        "",
    );
    check(
        &lab,
        &frozen,
        "mv target elsewhere && cat elsewhere/debug/app && ls -A | grep -c target || true",
        "binary\n0",
    );
    check(&lab, &frozen, "git clean -fdxq && ls -A", ".git\n.gitignore\nsrc");
    check(
        &lab,
        &frozen,
        "echo more >> web/node_modules/left/index.js && cat web/node_modules/left/index.js",
        "left\nmore",
    );
    assert_same(&before, &reality(&lab.work()));
}

#[test]
fn an_ignored_folder_that_appears_later_shows_in_a_delta() {
    let mut lab = repository();
    std::fs::remove_dir_all(lab.path("target")).unwrap();
    let (_, first) = lab.freeze();
    lab.write("target/release/app", "new binary\n");
    std::fs::remove_dir_all(lab.path("web/node_modules")).unwrap();
    lab.write("src/lib.rs", "\n");
    let (_, second) = lab.freeze();
    assert!(second.parts[0].layers.len() > 1);
    check(&lab, &second, "cat target/release/app && ls web src", "new binary\nsrc:\nlib.rs\nmain.rs\n\nweb:");
    check(&lab, &first, "ls -A . src", ".:\n.git\n.gitignore\nsmall.log\nsrc\nweb\n\nsrc:\nmain.rs");
}

#[test]
fn a_tracked_file_in_an_ignored_folder_is_frozen() {
    let mut lab = repository();
    lab.write("target/keep", "tracked\n");
    lab.git(&["add", "-f", "target/keep"]);
    let (_, frozen) = lab.freeze();
    lab.write("target/keep", "changed\n");
    check(&lab, &frozen, "cat target/keep target/debug/app", "tracked\nbinary");
    // Untracked again, it is as live as what surrounds it.
    lab.git(&["rm", "-qf", "--cached", "target/keep"]);
    let (_, frozen) = lab.freeze();
    check(&lab, &frozen, "cat target/keep target/debug/app", "changed\nbinary");
}

#[test]
fn rules_that_change_are_followed() {
    let mut lab = repository();
    let (_, frozen) = lab.freeze();
    check(&lab, &frozen, "ls target/debug", "app");
    lab.write(".gitignore", "src\n");
    let (_, frozen) = lab.freeze();
    lab.write("target/debug/app", "new\n");
    lab.write("web/node_modules/left/index.js", "new\n");
    check(&lab, &frozen, "cat target/debug/app web/node_modules/left/index.js", "binary\nleft");
    lab.write(".git/info/exclude", "web\n");
    let (_, frozen) = lab.freeze();
    check(&lab, &frozen, "git status --short", " M .gitignore\n?? small.log\n?? target/");
}

/// Of everything that a capture treats in a way of its own, in every way in which ignored folders are shown.
#[test]
fn what_is_counted_beforehand_is_what_is_captured() {
    for live in [super::live_here(), Live::Copy] {
        let lab = repository();
        lab.write(".env", "SECRET=1\n");
        lab.write("vendor/inner/.gitignore", "*.tmp\nbuild\n");
        lab.write("vendor/inner/a.tmp", "");
        lab.write("vendor/inner/build/b", "");
        std::os::unix::fs::symlink("nowhere", lab.path("link")).unwrap();
        std::fs::hard_link(lab.path("small.log"), lab.path("vendor/same")).unwrap();
        let captures = super::open(&lab.outside("counted"), live);
        let seen = std::cell::Cell::new(0);
        let tell = |step| {
            if let Step::Copying(progress) = step {
                seen.set(progress.files.max(seen.get()));
            }
        };
        captures.freeze(&lab.work(), SandboxId::from_bits(1), &[], &tell).unwrap();
        let place =
            Place::open(&lab.work(), Role::Work, live, &super::masks(), &lab.outside("place")).unwrap();
        let counted = count::files(&place, &AtomicBool::new(false));
        assert!(seen.get() > 20, "{seen:?}");
        assert_eq!(counted, Some(seen.get()), "{live:?}");
        assert_eq!(count::files(&place, &AtomicBool::new(true)), None, "given up");
    }
}

#[test]
fn nothing_changed_is_the_same_generation() {
    let mut lab = repository();
    // What was written within the last tick of the clock is copied again after a restart, to be sure.
    let age = || lab.path("small.log").metadata().unwrap().modified().unwrap().elapsed().unwrap();
    while age() < std::time::Duration::from_millis(50) {
        std::thread::yield_now();
    }
    let seen = std::cell::Cell::new(super::super::Progress::default());
    let holder = lab.holder();
    let first = lab
        .captures
        .freeze(&lab.work(), holder, &[], &|step| {
            if let Step::Copying(progress) = step {
                seen.set(progress)
            }
        })
        .unwrap();
    assert!(seen.get().files > 10 && seen.get().bytes > 1000, "{seen:?}");
    seen.set(super::super::Progress::default());
    let second = lab
        .captures
        .freeze(&lab.work(), holder, &[], &|step| {
            if let Step::Copying(progress) = step {
                seen.set(progress)
            }
        })
        .unwrap();
    assert_eq!((seen.get().files, first.generation), (0, second.generation));
    assert_eq!(first.parts[0].layers, second.parts[0].layers);
    // A restart has to look, and finds the same.
    lab.restart();
    let (_, third) = lab.freeze();
    assert_eq!(first.generation, third.generation);
}

#[test]
fn git_works_in_a_clone_and_leaves_the_real_one_alone() {
    let mut lab = repository();
    lab.write("src/main.rs", "fn main() { run() }\n");
    let (_, frozen) = lab.freeze();
    let before = reality(&lab.work());
    check(
        &lab,
        &frozen,
        "git status --short && git diff --stat | tail -1",
        " M src/main.rs\n 1 file changed, 1 insertion(+), 1 deletion(-)",
    );
    check(
        &lab,
        &frozen,
        "git commit -qam inside && git log --format=%s && git fsck 2>&1 | grep -v dangling || true",
        "inside\nfirst",
    );
    assert_same(&before, &reality(&lab.work()));
    lab.git(&["commit", "-qam", "outside"]);
    check(&lab, &frozen, "git log --format=%s", "first");
    let (_, frozen) = lab.freeze();
    check(&lab, &frozen, "git log --format=%s && git status --short", "outside\nfirst");
}

/// A worktree of a repository that lies elsewhere, and where that is.
pub(super) fn linked_worktree() -> (Lab, PathBuf) {
    let lab = Lab::new();
    let main = lab.outside("main");
    std::fs::create_dir(&main).unwrap();
    std::fs::remove_dir(lab.work()).unwrap();
    git(&main, &["init"]);
    std::fs::write(main.join("file"), "text\n").unwrap();
    git(&main, &["add", "."]);
    git(&main, &["commit", "-m", "first"]);
    git(&main, &["worktree", "add", "-b", "side", lab.work().to_str().unwrap()]);
    (lab, main)
}

#[test]
fn git_works_in_a_linked_worktree() {
    let (mut lab, main) = linked_worktree();
    let (_, frozen) = lab.freeze();
    assert_eq!(frozen.parts.len(), 2);
    let before = (reality(&main), reality(&lab.work()));
    check(
        &lab,
        &frozen,
        "echo more >> file && git commit -qam inside && git log --format=%s && git status --short",
        "inside\nfirst",
    );
    assert_same(&before.0, &reality(&main));
    assert_same(&before.1, &reality(&lab.work()));
    git(&main, &["branch", "later"]);
    let (_, frozen) = lab.freeze();
    check(&lab, &frozen, "git branch --format='%(refname:short)'", "later\nmain\nside");
}

#[test]
fn secrets_are_absent_until_unmasked() {
    let mut lab = repository();
    lab.write(".env", "KEY=1\n");
    lab.write("web/.env.local", "KEY=2\n");
    lab.write(".env.example", "KEY=\n");
    lab.git(&["add", ".env.example"]);
    let (_, frozen) = lab.freeze();
    let masked: Vec<_> = frozen.masked.iter().map(|masked| masked.path.display().into_owned()).collect();
    assert_eq!(masked, [lab.path(".env"), lab.path("web/.env.local")].map(|path| path.display().to_string()));
    check(&lab, &frozen, "find . -name '.env*'", "./.env.example");
    let holder = lab.holder();
    let frozen = lab.captures.freeze(&lab.work(), holder, &["web/.env.local".into()], &|_| ()).unwrap();
    lab.write("web/.env.local", "KEY=3\n");
    check(
        &lab,
        &frozen,
        "find . -name '.env*' | sort && cat web/.env.local",
        "./.env.example\n./web/.env.local\nKEY=2",
    );
    assert_eq!(frozen.masked.len(), 1);
    lab.captures.sweep(&[holder]).unwrap();
    check(&lab, &frozen, "cat web/.env.local", "KEY=2");
    let extra = frozen.parts[0].layers[0].clone();
    lab.captures.release(holder);
    assert!(!extra.exists(), "what was made for one sandbox goes with it");
}

#[test]
fn secrets_in_ignored_folders_are_absent_and_what_is_beside_them_is_there() {
    let mut lab = repository();
    lab.write(".gitignore", "dist\nnode_modules\n");
    lab.write("dist/app.js", "app\n");
    lab.write("dist/standalone/.env", "KEY=1\n");
    lab.write("dist/standalone/server.js", "server\n");
    lab.write("dist/standalone/lib/index.js", "index\n");
    lab.write("node_modules/left-pad/index.js", "pad\n");
    let (_, frozen) = lab.freeze();
    let masked: Vec<_> = frozen.masked.iter().map(|masked| masked.path.display().into_owned()).collect();
    assert_eq!(masked, [lab.path("dist/standalone/.env").display().to_string()]);
    let all = "find dist node_modules -type f | sort && cat dist/standalone/lib/index.js";
    let shown = "dist/app.js\ndist/standalone/lib/index.js\ndist/standalone/server.js\n\
                 node_modules/left-pad/index.js\nindex";
    check(&lab, &frozen, all, shown);
    check(&lab, &frozen, "mv dist elsewhere && rm -r elsewhere/standalone && ls -A elsewhere", "app.js");
}

#[test]
fn the_store_may_not_lie_in_a_workspace() {
    let mut lab = Lab::new();
    let holder = lab.holder();
    let refused = lab.captures.freeze(&lab.outside(""), holder, &[], &|_| ());
    assert!(matches!(refused, Err(super::super::CaptureError::StoreInside { .. })), "{refused:?}");
}

#[test]
fn modes_and_times_come_through_the_mount() {
    let mut lab = repository();
    std::fs::set_permissions(lab.path("src"), PermissionsExt::from_mode(0o750)).unwrap();
    let (_, frozen) = lab.freeze();
    let stat = |folder: &Path| {
        let mut command = Command::new("stat");
        command.args(["-c", "%n %a %y", "src", "src/main.rs", "web", "web/node_modules"]);
        String::from_utf8(command.current_dir(folder).output().unwrap().stdout).unwrap()
    };
    let expected = stat(&lab.work());
    check(&lab, &frozen, "stat -c '%n %a %y' src src/main.rs web web/node_modules", expected.trim_end());
}
