//! What a sandbox changed, brought into the real folder and taken back.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::files::listing;
use crate::home::{Home, Ran, finish};
use crate::wait::until;
use crate::yard::{Yard, git};

#[test]
fn what_was_done_inside_is_done_outside_and_undone() {
    let home = Home::new();
    let yard = yard(&home);
    let before = listing(&yard.path);
    home.exec("box", "echo more >> README; rm src/gone; mkdir -p new/deep; echo x > new/deep/file; chmod 755 run; ln -s README link");
    let told = home.ok(&["promote", "box", "--dry-run"]);
    assert!(told.contains("  delete  src/gone\n") && told.contains("  create  new/deep/file\n"), "{told}");
    assert_eq!(listing(&yard.path), before, "a dry run does nothing");

    let done: Value = home.json(&["promote", "box"]);
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(fs::read_to_string(yard.path.join("README")).unwrap(), "readme\nmore\n");
    assert_eq!(fs::read_to_string(yard.path.join("new/deep/file")).unwrap(), "x\n");
    assert!(!yard.path.join("src/gone").exists());
    assert_eq!(fs::read_link(yard.path.join("link")).unwrap(), PathBuf::from("README"));
    // The same again is nothing.
    assert_eq!(home.json(&["promote", "box"])["status"], "planned");

    let id = done["promotion"]["id"].as_str().unwrap();
    assert!(home.ok(&["promotions"]).contains(id));
    home.ok(&["undo"]);
    assert_eq!(listing(&yard.path), before, "to the byte, mode and time");
    assert_eq!(home.zeno(&["undo"]).code, 6, "there is nothing left to undo");
    assert_eq!(home.json(&["promotions"])[0]["state"], "undone");
    let events = home.ok(&["events", "--json"]);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told: Vec<_> =
        events.filter(|event| event["subject"] == id).map(|event| event["type"].clone()).collect();
    assert_eq!(told, ["dev.zeno.promotion.promoted", "dev.zeno.promotion.undone"]);
}

#[test]
fn what_was_displaced_is_kept_until_it_is_taken_back() {
    let home = Home::new();
    yard(&home);
    home.exec("box", "head -c 100000 /dev/zero > README; rm lines");
    let id = home.json(&["promote", "box"])["promotion"]["id"].as_str().unwrap().to_owned();
    let folder = home.path().join("promotions").join(&id);
    home.ok(&["gc"]);
    home.ok(&["undo"]);
    assert!(folder.exists());
    let found: Value = home.json(&["gc", "--dry-run"]);
    let item = found["items"].as_array().unwrap().iter().find(|item| item["name"] == id.as_str());
    assert_eq!(item.map(|item| &item["kind"]), Some(&Value::from("promotion")), "{found}");
    assert!(folder.exists());
    home.ok(&["gc"]);
    assert!(!folder.exists());
    assert_eq!(home.json(&["promotions"])[0]["state"], "undone", "it is still known");
    assert_eq!(home.zeno(&["undo", &id]).code, 6);
    home.crash();
    assert_eq!(
        home.json(&["promotions"])[0]["state"],
        "undone",
        "and the next daemon takes it for nothing else"
    );
}

