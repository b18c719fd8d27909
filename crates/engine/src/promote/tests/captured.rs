//! Over a workspace that was really captured: a git repository with ignored folders, which are read live, and a secret.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use jiff::Timestamp;
use model::SandboxId;
use model::mask::Masks;
use tempfile::TempDir;

use super::super::{apply, undo};
use super::{Wish, actions, assert_same, assessed, conflicts, is_root, reality};
use crate::capture::{Captures, FROZEN_ROOT, Frozen, Live};
use crate::diff::tests::plan_of;
use crate::diff::{self, Comparison};
use crate::launcher::Rights;
use crate::view::{Lower, Meta, Part};

struct Captured {
    dir: TempDir,
    frozen: Frozen,
    since: Timestamp,
}

impl Captured {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["upper/0", "scratch", "mount", "work"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        shell(
            &dir.path().join("work"),
            "git init -q .; printf 'node_modules/\\n*.log\\n.env\\n' > .gitignore; mkdir -p src conf web/node_modules/left; \
             echo 'fn main() {}' > src/main.rs; echo key > conf/key; echo index > web/index.js; git add .; \
             git -c user.name=z -c user.email=z@localhost commit -qm first; echo secret > conf/.env; \
             echo left > web/node_modules/left/index.js; echo note > small.log",
        );
        let live = if is_root() { Live::Redirect } else { Live::Stubs };
        let captures = Captures::open(&dir.path().join("store"), live, Masks::built_in().workspace).unwrap();
        let frozen =
            captures.freeze(&dir.path().join("work"), SandboxId::from_bits(1), &[], &|_| ()).unwrap();
        Self { dir, frozen, since: Timestamp::now() }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.frozen.workspace.join(path)
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("promotions/prtest")
    }

    fn live(&self) -> Option<PathBuf> {
        self.frozen.parts[0].live.clone()
    }

