//! Checks and verdicts: what they say, of which state, and for how long.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::home::{Home, Ran, finish};
use crate::wait::until;

#[test]
fn a_verdict_holds_while_nothing_changes_and_is_void_after_one_byte() {
    let home = Home::new();
    let yard =
        Yard::new(&home, "checks: {unit: grep -q good answer && mkdir -p cache && date +%N > cache/x}\n");
    let first = yard.verify("box", &[]);
    assert_eq!(
        (&first["outcome"], first["checks"][0]["runs"].as_array().unwrap().len()),
        (&json!("fail"), 2)
    );
    home.exec("box", "echo good > answer");
    let good = yard.verify("box", &[]);
    assert_eq!(good["outcome"], "pass");
    assert_ne!(good["digest"], first["digest"]);
    // The check wrote in a copy: neither the sandbox nor the verdict knows of it.
    assert_eq!(home.exec("box", "ls").out(), "answer\nzeno.yaml\n");
    let again = yard.verify("box", &[]);
    assert_eq!((&again["digest"], &again["snapshot"]), (&good["digest"], &good["snapshot"]));
    // What leaves no change leaves the state.
    home.exec("box", "touch answer; echo x > y; rm y; git status");
    assert_eq!(yard.verify("box", &[])["digest"], good["digest"]);
    home.exec("box", "printf 'goof\\n' > answer");
    assert_ne!(yard.verify("box", &[])["digest"], good["digest"]);
    home.exec("box", "printf 'good\\n' > answer");
    assert_eq!(yard.verify("box", &[])["digest"], good["digest"], "changed back");
    // A copy of the state is the state.
    home.ok(&["fork", "box", "--name", "copy"]);
    assert_eq!(yard.verify("copy", &[])["digest"], good["digest"]);
    home.exec("copy", "git commit -qam inside");
    assert_ne!(yard.verify("copy", &[])["digest"], good["digest"], "a commit is a change");
    let listed = home.json(&["verdicts", "box"]);
    assert_eq!(listed.as_array().unwrap().len(), 6);
    assert_eq!(listed[1], good);
    // Nothing is left of the copies the checks ran in.
    assert_eq!(home.ok(&["list", "-q"]).lines().count(), 2);
}