#[test]
fn both_sides_changed() {
    let home = Home::new();
    let yard = yard(&home);
    home.exec("box", "sed -i 's/^one/ONE/' lines; echo inside > README; echo run > .envrc");
    fs::write(yard.path.join("lines"), LINES.replace("five", "FIVE")).unwrap();
    fs::write(yard.path.join("README"), "outside\n").unwrap();
    let before = listing(&yard.path);

    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(refused.code, 5, "{refused}");
    assert!(
        refused.out().contains("conflict README\n") && refused.out().contains("executes .envrc"),
        "{refused}"
    );
    let decided = ["promote", "box", "--on-conflict", "README=theirs"];
    let refused = home.zeno(&decided);
    assert_eq!(refused.code, 4, "what executes by itself is still not allowed: {refused}");
    assert_eq!(listing(&yard.path), before, "nothing was changed");

    home.ok(&[&decided[..], &["--allow-executes"]].concat());
    let lines = fs::read_to_string(yard.path.join("lines")).unwrap();
    assert_eq!(lines, LINES.replace("five", "FIVE").replace("one", "ONE"), "merged");
    // What let more through than by itself is on record, with who said it.
    let record = &home.json(&["promotions"])[0];
    assert_eq!((&record["actor"], &record["allowed_executes"]), (&json!("agt"), &json!(true)), "{record}");
    let decisions = json!({ "otherwise": "abort", "paths": { "README": "theirs" } });
    assert_eq!((&record["resolutions"], &record["forced"]), (&decisions, &Value::Null), "{record}");
    let listed = home.ok(&["promotions"]);
    assert!(
        listed.contains("an agent")
            && listed.contains(", with --allow-executes --on-conflict README=theirs\n"),
        "{listed}"
    );
    assert_eq!(fs::read_to_string(yard.path.join("README")).unwrap(), "outside\n");

    // What has changed since is not overwritten by taking it back.
    fs::write(yard.path.join("lines"), "edited since\n").unwrap();
    let ran = home.zeno(&["undo"]);
    assert_eq!(ran.code, 5, "{ran}");
    assert!(ran.err().contains("lines"), "{ran}");
    home.ok(&["undo", "--leave", yard.path.join("lines").to_str().unwrap()]);
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), "edited since\n");
    assert!(!yard.path.join(".envrc").exists());
}

/// Whoever has to decide sees what both sides have, and how to see what is too long to be shown.
#[test]
fn a_conflict_is_told_with_the_lines_of_both_sides() {
    let home = Home::new();
    let yard = yard(&home);
    home.exec(
        "box",
        "sed -i 's/^two/TWO/; s/^six/SIX/' lines; printf 'a\\0b' > run; rm src/gone; seq 1 70 > README; echo inside > new",
    );
    fs::write(yard.path.join("lines"), format!("zero\n{}", LINES.replace("two", "2"))).unwrap();
    fs::write(yard.path.join("run"), "RUN\n").unwrap();
    fs::write(yard.path.join("src/gone"), "here\n").unwrap();
    fs::write(yard.path.join("README"), "outside\n").unwrap();
    fs::write(yard.path.join("new"), "outside\n").unwrap();
    let before = listing(&yard.path);
    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(refused.code, 5, "{refused}");
    let clash = "conflict lines
  both changed the same lines, or it is not text
  the sandbox edited it, reality edited it
  <<<<<<< the sandbox: line 2
  TWO
  ||||||| before: line 2
  two
  =======
  2
  >>>>>>> reality: line 3
conflict new
  both created it, differently
  the sandbox created it, reality created it
  <<<<<<< the sandbox: line 1
  inside
  =======
  outside
  >>>>>>> reality: line 1
conflict run
  both changed the same lines, or it is not text
  the sandbox edited it, reality edited it
  the sandbox has a file of 3 B, mode ";
    assert!(refused.out().contains(clash), "{refused}");
    let path = yard.path.join("README");
    let path = path.display();
    let more = format!(
        "  ... 50 more lines
  ||||||| before: line 1
  readme
  =======
  outside
  >>>>>>> reality: line 1
  50 more lines in conflict, not shown here
  try: the sandbox's: zeno diff box --patch -- {path}; reality's: {path} itself
"
    );
    assert!(refused.out().contains(&more), "{refused}");
    // The way to see them is one.
    assert!(home.ok(&["diff", "box", "--patch", "--", &path.to_string()]).contains("\n+70\n"));

    let told = home.zeno(&["promote", "box", "--json"]);
    assert_eq!(told.code, 5, "{told}");
    let told: Value = serde_json::from_str(&told.out()).unwrap();
    let conflicts = told["assessment"]["conflicts"].as_array().unwrap();
    let of = |path: &str| conflicts.iter().find(|conflict| conflict["path"] == path).unwrap();
    let hunk = json!({
        "before": { "first": 2, "count": 1, "lines": ["two\n"] },
        "ours": { "first": 2, "count": 1, "lines": ["TWO\n"] },
        "theirs": { "first": 3, "count": 1, "lines": ["2\n"] },
    });
    assert_eq!(of("lines")["hunks"], json!([hunk]), "{told}");
    let gone = json!({
        "before": { "first": 1, "count": 1, "lines": ["gone\n"] },
        "theirs": { "first": 1, "count": 1, "lines": ["here\n"] },
    });
    assert_eq!(of("src/gone")["hunks"], json!([gone]), "{told}");
    assert_eq!((&of("README")["more_lines"], &of("run")["hunks"]), (&json!(50), &Value::Null), "{told}");
    assert_eq!(listing(&yard.path), before, "nothing was changed");
}