    /// Something happens in the sandbox.
    #[track_caller]
    fn inside(&self, script: &str) {
        let mut lowers: Vec<_> =
            self.frozen.parts[0].layers.iter().map(|layer| layer.display().to_string()).collect();
        let live = self.live().map(|live| live.display().to_string());
        let lowers = match live {
            Some(live) if !is_root() => format!("{}::{live}", lowers.join(":")),
            live => {
                lowers.extend(live);
                lowers.join(":")
            }
        };
        let (flavour, flags) = if is_root() { ("redirect_dir=on", "-m") } else { ("userxattr", "-Urm") };
        let dir = self.dir.path().display();
        let script = format!(
            "set -e; mount -t overlay zeno -o lowerdir={lowers},upperdir={dir}/upper/0,workdir={dir}/scratch,{flavour} \
             {dir}/mount; cd {dir}/mount/{FROZEN_ROOT}\n{script}"
        );
        let output = Command::new("unshare").args([flags, "sh", "-c", &script]).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn comparison(&self) -> Comparison {
        let frozen = &self.frozen.parts[0];
        let store = |layer: &PathBuf| Lower::Store(layer.strip_prefix(self.dir.path()).unwrap().to_owned());
        let mut lowers: Vec<_> = frozen.layers.iter().map(store).collect();
        let live = self.live().map(|mount| Lower::Machine { mount, inside: PathBuf::new() });
        let data = if is_root() {
            lowers.extend(live);
            None
        } else {
            live
        };
        let part = Part {
            name: "0".to_owned(),
            mountpoint: frozen.mountpoint.clone(),
            lowers,
            data,
            inner: Some(FROZEN_ROOT.to_owned()),
            top: Meta::of(&fs::metadata(&frozen.mountpoint).unwrap()),
            optional: false,
        };
        let plan = plan_of(part);
        diff::compare(&diff::Ask {
            home: self.dir.path(),
            upper: Some(&self.dir.path().join("upper")),
            layers: &[],
            plan: &plan,
            workspace: Some(&self.frozen.workspace),
            rights: Rights::of_this_process(),
            paths: &[],
        })
        .unwrap()
    }

    fn wish(&self, paths: &[&str]) -> Wish {
        let masked = self.frozen.masked.iter().map(|masked| masked.path.as_os_str().into()).collect();
        let paths = paths.iter().map(|path| self.file(path)).collect();
        Wish { masked, paths, since: self.since, ..Wish::default() }
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        // As in the beds of the diff.
        if let Err(error) = crate::remove::tree(self.dir.path()) {
            println!("{} stays: {error}", self.dir.path().display());
        }
    }
}

fn shell(folder: &std::path::Path, script: &str) {
    assert!(Command::new("sh").args(["-ec", script]).current_dir(folder).status().unwrap().success());
}

#[test]
fn the_work_arrives_and_nothing_else() {
    let captured = Captured::new();
    let before = reality(&captured.frozen.workspace);
    captured.inside(
        "echo changed > src/main.rs; echo new > src/lib.rs; git -c user.name=z -c user.email=z@localhost commit -qam second; \
         echo x > web/node_modules/left/index.js; echo x > new.log; echo mine > conf/.env; rm web/index.js",
    );
    let (comparison, wish) = (captured.comparison(), captured.wish(&[]));
    let assessed = assessed(&comparison, &wish).unwrap();
    assert_eq!(actions(&assessed.report), ["- web/index.js", "+ src/lib.rs", "~ src/main.rs"]);
    let left_out = &assessed.report.left_out;
    assert_eq!((left_out.ignored, left_out.masked.len(), left_out.git.len()), (2, 1, 1));
    apply(&assessed, &captured.folder(), &mut |_| {}).unwrap();
    assert_eq!(fs::read_to_string(captured.file("conf/.env")).unwrap(), "secret\n");
    let status = Command::new("git")
        .args(["status", "--porcelain"])
        .current_dir(&captured.frozen.workspace)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&status.stdout), " M src/main.rs\n D web/index.js\n?? src/lib.rs\n");
    undo(&captured.folder(), &[], &mut |_| {}).unwrap();
    let mut after = reality(&captured.frozen.workspace);
    // Git has looked, and noted what it saw.
    let mut before = before;
    for tree in [&mut before, &mut after] {
        tree.retain(|path, _| !path.starts_with(b".git/") && path != b".git");
    }
    assert_same(&after, &before);
}

#[test]
fn a_folder_goes_with_what_git_ignores_in_it() {
    let captured = Captured::new();
    let before = reality(&captured.frozen.workspace);
    captured.inside("rm -r web");
    let (comparison, wish) = (captured.comparison(), captured.wish(&[]));
    let assessed = assessed(&comparison, &wish).unwrap();
    assert_eq!(actions(&assessed.report).len(), 5, "{:?}", assessed.report);
    apply(&assessed, &captured.folder(), &mut |_| {}).unwrap();
    assert!(!captured.file("web").exists());
    undo(&captured.folder(), &[], &mut |_| {}).unwrap();
    assert_same(&reality(&captured.frozen.workspace), &before);
}

#[test]
fn a_folder_with_a_secret_does_not_go() {
    let captured = Captured::new();
    captured.inside("rm -r conf");
    let (comparison, wish) = (captured.comparison(), captured.wish(&[]));
    let report = assessed(&comparison, &wish).unwrap().report;
    assert_eq!(conflicts(&report), ["conf/.env: FolderHoldsMore, Delete and Create"]);
}

#[test]
fn an_ignored_file_is_promoted_by_name_unless_reality_changed_it() {
    let captured = Captured::new();
    let index = "web/node_modules/left/index.js";
    captured.inside(&format!("echo x > {index}; mv src moved"));
    let (comparison, wish) = (captured.comparison(), captured.wish(&["web/node_modules"]));
    let report = assessed(&comparison, &wish).unwrap().report;
    assert_eq!((actions(&report), report.left_out.unnamed), (vec![format!("~ {index}")], 4));
    shell(&captured.frozen.workspace, &format!("echo y > {index}"));
    let report = assessed(&comparison, &wish).unwrap().report;
    assert_eq!(conflicts(&report), [format!("{index}: MovedOn, Edit and Something")]);
}
