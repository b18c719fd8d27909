//! What a mask hides is hidden: it is no change, whatever the sandbox does beside it, and the real thing stays as it is.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::files::listing;
use crate::home::Home;
use crate::yard::git;

fn put(folder: &Path, names: &[&str], text: &str) {
    for name in names {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// What changed and how, without the folder above.
fn changes(home: &Home) -> Vec<String> {
    let diff = home.json(&["diff", "box"]);
    let both = ["workspace", "machine"].into_iter().flat_map(|part| diff[part].as_array().unwrap().clone());
    let yard = format!("{}/", home.yard().display());
    let told = |change: Value| {
        let word = |name: &str| change[name].as_str().unwrap().to_owned();
        format!("{} {}", word("kind"), word("path").replace(&yard, "~/"))
    };
    let mut changes: Vec<_> = both.map(told).collect();
    changes.sort();
    changes
}

#[test]
fn what_is_masked_is_no_change() {
    let home = Home::new();
    let (yard, work) = (home.yard(), home.yard().join("work"));
    put(&yard, &[".netrc", ".aws/credentials", ".config/gh/hosts.yml", ".docker/config.json"], "SENTINEL\n");
    put(&work, &[".env", "web/.env.local", "dist/.env"], "SENTINEL\n");
    put(&yard, &[".config/shown", ".docker/shown"], "shown\n");
    put(&work, &["README", ".env.example", "web/index.js", "dist/app.js"], "shown\n");
    fs::write(work.join(".gitignore"), "dist\n").unwrap();
    git(&work, &["init", "-q"]);
    git(&work, &["add", ".gitignore", "README", ".env.example", "web/index.js"]);
    git(&work, &["commit", "-qm", "first"]);
    let real = listing(&yard);
    home.create_in("box", &work);
    let exec = |line: &str| {
        let ran = home.exec("box", &format!("set -e; cd {}; {line}", yard.display()));
        assert_eq!(ran.code, 0, "{ran}");
        ran.out()
    };
    assert_eq!(exec("grep -rs SENTINEL . || true"), "");
    assert_eq!(changes(&home), [""; 0]);

    // In its place: the sandbox's own file is a change, and gone again it is none.
    exec("echo mine > work/.env; echo mine > .netrc");
    assert_eq!(changes(&home), ["added .env", "added ~/.netrc"]);
    exec("rm work/.env .netrc");
    assert_eq!(changes(&home), [""; 0]);

    // Beside what is masked, in the same folders.
    exec(
        "echo x > work/web/new; echo x >> work/.env.example; rm work/dist/app.js; echo x > .config/new; rm .docker/shown",
    );
    let beside = [
        "added web/new",
        "added ~/.config/new",
        "deleted dist/app.js",
        "deleted ~/.docker/shown",
        "modified .env.example",
    ];
    assert_eq!(changes(&home), beside);

    // The folders themselves: what was never seen in them was not removed.
    exec("rm -rf work/web work/dist .config .docker");
    let removed = [
        "deleted dist",
        "deleted dist/app.js",
        "deleted web",
        "deleted web/index.js",
        "deleted ~/.config",
        "deleted ~/.config/shown",
        "deleted ~/.docker",
        "deleted ~/.docker/shown",
        "modified .env.example",
    ];
    assert_eq!(changes(&home), removed);
    let patch = home.ok(&["diff", "box", "--patch"]);
    assert!(
        patch.contains("-shown") && !patch.contains("SENTINEL") && !patch.contains(".env.local"),
        "{patch}"
    );
    assert_eq!(listing(&yard), real, "nothing of it is real");
}

/// The home as the workspace: what is masked at a fixed path is hidden there, too, even if git tracks it.
#[test]
fn what_is_masked_in_the_workspace_is_no_change_and_never_promoted() {
    let home = Home::new();
    let yard = home.yard();
    put(&yard, &[".netrc", ".aws/credentials", ".config/gh/hosts.yml"], "SENTINEL\n");
    put(&yard, &[".config/shown", "notes", "cache/shown"], "shown\n");
    put(&yard, &[".gitignore"], "/cache\n");
    git(&yard, &["init", "-q"]);
    git(&yard, &["add", ".netrc", ".config", "notes", ".gitignore"]);
    git(&yard, &["commit", "-qm", "first"]);
    let real = listing(&yard);
    home.create_in("box", &yard);
    let exec = |line: &str| {
        let ran = home.exec("box", &format!("set -e; cd {}; {line}", yard.display()));
        assert_eq!(ran.code, 0, "{ran}");
        ran.out()
    };
    assert_eq!(exec("grep -rs SENTINEL . --exclude-dir=.git || true"), "");
    assert_eq!(changes(&home), [""; 0]);
    exec(
        "echo mine > .netrc; mkdir .ssh; echo mine > .ssh/authorized_keys; echo more >> notes; echo x > .config/new",
    );
    let made =
        ["added .config/new", "added .netrc", "added .ssh", "added .ssh/authorized_keys", "modified notes"];
    assert_eq!(changes(&home), made);
    assert_eq!(listing(&yard), real, "nothing of it is real");

    let told = home.json(&["promote", "box"]);
    let masked = told["assessment"]["left_out"]["masked"].as_array().unwrap();
    assert_eq!(masked.len(), 3, "{told}");
    assert_eq!(fs::read_to_string(yard.join("notes")).unwrap(), "shown\nmore\n");
    assert_eq!(fs::read_to_string(yard.join(".config/new")).unwrap(), "x\n");
    assert_eq!(fs::read_to_string(yard.join(".netrc")).unwrap(), "SENTINEL\n");
    assert!(!yard.join(".ssh").exists());
    home.ok(&["undo"]);
    assert_eq!(listing(&yard), real);

    // A folder that goes takes nothing along that was never seen in it.
    exec("rm -rf .config .ssh .netrc");
    assert!(changes(&home).contains(&"deleted .config/shown".to_owned()));
    let patch = home.ok(&["diff", "box", "--patch"]);
    assert!(patch.contains("-shown") && !patch.contains("SENTINEL"), "{patch}");
    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(fs::read_to_string(yard.join(".config/gh/hosts.yml")).unwrap(), "SENTINEL\n", "{refused}");
    // What moved on and is hidden is not out of date inside.
    fs::write(yard.join(".netrc"), "SENTINEL again\n").unwrap();
    let status = home.json(&["status", "box"]);
    let behind = status["freshness"]["behind"].as_array().unwrap();
    assert!(!behind.iter().any(|path| path == ".netrc"), "{status}");
    // It comes along into the present as it is.
    home.ok(&["refresh", "box"]);
    assert_eq!(exec("grep -rs SENTINEL . --exclude-dir=.git || true"), "");
}