#[test]
fn only_what_passed_its_checks_goes_through() {
    let home = Home::new();
    let yard = yard(&home);
    fs::write(yard.path.join("zeno.yaml"), "checks:\n  - name: good\n    run: grep -q good README\n")
        .unwrap();
    home.ok(&["refresh", "box"]);
    let refused = |ran: Ran, why: &str| {
        assert_eq!(ran.code, 4, "{ran}");
        assert!(ran.err().contains(why), "{ran}");
        assert_eq!(fs::read_to_string(yard.path.join("README")).unwrap(), "readme\n");
    };
    home.exec("box", "echo bad > README");
    refused(home.zeno(&["promote", "box"]), "its checks have not been run");
    assert_eq!(home.zeno(&["verify", "box"]).code, 1);
    refused(home.zeno(&["promote", "box"]), "it did not pass `good`");
    home.exec("box", "echo good > README");
    refused(home.zeno(&["promote", "box"]), "has changed since they were run");
    assert_eq!(home.zeno(&["verify", "box"]).code, 0);
    home.exec("box", "echo other > other");
    refused(home.zeno(&["promote", "box"]), "has changed since they were run");
    refused(home.zeno(&["promote", "box", "--check", "false"]), "it did not pass `check-1`");

    assert_eq!(home.zeno(&["verify", "box"]).code, 0);
    let done: Value = home.json(&["promote", "box"]);
    assert_eq!(done["status"], "done", "{done}");
    assert!(done["promotion"]["verdict"].is_string(), "{done}");
    home.ok(&["undo"]);

    home.exec("box", "echo bad > README");
    let forced: Value = home.json(&["promote", "box", "--force"]);
    assert_eq!(forced["promotion"]["forced"], true, "{forced}");
}

#[test]
fn a_dry_run_says_what_the_gate_would_say() {
    let home = Home::new();
    let yard = yard(&home);
    fs::write(yard.path.join("zeno.yaml"), "checks: {good: grep -q good README}\n").unwrap();
    home.ok(&["refresh", "box"]);
    home.exec("box", "echo bad > README");
    let foretold = |more: &[&str], code: i32| {
        let ran = home.zeno(&[&["promote", "box", "--dry-run", "--json"], more].concat());
        assert_eq!(ran.code, code, "{ran}");
        let answer: Value = serde_json::from_str(&ran.out()).unwrap();
        assert_eq!(answer["status"], "planned", "{answer}");
        answer["gate"].clone()
    };
    let refused = |why: &str| {
        let told = home.zeno(&["promote", "box", "--dry-run"]);
        assert_eq!(told.code, 4, "{told}");
        assert!(told.out().contains("would refuse: ") && told.out().contains(why), "{told}");
        let real = home.zeno(&["promote", "box"]);
        assert_eq!((real.code, real.err().contains(why)), (4, true), "the real thing says the same: {real}");
    };
    let kept = || home.json(&["snapshots"]).as_array().unwrap().len();
    let before = kept();
    assert_eq!(foretold(&[], 4)["problem"]["code"], "refused");
    assert_eq!(kept(), before, "nothing is left of looking");
    refused("its checks have not been run");
    assert_eq!(home.zeno(&["verify", "box"]).code, 1);
    refused("it did not pass `good`");
    home.exec("box", "echo good > README");
    refused("has changed since they were run");
    let checks = |names: &[&str]| json!({"kind": "checks", "checks": names});
    assert_eq!(foretold(&["--check", "false"], 0), checks(&["good", "check-1"]));
    assert_eq!(foretold(&["--force"], 0), json!({"kind": "forced", "checks": ["good"]}));
    let judged = home.json(&["verify", "box"]);
    assert_eq!(foretold(&[], 0), json!({"kind": "open", "verdict": judged["id"]}));
    assert_eq!(home.json(&["verdicts"]).as_array().unwrap().len(), 2, "nothing was run");
    // Beside what changed here nobody has judged it.
    fs::write(yard.path.join("lines"), "").unwrap();
    assert_eq!(foretold(&[], 0), checks(&["good"]));
    let told = home.ok(&["promote", "box", "--dry-run"]);
    assert!(told.ends_with("would do, if it passes these checks first: good\n"), "{told}");
}

