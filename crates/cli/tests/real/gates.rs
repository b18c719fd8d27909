//! The gate has no way round it: whatever a sandbox was made of, and whatever it changed besides.

use std::fs;

use serde_json::{Value, json};

use crate::files::listing;
use crate::home::{Home, finish};
use crate::yard::{Yard, git};

#[test]
fn a_worktree_is_asked_whatever_the_sandbox_was_made_of() {
    let home = Home::new();
    let yard = yard(&home);
    let inner = yard.path.join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    let (file, source) = (yard.path.join("src/file"), yard.path.join("src"));
    let (file, source) = (file.to_str().unwrap(), source.to_str().unwrap());
    home.create("none", &[]);
    home.ok(&["create", "--workspace", source, "--name", "below"]);
    home.ok(&["refresh", "box"]);
    home.exec("none", &format!("echo better > {file}"));
    home.exec("below", &format!("echo better > {file}"));
    home.exec("box", "echo better > inner/file");
    let ways: [(&[&str], &str); 3] =
        [(&["none", "--paths", file], "src/file"), (&["below"], "src/file"), (&["box"], "inner/file")];
    let before = listing(&yard.path);
    let promote = |way: &[&str], options: &[&str]| home.zeno(&[&["promote"], way, options].concat());
    let approval = "promotion: {stages: [{name: local, approval: human}]}\n";
    for (config, asks) in
        [("checks: {never: 'false'}\n", "asks that `never` pass"), (approval, "asks that a person agrees")]
    {
        for (way, path) in ways {
            let root = if path.starts_with("inner") { &inner } else { &yard.path };
            let declares = root.join("zeno.yaml");
            fs::write(&declares, config).unwrap();
            let refused = promote(way, &[]);
            let remedy = format!("try: make the sandbox there: zeno create --workspace {}\n", root.display());
            assert_eq!(refused.code, 4, "{refused}");
            let said = refused.err();
            assert!(said.contains(asks) && said.contains(path) && said.contains(&remedy), "{refused}");
            let dry = promote(way, &["--dry-run", "--json"]);
            let foretold: Value = serde_json::from_str(&dry.out()).unwrap();
            assert_eq!((dry.code, &foretold["gate"]["kind"]), (4, &json!("closed")), "{dry}");
            fs::remove_file(&declares).unwrap();
        }
    }
    assert_eq!(listing(&yard.path), before, "nothing was changed");
    assert_eq!(home.json(&["promotions"]), json!([]));

    // Past it goes only who says so, which is recorded.
    fs::write(yard.path.join("zeno.yaml"), "checks: {never: 'false'}\n").unwrap();
    fs::write(inner.join("zeno.yaml"), "checks: {never: 'false'}\n").unwrap();
    for (way, _) in &ways[..2] {
        let foretold = promote(way, &["--force", "--dry-run", "--json"]);
        let foretold: Value = serde_json::from_str(&foretold.out()).unwrap();
        assert_eq!(foretold["gate"], json!({"kind": "forced", "checks": ["never"]}), "{foretold}");
        let done: Value = serde_json::from_str(&promote(way, &["--force", "--json"]).out()).unwrap();
        assert_eq!((&done["status"], &done["promotion"]["forced"]), (&json!("done"), &json!(true)), "{done}");
        home.ok(&["undo"]);
    }
    // Where nobody asks anything there is nothing to force.
    fs::remove_file(yard.path.join("zeno.yaml")).unwrap();
    let done: Value = serde_json::from_str(&promote(ways[1].0, &["--force", "--json"]).out()).unwrap();
    assert_eq!((&done["status"], &done["promotion"]["forced"]), (&json!("done"), &Value::Null), "{done}");
}

/// A program that a sandbox replaced, and that stays behind, must not be what its checks go by.
#[test]
fn what_stays_behind_on_the_machine_is_not_there_for_the_checks() {
    let home = Home::new();
    let tool = home.yard().join("tool");
    fs::write(&tool, "exit 1\n").unwrap();
    let yard = yard(&home);
    fs::write(yard.path.join("zeno.yaml"), "checks: {tool: 'sh ~/tool && test ! -e ~/other'}\n").unwrap();
    home.ok(&["refresh", "box"]);
    home.exec("box", "echo better > src/file; echo exit 0 > ~/tool");
    let judged = home.json(&["verify", "box"]);
    assert_eq!(judged["outcome"], "pass", "as it is, it passes: {judged}");
    let told = judged["caveats"][0]["text"].as_str().unwrap();
    assert!(told.contains("yard/tool` outside of the workspace"), "{judged}");
    assert_eq!(home.json(&["promote", "box", "--dry-run"])["gate"]["kind"], "checks", "that opens no gate");
    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err().contains("without what is left out, it did not pass `tool`"), "{refused}");
    assert_eq!(fs::read_to_string(yard.path.join("src/file")).unwrap(), "first\n");

    // What is named comes, so it is there for the checks; the rest is not.
    home.exec("box", "echo x > ~/other");
    let both = ["promote", "box", "--paths", "src", tool.to_str().unwrap(), "--json"];
    let promoted = finish(home.command(&both).current_dir(&yard.path).spawn().unwrap(), b"");
    let done: Value = serde_json::from_str(&promoted.out()).unwrap();
    let behind = &done["assessment"]["left_out"]["machine"];
    assert_eq!((&done["status"], behind), (&json!("done"), &json!(1)), "{promoted}");
    assert!(done["promotion"]["verdict"].is_string(), "{done}");
    assert_eq!(fs::read_to_string(&tool).unwrap(), "exit 0\n");
    assert!(!home.yard().join("other").exists());
}

#[test]
fn without_a_workspace_checks_see_what_is_named_too() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo x > ~/named; echo x > ~/other");
    let named = home.yard().join("named");
    let check = "test -e ~/named && test ! -e ~/other";
    let done = home.json(&["promote", "box", "--paths", named.to_str().unwrap(), "--check", check]);
    assert!(done["promotion"]["verdict"].is_string(), "{done}");
    assert_eq!((named.exists(), home.yard().join("other").exists()), (true, false));
}

fn yard(home: &Home) -> Yard {
    Yard::new(home, "mkdir src; echo first > src/file")
}
