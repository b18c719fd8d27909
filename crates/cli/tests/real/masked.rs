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