/// No file was changed on both sides, but together they are a tree that nobody has judged.
#[test]
fn what_changed_beside_it_counts_too() {
    let home = Home::new();
    let yard = yard(&home);
    let check = "test $(cat lines README | grep -c MARK) -le 1";
    fs::write(yard.path.join("zeno.yaml"), format!("checks:\n  - name: once\n    run: {check}\n")).unwrap();
    home.ok(&["refresh", "box"]);
    home.exec("box", "sed -i 's/^one/MARK/' lines; git -c user.name=a -c user.email=b commit -qam inside");
    assert_eq!(home.zeno(&["verify", "box"]).code, 0);
    let outside = |text: &str| fs::write(yard.path.join("README"), text).unwrap();
    outside("MARK\n");
    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err().contains("did not pass `once`"), "{refused}");
    outside("other\n");
    let done = home.json(&["promote", "box"]);
    assert_eq!(done["status"], "done", "{done}");
    assert_eq!(done["promotion"]["commits"].as_array().unwrap().len(), 1, "{done}");
}

/// The check waits until its state is allowed to be judged.
#[test]
fn what_changes_while_the_checks_run_is_judged_too() {
    let home = Home::new();
    let yard = yard(&home);
    let allowed = home.yard().join("allowed");
    fs::write(&allowed, "").unwrap();
    let check = "until grep -q \"<$(cat README)>\" ~/allowed; do sleep 0.1; done; \
                 test $(cat lines README | grep -c MARK) -le 1";
    home.exec("box", "sed -i s/one/MARK/ lines");
    let outside = |state: &str| fs::write(yard.path.join("README"), format!("{state}\n")).unwrap();
    // Each state is followed by the next while it is judged.
    let promote = |states: &[&str], judged: usize| {
        let before = checks_begun(&home);
        let promoting = home.command(&["promote", "box", "--json", "--check", check]).spawn().unwrap();
        for at in 0..judged {
            until("a check of this state", || (checks_begun(&home) > before + at).then_some(()));
            states.get(at + 1).copied().map(outside).unwrap_or_default();
            // In place: the sandbox reads this file live, and another one of this name it might not see.
            let all: String = states[..=at].iter().map(|state| format!("<{state}>\n")).collect();
            fs::write(&allowed, all).unwrap();
        }
        finish(promoting, b"")
    };
    let refused = promote(&["readme", "MARK"], 2);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err().contains("together with what changed here"), "{refused}");
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), LINES);

    outside("begun");
    let done = promote(&["begun", "ended"], 2);
    assert_eq!(done.code, 0, "{done}");
    let answer: Value = serde_json::from_str(&done.out()).unwrap();
    let verdicts = home.json(&["verdicts"]);
    let last = verdicts.as_array().unwrap().last().unwrap();
    assert!(last["id"].is_string() && last["id"] == answer["promotion"]["verdict"], "{done}");
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), LINES.replace("one", "MARK"));
    home.ok(&["undo"]);

    // Somebody writes all the time.
    outside("1");
    let restless = promote(&["1", "2", "3", "4"], 3);
    assert_eq!(restless.code, 5, "{restless}");
    assert!(restless.err().contains("3 times something changed here"), "{restless}");
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), LINES);
}

/// A log that is written to, or a build that runs, keeps nobody from promoting.
#[test]
fn what_git_ignores_may_change_while_the_checks_run() {
    let home = Home::new();
    let yard = yard(&home);
    let allowed = home.yard().join("allowed");
    fs::write(&allowed, "").unwrap();
    yard.script(
        "printf '*.log\n/target/\n' > .gitignore; mkdir target; echo x > target/x; echo x > server.log",
    );
    home.ok(&["refresh", "box"]);
    home.exec("box", "sed -i s/one/ONE/ lines");
    let write = |text: &str| {
        yard.script(&format!("echo {text} > target/x; echo {text} >> server.log; touch target/{text}"))
    };
    write("before");
    assert_eq!(home.json(&["status", "box"])["freshness"]["behind_total"], 0);
    let before = checks_begun(&home);
    let check = "until grep -q go ~/allowed; do sleep 0.1; done";
    let promoting = home.command(&["promote", "box", "--check", check]).spawn().unwrap();
    until("the check", || (checks_begun(&home) > before).then_some(()));
    write("meanwhile");
    fs::write(&allowed, "go\n").unwrap();
    let done = finish(promoting, b"");
    assert_eq!((done.code, checks_begun(&home)), (0, before + 1), "{done}");
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), LINES.replace("one", "ONE"));
}