#[test]
fn every_way_in_which_nothing_is_found_out() {
    let home = Home::new();
    let yard = Yard::new(
        &home,
        "checks:
  build: 'true'
  unit: {run: exit 3, needs: [build]}
  after: {run: 'true', needs: [unit]}
  further: {run: 'true', needs: [after]}
  slow: {run: 'echo begun; sleep 60', timeout: 3s}
  missing: no-such-program --version
  three: {run: exit 3, expects: {exit: [3, 4]}}
  says: {run: 'echo 12 tests; echo oh >&2', expects: {stdout: {matches: '^\\d+ tests'}, stderr: {contains: oh}}}
  silent: {run: 'true', expects: {stdout: {contains: words}}}
",
    );
    let ran = yard.zeno(&["verify", "box"]);
    assert_eq!(ran.code, 1);
    insta::assert_snapshot!(without_times(&home.plain(&ran)), @"
    CHECK OUTCOME TIME WHY
    build pass TIME
    unit fail TIME exit code 3, expected exit code 0
    after inconclusive - `unit`, which it needs, did not pass
    further inconclusive - `after`, which it needs, did not pass
    slow inconclusive TIME it ran longer than it may
    missing inconclusive TIME it could not be run: a program was not found (exit code 127)
    three pass TIME
    says pass TIME
    silent fail TIME `words` does not stand on standard output

    last words of slow (LOG)
    begun

    last words of missing (LOG)
    /bin/sh: 1: no-such-program: not found

    fail: box, 3 of 9 checks passed in TIME
    state DIGEST sealed as ID
    [exit 1]
    ");
    let tails = home.json(&["verdicts"]);
    let slow = &tails[0]["checks"][4];
    assert_eq!((&slow["reason"]["kind"], &slow["tail"]), (&json!("timed-out"), &json!(["begun"])));
    let log = slow["runs"][0]["log"].as_str().unwrap();
    assert_eq!(fs::read_to_string(log).unwrap(), "begun\n");
}

#[test]
fn a_check_that_changes_its_mind_says_nothing() {
    let home = Home::new();
    // The two runs are in two copies, so that only what is outside of both can tell them apart.
    let yard = Yard::new(
        &home,
        "checks: {flaky: 'test $(cat /proc/sys/kernel/random/uuid | tr -dc 0-9 | head -c1) -lt 5'}\n",
    );
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..60 {
        let check = yard.verify("box", &[])["checks"][0].clone();
        let runs = check["runs"].as_array().unwrap();
        let codes: Vec<_> = runs.iter().map(|run| run["exit"]["code"].as_i64().unwrap()).collect();
        let expected = match codes.as_slice() {
            [0] => "pass",
            [1, 0] => "inconclusive",
            [1, 1] => "fail",
            other => panic!("{other:?}"),
        };
        assert_eq!(check["outcome"], expected);
        seen.insert(expected);
        if seen.len() == 3 {
            return;
        }
    }
    panic!("chance showed only {seen:?}");
}

#[test]
fn a_sandbox_cannot_choose_what_it_is_judged_by() {
    let home = Home::new();
    let yard = Yard::new(&home, "checks: {unit: grep -q good answer}\n");
    home.exec("box", "echo 'checks: {unit: \"true\"}' > zeno.yaml");
    let verdict = yard.verify("box", &[]);
    assert_eq!(
        (&verdict["outcome"], &verdict["checks"][0]["run"]),
        (&json!("fail"), &json!("grep -q good answer"))
    );
    assert_eq!(verdict["caveats"][0]["kind"], "checks");
    fs::write(yard.repository.join("zeno.yaml"), "checks: {other: 'true'}\n").unwrap();
    assert_eq!(yard.verify("box", &[])["checks"][0]["name"], "other");

    fs::write(yard.repository.join("zeno.yaml"), "checks: {a: {run: x, needs: [b]}}\n").unwrap();
    insta::assert_snapshot!(home.plain(&yard.zeno(&["verify", "box"])), @"
    ------- stderr -------
    error: `FOLDER/yard/repository/zeno.yaml` makes no sense in line 1
      because: the check `a` needs `b`, which is none of the checks
      try: the checks are `a`
    [exit 2]
    ");
    insta::assert_snapshot!(home.plain(&yard.zeno(&["verify", "box", "--check", "true"])).lines().last().unwrap(), @"[exit 0]");
    fs::remove_file(yard.repository.join("zeno.yaml")).unwrap();
    insta::assert_snapshot!(home.plain(&yard.zeno(&["verify", "box"])), @"
    ------- stderr -------
    error: there are no checks: `FOLDER/yard/repository/zeno.yaml` declares none
      try: give one: `zeno verify SANDBOX --check 'make test'`
      try: or declare them in zeno.yaml: `checks: {test: make test}`
    [exit 6]
    ");
    insta::assert_snapshot!(home.plain(&yard.zeno(&["verify", "box", "unit"])), @"
    ------- stderr -------
    error: there is no check `unit` in the workspace's zeno.yaml
      try: no checks are declared
    [exit 6]
    ");
}

#[test]
fn whoever_leaves_ends_the_checks() {
    let home = Home::new();
    let yard = Yard::new(&home, "checks: {slow: sleep 1000}\n");
    let mut child = home.command(&["verify", "box"]).current_dir(&yard.repository).spawn().unwrap();
    until("the check to run", || (home.ok(&["list", "-q"]).lines().count() == 2).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    until("it to be gone", || (home.ok(&["list", "-q"]).lines().count() == 1).then_some(()));
    assert_eq!(home.json(&["verdicts"]), json!([]));
}

/// What a check writes is nobody's work, so that nothing of it is kept, not even when its time is over.
#[test]
fn a_check_that_runs_out_of_time_leaves_nothing_behind() {
    let home = Home::new();
    home.create("box", &["--ttl", "10s"]);
    let own = home.json(&["get", "box"])["id"].as_str().unwrap().to_owned();
    let check = "echo half > /tmp/work; sleep 1000";
    let left = home.command(&["verify", "box", "--check", check]).spawn().unwrap();
    let listed = || home.ok(&["list", "-q"]).lines().find(|id| **id != own).map(str::to_owned);
    let id = until("the check to be there", listed);
    until("it to work", || (home.exec(&id, "cat /tmp/work").out() == "half\n").then_some(()));
    home.crash();
    assert_ne!(finish(left, b"").code, 0);
    until("its time to be over", || home.processes().is_empty().then_some(()));
    until("it to be gone", || (home.state(&id) == "destroyed").then_some(()));
    let snapshots = home.json(&["snapshots"]);
    let is_its = |kept: &Value| kept["reason"] == "expired" || kept["sandbox"] == id.as_str();
    assert!(!snapshots.as_array().unwrap().iter().any(is_its), "{snapshots}");
}

/// A repository with a file that is not good, and a sandbox of it.
struct Yard<'a> {
    home: &'a Home,
    repository: PathBuf,
}

impl<'a> Yard<'a> {
    fn new(home: &'a Home, config: &str) -> Self {
        let repository = home.yard().join("repository");
        fs::create_dir(&repository).unwrap();
        fs::write(repository.join("answer"), "bad\n").unwrap();
        fs::write(repository.join("zeno.yaml"), config).unwrap();
        for arguments in [
            &["init", "-q"][..],
            &["config", "user.name", "a"],
            &["config", "user.email", "a@b"],
            &["add", "-A"],
            &["commit", "-qm", "first"],
        ] {
            let done = Command::new("git").args(arguments).current_dir(&repository).status().unwrap();
            assert!(done.success(), "{arguments:?}");
        }
        let yard = Self { home, repository };
        let made = yard.zeno(&["create", "--name", "box"]);
        assert_eq!(made.code, 0, "{made}");
        yard
    }

    fn zeno(&self, arguments: &[&str]) -> Ran {
        finish(self.home.command(arguments).current_dir(&self.repository).spawn().unwrap(), b"")
    }

    #[track_caller]
    fn verify(&self, name: &str, arguments: &[&str]) -> Value {
        let ran = self.zeno(&[&["verify", name, "--json"], arguments].concat());
        let verdict: Value =
            serde_json::from_str(&ran.out()).unwrap_or_else(|error| panic!("{error}: {ran}"));
        assert_eq!(ran.code, i32::from(verdict["outcome"] != "pass"), "{ran}");
        verdict
    }
}

/// Ids and times differ from one time to the next.
fn without_times(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().map(plain_word).collect();
        plain += &words.join(" ");
        plain.push('\n');
    }
    plain
}

fn plain_word(word: &str) -> &str {
    let is_time = word.ends_with('s') && word.starts_with(|c: char| c.is_ascii_digit());
    let is_digest =
        word.trim_end_matches(',').len() == 12 && word.chars().all(|c| c.is_ascii_hexdigit() || c == ',');
    let is_id = word.len() == 14 && (word.starts_with("vd") || word.starts_with("sn"));
    match (is_time, is_digest, is_id) {
        (true, _, _) => "TIME",
        (_, true, _) => "DIGEST",
        (_, _, true) => "ID",
        _ if word.starts_with("(FOLDER") => "(LOG)",
        _ => word,
    }
}