/// How many states were given to a check so far.
fn checks_begun(home: &Home) -> usize {
    let verdicts = fs::read_dir(home.path().join("verdicts")).into_iter().flatten();
    verdicts.filter(|verdict| verdict.as_ref().unwrap().path().join("check-1.log").exists()).count()
}

#[test]
fn a_verdict_says_what_of_its_state_stays_behind() {
    let home = Home::new();
    let yard = yard(&home);
    yard.script("echo '*.tmp' > .gitignore");
    fs::write(yard.path.join("zeno.yaml"), "checks: {relies: test -e a.tmp}\n").unwrap();
    home.ok(&["refresh", "box"]);
    home.exec("box", "echo more >> README; echo x > a.tmp; echo x > b.tmp");
    let judged = home.json(&["verify", "box"]);
    let told = "ran with 2 ignored changes that stay behind";
    let caveat = format!("the checks of {} {told}", judged["id"].as_str().unwrap());
    let dry = home.ok(&["promote", "box", "--dry-run"]);
    assert_eq!(dry.lines().filter(|line| *line == format!("caveat: {caveat}")).count(), 1, "{dry}");
    let done = home.json(&["promote", "box"]);
    assert_eq!(done["assessment"]["caveats"], json!([{"kind": "verdict", "text": caveat}]), "{done}");
    home.ok(&["undo"]);
    // The same of what is judged only now.
    fs::write(yard.path.join("lines"), "").unwrap();
    let done = home.ok(&["promote", "box"]);
    assert!(done.contains(told), "{done}");
    home.ok(&["undo"]);
    // Where nothing was judged there is nothing to say.
    let forced = home.ok(&["promote", "box", "--force"]);
    assert!(!forced.contains("caveat: the checks"), "{forced}");
}

/// A part, or a merge, is a tree that nobody has judged: it is made, judged, and exactly that is promoted.
#[test]
fn what_would_come_of_it_is_judged_before_it_is_real() {
    let home = Home::new();
    let yard = yard(&home);
    // Either side may name it in one place; in both it is too much.
    let check = "test $(cat lines other 2>/dev/null | grep -c MARK) -le 1";
    fs::write(yard.path.join("zeno.yaml"), format!("checks:\n  - name: once\n    run: {check}\n")).unwrap();
    home.exec("box", "sed -i 's/^one/MARK/' lines; echo part > other");
    assert_eq!(home.zeno(&["verify", "box"]).code, 0, "alone the sandbox passes");
    fs::write(yard.path.join("lines"), LINES.replace("six", "MARK")).unwrap();
    assert!(home.run(&[], check).code == 0, "alone reality passes");
    let before = listing(&yard.path);
    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(
        refused.err().contains("together with what changed here") && refused.err().contains("`once`"),
        "{refused}"
    );
    assert_eq!(listing(&yard.path), before, "nothing was changed");
    // What was judged can be looked at.
    let preview = refused.err().split_whitespace().find(|word| word.starts_with("sn")).unwrap().to_owned();
    home.ok(&["restore", &preview, "--name", "preview"]);
    assert_eq!(home.exec("preview", "grep -c MARK lines").out(), "2\n");

    // A part of it passes, without a word from anybody.
    let part = yard.path.join("other");
    let done = home.json(&["promote", "box", "--paths", part.to_str().unwrap()]);
    assert_eq!(done["status"], "done", "{done}");
    assert!(done["promotion"]["verdict"].is_string(), "{done}");
    assert_eq!(fs::read_to_string(&part).unwrap(), "part\n");
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), LINES.replace("six", "MARK"));

    // And so does a merge.
    fs::write(yard.path.join("lines"), LINES.replace("six", "SIX")).unwrap();
    let done = home.json(&["promote", "box"]);
    assert_eq!(done["status"], "done", "{done}");
    let merged = LINES.replace("six", "SIX").replace("one", "MARK");
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), merged);
    home.ok(&["undo"]);
    assert_eq!(fs::read_to_string(yard.path.join("lines")).unwrap(), LINES.replace("six", "SIX"));
}

/// Its hooks and settings would run at the next git command.
#[test]
fn the_git_folder_of_another_repository_is_never_promoted() {
    let home = Home::new();
    let other = home.yard().join("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    let before = listing(&other.join(".git"));
    home.create("box", &[]);
    let script =
        "echo x > file; echo x > .git/hooks/pre-commit; printf '[core]\nfsmonitor = x\n' >> .git/config";
    let ran = home.exec("box", &format!("cd {} && {script}", other.display()));
    assert_eq!(ran.code, 0, "{ran}");

    // Not even where nothing else is named.
    let hook = other.join(".git/hooks/pre-commit");
    let planned: Value = home.json(&["promote", "box", "--paths", hook.to_str().unwrap()]);
    assert_eq!(planned["status"], "planned", "{planned}");
    let told = home.ok(&["promote", "box", "--paths", other.to_str().unwrap()]);
    assert!(told.contains("other/.git` is git's own and is never promoted"), "{told}");
    assert!(told.contains("1 of git's own"), "{told}");
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "x\n");
    assert_eq!(listing(&other.join(".git")), before);
}

#[test]
fn hooks_are_asked_about_wherever_git_looks_for_them() {
    let home = Home::new();
    let yard = yard(&home);
    yard.script("git config core.hooksPath tools/hooks");
    home.exec("box", "git init -q sub; echo x > sub/.git/hooks/pre-commit; echo x > sub/file; mkdir .GIT; echo x > .GIT/config");
    home.exec("box", "mkdir -p tools/hooks; echo x > tools/hooks/pre-commit; echo x > tools/file");
    let refused = home.zeno(&["promote", "box"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.out().contains("executes tools/hooks/pre-commit: git hooks"), "{refused}");
    assert_eq!(refused.out().matches("executes ").count(), 1, "{refused}");
    home.ok(&["promote", "box", "--allow-executes"]);
    let is_there = |path: &str| yard.path.join(path).exists();
    let paths = ["tools/hooks/pre-commit", "tools/file", "sub/file", "sub/.git", ".GIT"];
    assert_eq!(paths.map(is_there), [true, true, true, false, false]);
}

/// What was changed here before the fork was made, and after what it comes from, it never saw.
#[test]
fn a_fork_relies_on_the_machine_since_what_it_comes_from_was_made() {
    let home = Home::new();
    let notes = home.yard().join("notes");
    fs::write(&notes, "before\n").unwrap();
    home.create("box", &[]);
    home.exec("box", &format!("echo inside > {}", notes.display()));
    home.ok(&["snapshot", "box", "--name", "saved"]);
    let promote = |name: &str| home.zeno(&["promote", name, "--paths", notes.to_str().unwrap(), "--dry-run"]);
    home.ok(&["fork", "box", "--name", "early"]);
    assert!(promote("early").out().contains("  modify  "), "nothing stands in the way: {}", promote("early"));

    fs::write(&notes, "outside\n").unwrap();
    home.ok(&["fork", "box", "--name", "fork"]);
    home.ok(&["fork", "fork", "--name", "second"]);
    home.ok(&["restore", "saved", "--name", "restored"]);
    home.exec("early", "echo more > /var/tmp/zeno-more");
    home.ok(&["rollback", "early", "saved"]);
    for name in ["box", "early", "fork", "second", "restored"] {
        assert!(promote(name).out().contains("conflict "), "{name}: {}", promote(name));
    }
    let refused = home.zeno(&["promote", "second", "--paths", notes.to_str().unwrap()]);
    assert_eq!(refused.code, 5, "{refused}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "outside\n");
}

const LINES: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";

fn yard(home: &Home) -> Yard {
    let script = format!(
        "mkdir src; echo readme > README; echo gone > src/gone; printf '{LINES}' > lines; echo run > run"
    );
    Yard::new(home, &script)
}
