//! Graduated promotion: one stage after the other, each with its own checks and its own way back.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::home::{Home, Ran, finish, is_gone};
use crate::terminal::Screen;
use crate::wait::{end, until};

/// Two stages that write down what they do.
const TWO: &str = "
promotion:
  stages:
    - {name: staging, run: 'cp answer ../staging; echo staging run >> ../did', rollback: 'rm -f ../staging; echo staging back >> ../did'}
    - {name: production, run: 'cp answer ../production; echo production run >> ../did', rollback: 'rm -f ../production; echo production back >> ../did'}
";

#[test]
fn the_straight_path_its_history_and_the_way_back() {
    let home = Home::new();
    let yard = Yard::new(&home, TWO);
    home.exec("box", "echo better > answer");
    let planned = home.json(&["promote", "box", "--to", "production", "--dry-run"]);
    assert_eq!(
        (&planned["status"], names(&planned["ahead"])),
        (&json!("planned"), "local staging production".into())
    );
    assert_eq!(yard.did(), "");

    let walked = home.json(&["promote", "box", "--to", "production"]);
    assert_eq!((&walked["status"], &walked["stopped"]), (&json!("done"), &Value::Null), "{walked}");
    assert_eq!(states(&walked["stages"]), "local passed, staging passed, production passed");
    assert_eq!(yard.did(), "staging run\nproduction run\n");
    assert_eq!(yard.read("../production"), "better\n");
    let id = walked["promotion"]["id"].as_str().unwrap();

    let listed = home.json(&["promotions"]);
    assert_eq!(listed[0]["stages"], walked["stages"]);
    let run = &listed[0]["stages"][1]["errands"][0];
    assert_eq!((&run["task"], &run["exit"]), (&json!("run"), &json!({"kind": "exited", "code": 0})));
    let shown = home.ok(&["promotions"]);
    let lines: Vec<_> = shown.lines().skip(1).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(lines, [id, "local", "staging", "production"], "{shown}");
    // There is nothing further, and nothing is done twice.
    let again = home.json(&["promote", "box", "--to", "production"]);
    assert_eq!((&again["status"], &again["stages"]), (&json!("already"), &Value::Null), "{again}");
    assert_eq!(yard.did(), "staging run\nproduction run\n");

    let undone = home.json(&["undo"]);
    assert_eq!(states(&undone["stages"]), "local rolled-back, staging rolled-back, production rolled-back");
    assert_eq!(undone["state"], "undone");
    assert_eq!(yard.did(), "staging run\nproduction run\nproduction back\nstaging back\n");
    assert_eq!(yard.read("answer"), "first\n");
}

#[test]
fn a_run_that_fails_takes_itself_back_and_touches_nothing_after_it() {
    let home = Home::new();
    let yard = Yard::new(&home, &TWO.replace("echo staging run", "echo oh no; false; exit 3; echo"));
    home.exec("box", "echo better > answer");
    let ran = home.zeno(&["promote", "box", "--to", "production"]);
    assert_eq!(ran.code, 1, "{ran}");
    for part in [
        "staging  rolled back",
        "`run` failed: exit code 3, expected exit code 0",
        "\n  oh no\n",
        "staging did not pass: its rollback has taken it back, nothing after it was touched",
        "try: mend it, then zeno promote box --to production",
    ] {
        assert!(ran.out().contains(part), "{part:?} in {ran}");
    }
    assert_eq!(yard.did(), "staging back\n");
    assert!(!yard.path.join("../production").exists() && !yard.path.join("../staging").exists());
    let visits = home.json(&["promotions"])[0]["stages"].clone();
    assert_eq!(states(&visits), "local passed, staging rolled-back");
    let log = visits[1]["errands"][0]["log"].as_str().unwrap().to_owned();
    assert!(log.starts_with(home.path().join("stages").to_str().unwrap()), "{log}");
    assert_eq!(fs::read_to_string(log).unwrap(), "oh no\n");
    assert_eq!(yard.read("answer"), "better\n", "what is before it stays");
}

#[test]
fn a_check_after_the_run_decides_too_and_what_has_no_way_back_says_so() {
    let home = Home::new();
    let yard = Yard::new(
        &home,
        "
checks:
  smoke: {run: 'test -z \"$ZENO_STAGE\" || { echo $ZENO_STAGE $TOKEN; test -e ../healthy; }'}
  slow: {run: 'test -z \"$ZENO_STAGE\" || sleep 60', timeout: 3s}
promotion:
  stages:
    - {name: staging, run: 'echo $ZENO_SANDBOX > ../staging', checks: [smoke]}
    - {name: production, run: 'true', checks: [slow], rollback: 'exit 7'}
",
    );
    home.exec("box", "echo better > answer");
    home.ok(&["verify", "box"]);
    let promote = |stage: &str| yard.with_token(&["promote", "box", "--to", stage]);
    let ran = promote("staging");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.out().contains("and it has no rollback: look at it yourself"), "{ran}");
    assert!(ran.out().contains("\n  staging secret\n"), "with the caller's environment: {ran}");
    let sandbox = home.json(&["get", "box"])["id"].as_str().unwrap().to_owned();
    assert_eq!(yard.read("../staging").trim(), sandbox);
    // Mended outside, the same goes on with the stage that did not pass.
    fs::write(yard.path.join("../healthy"), "").unwrap();
    let ran = promote("production");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.out().contains("`slow` did not pass: it ran longer than it may"), "{ran}");
    assert!(ran.out().contains("its rollback failed: look at it yourself"), "{ran}");
    let visits = home.json(&["promotions"])[0]["stages"].clone();
    assert_eq!(states(&visits), "local passed, staging failed, staging passed, production rollback-failed");
    // A stage that cannot be taken back keeps the promotion, unless it is left as it is.
    let refused = home.zeno(&["undo"]);
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err().contains("it went out to `staging`, and nothing is declared"), "{refused}");
    let stuck = home.zeno(&["undo", "--leave-stage", "staging"]);
    assert_eq!(stuck.code, 1, "{stuck}");
    assert!(
        stuck.out().contains("production could not be taken back, so nothing was undone here"),
        "{stuck}"
    );
    assert_eq!(yard.read("answer"), "better\n");
    home.ok(&["undo", "--leave-stage", "staging", "--leave-stage", "production"]);
    assert_eq!(yard.read("answer"), "first\n");
}

#[test]
fn checks_of_local_run_here_and_undo_it() {
    let home = Home::new();
    let local = "
checks: {here: 'test -z \"$ZENO_STAGE\" || test ! -e ../broken'}
promotion: {stages: [{name: local, checks: [here]}, {name: staging, run: 'echo staging run >> ../did'}]}
";
    let yard = Yard::new(&home, local);
    home.exec("box", "echo better > answer");
    home.ok(&["verify", "box"]);
    fs::write(yard.path.join("../broken"), "").unwrap();
    // Also where no stage is named: `local` is always the first.
    for arguments in [&["promote", "box", "--to", "staging"][..], &["promote", "box"]] {
        let ran = home.zeno(arguments);
        assert_eq!(ran.code, 1, "{ran}");
        assert!(ran.out().contains("local did not pass: what was applied is undone"), "{ran}");
        assert_eq!((yard.read("answer"), yard.did()), ("first\n".to_owned(), String::new()));
        assert_eq!(home.json(&["promotions"])[0]["state"], "undone");
    }
    fs::remove_file(yard.path.join("../broken")).unwrap();
    let walked = home.json(&["promote", "box", "--to", "staging"]);
    assert_eq!(states(&walked["stages"]), "local passed, staging passed");
    assert_eq!(walked["stages"][0]["errands"][0]["check"], "here");
}

#[test]
fn only_a_person_passes_where_a_person_is_asked_for() {
    let home = Home::new();
    let yard = Yard::new(&home, &TWO.replace("{name: production,", "{name: production, approval: human,"));
    home.exec("box", "echo better > answer");
    let ran = home.zeno(&["promote", "box", "--to", "production", "--actor", "agt"]);
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.out().contains("stopped before production: a person has to agree"), "{ran}");
    assert_eq!(yard.did(), "staging run\n");
    let id = home.json(&["promotions"])[0]["id"].as_str().unwrap().to_owned();
    assert!(ran.out().contains(&format!("try: at a terminal: zeno promote {id} --to production")), "{ran}");
    // Nobody is at a terminal here, and an agent that says that a person agreed is still an agent.
    assert_eq!(home.zeno(&["promote", "box", "--to", "production"]).code, 4);
    let path = format!("/v1/promotions/{id}/advance");
    let body = br#"{"to":"production","approved":["production"],"actor":"agt"}"#;
    let answer: Value = serde_json::from_slice(&home.ask("POST", &path, body).body).unwrap();
    assert_eq!(answer["stopped"], json!({"why": "approval", "stage": "production"}), "{answer}");

    let mut screen = Screen::open(&home, &["promote", "box", "--to", "production"]);
    screen.next("Go on to production? [y/N] ");
    screen.type_in(b"n\n");
    assert_eq!(screen.end(), 4);
    assert_eq!(yard.did(), "staging run\n");
    // The sandbox may be gone by then.
    home.ok(&["destroy", "box"]);
    let mut screen = Screen::open(&home, &["promote", &id, "--to", "production"]);
    screen.next("Go on to production? [y/N] ");
    screen.type_in(b"y\n");
    screen.next("passed");
    assert_eq!(screen.end(), 0);
    assert_eq!(yard.did(), "staging run\nproduction run\n");
    assert_eq!(home.zeno(&["promote", &id, "--to", "production", "--force"]).code, 2);
}

#[test]
fn going_on_later_goes_on_where_it_was() {
    let home = Home::new();
    let yard = Yard::new(&home, TWO);
    home.exec("box", "echo better > answer");
    assert_eq!(states(&home.json(&["promote", "box"])["stages"]), "local passed");
    let staging = home.json(&["promote", "box", "--to", "staging"]);
    assert_eq!(
        (&staging["status"], states(&staging["stages"])),
        (&json!("already"), "staging passed".to_owned())
    );
    let ahead = home.json(&["promote", "box", "--to", "production", "--dry-run"]);
    assert_eq!(names(&ahead["ahead"]), "production");
    // Another state is another promotion.
    home.exec("box", "echo more > other");
    let best = home.json(&["promote", "box", "--to", "staging"]);
    assert_eq!(
        (&best["status"], states(&best["stages"])),
        (&json!("done"), "local passed, staging passed".to_owned())
    );
    assert_eq!((yard.read("other").as_str(), yard.did().as_str()), ("more\n", "staging run\nstaging run\n"));
    let unknown = home.zeno(&["promote", "box", "--to", "moon"]);
    assert_eq!(unknown.code, 6, "{unknown}");
    assert!(unknown.err().contains("there are `local`, `staging`, `production`"), "{unknown}");
}

#[test]
fn a_sandbox_cannot_choose_its_stages() {
    let home = Home::new();
    let yard = Yard::new(&home, TWO);
    home.exec("box", "sed -i 's/staging run/evil run/; s/production run/evil run/' zeno.yaml");
    home.ok(&["promote", "box", "--to", "staging", "--allow-executes"]);
    assert!(yard.read("zeno.yaml").contains("evil"), "it has arrived here");
    // Going on goes by what was there before it came, and so does undoing.
    home.ok(&["promote", "box", "--to", "production"]);
    home.ok(&["undo"]);
    assert_eq!(yard.did(), "staging run\nproduction run\nproduction back\nstaging back\n");
}

/// Checks of `local` run on the real machine whenever somebody promotes: they do not come without a question.
#[test]
fn commands_of_stages_do_not_come_unasked() {
    let home = Home::new();
    let yard = Yard::new(&home, "");
    let evil = "checks: {ok: 'touch ../ran'}\npromotion: {stages: [{name: local, checks: [ok]}]}\n";
    fs::write(home.yard().join("evil"), evil).unwrap();
    for place in ["", "deep/"] {
        home.exec("box", &format!("mkdir -p deep; cp ../evil {place}zeno.yaml"));
        let refused = home.zeno(&["promote", "box"]);
        assert_eq!(refused.code, 4, "{refused}");
        assert!(refused.out().contains(&format!("executes {place}zeno.yaml")), "{refused}");
    }
    home.exec("box", "git checkout -q zeno.yaml; rm -r deep; echo better > answer");
    home.ok(&["promote", "box"]);
    assert_eq!((yard.read("answer").as_str(), yard.path.join("../ran").exists()), ("better\n", false));
}

#[test]
fn a_daemon_killed_in_the_middle_leaves_no_command_behind_and_offers_the_way_back() {
    let home = Home::new();
    // What it starts in a session of its own must not get away either.
    let line = "cp answer ../staging; setsid sh -c ''echo $$ > ../pid; sleep 1000'' & wait";
    let yard = Yard::new(&home, &TWO.replace("cp answer ../staging; echo staging run >> ../did", line));
    home.exec("box", "echo better > answer");
    let (mut child, pid) = yard.under_way();
    home.crash();
    until("what the stage started to be gone", || is_gone(pid).then_some(()));
    assert_eq!(end(&mut child).code(), Some(7));
    let journey = home.json(&["promotions"])[0].clone();
    assert_eq!(states(&journey["stages"]), "local passed, staging interrupted");
    assert_eq!(yard.did(), "", "nothing was run for nobody");
    let shown = home.ok(&["promotions"]);
    assert!(shown.contains("try: take staging back and enter it again: zeno promote pr"), "{shown}");

    // Whoever goes on takes it back first.
    fs::remove_file(yard.path.join("../pid")).unwrap();
    let (mut child, pid) = yard.under_way();
    assert_eq!(yard.did(), "staging back\n");
    assert_eq!(
        states(&home.json(&["promotions"])[0]["stages"]),
        "local passed, staging rolled-back, staging running"
    );
    // Who leaves has it ended and taken back.
    child.kill().unwrap();
    child.wait().unwrap();
    until("the stage to be taken back", || (yard.did() == "staging back\nstaging back\n").then_some(()));
    until("what the stage started to be gone", || is_gone(pid).then_some(()));
    let stages = || home.json(&["promotions"])[0]["stages"].clone();
    until("it to be written down", || (stages()[2]["state"] == "rolled-back").then_some(()));
    assert_eq!(stages()[2]["why"], "`run` failed: nobody waited for it any more");

    // Undoing takes back what was interrupted, too.
    fs::remove_file(yard.path.join("../pid")).unwrap();
    let (mut child, pid) = yard.under_way();
    home.ok(&["daemon", "stop"]);
    until("what the stage started to be gone", || is_gone(pid).then_some(()));
    end(&mut child);
    assert_eq!(stages()[3]["state"], "interrupted");
    home.ok(&["undo"]);
    assert_eq!(yard.did(), "staging back\n".repeat(3));
    assert_eq!(yard.read("answer"), "first\n");
}

#[test]
fn what_a_stage_starts_and_leaves_is_left_alone() {
    let home = Home::new();
    // It holds the stage's output, which keeps nobody waiting.
    let yard = Yard::new(&home, &TWO.replace("cp answer ../staging", "sleep 1000 & echo $! > ../pid"));
    home.exec("box", "echo better > answer");
    assert_eq!(
        states(&home.json(&["promote", "box", "--to", "staging"])["stages"]),
        "local passed, staging passed"
    );
    let pid = yard.read("../pid").trim().parse().unwrap();
    assert!(!is_gone(pid), "starting it may be what the stage is for");
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn promotions_of_one_folder_take_turns_and_tell_their_steps() {
    let home = Home::new();
    let wait = "touch ../entered; until test -e ../go; do sleep 0.02; done";
    let yard = Yard::new(&home, &TWO.replace("cp answer ../staging", wait));
    home.ok(&["fork", "box", "--name", "other"]);
    home.exec("box", "echo better > answer");
    home.exec("other", "echo other > other");
    let first = home.command(&["promote", "box", "--to", "staging"]).spawn().unwrap();
    until("the first to be in its stage", || yard.path.join("../entered").exists().then_some(()));
    let mut second = home.http();
    let answer = second.open("POST", "/v1/sandboxes/other/promote?steps=true", &[], b"{}");
    let mut told = second.read_until(&answer, "\n");
    assert_eq!(told, "{\"kind\":\"waiting\"}\n");
    assert!(!yard.path.join("other").exists());
    fs::write(yard.path.join("../go"), "").unwrap();
    told += &second.read_until(&answer, "\"walked\"");
    assert_eq!(finish(first, b"").code, 0);
    let kinds = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone());
    assert_eq!(kinds.collect::<Vec<_>>(), ["waiting", "applied", "entered", "left", "walked"]);
    assert_eq!((yard.read("other").as_str(), yard.did().as_str()), ("other\n", "staging run\n"));
}

/// A repository with an `answer`, and a sandbox in it.
struct Yard<'a> {
    home: &'a Home,
    path: PathBuf,
}

impl<'a> Yard<'a> {
    fn new(home: &'a Home, config: &str) -> Self {
        let path = home.yard().join("repository");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("answer"), "first\n").unwrap();
        fs::write(path.join("zeno.yaml"), config).unwrap();
        let script =
            "git init -q . && git add . && git -c user.name=z -c user.email=z@localhost commit -qm first";
        assert!(Command::new("sh").args(["-c", script]).current_dir(&path).status().unwrap().success());
        let mut create = home.command(&["create", "--name", "box"]);
        let made = finish(create.current_dir(&path).spawn().unwrap(), b"");
        assert_eq!(made.code, 0, "{made}");
        home.daemon();
        Self { home, path }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap()
    }

    /// What the stages wrote down.
    fn did(&self) -> String {
        fs::read_to_string(self.path.join("../did")).unwrap_or_default()
    }

    fn with_token(&self, arguments: &[&str]) -> Ran {
        finish(self.home.command(arguments).env("TOKEN", "secret").spawn().unwrap(), b"")
    }

    /// A promotion in the middle of `staging`, and a process that its command started.
    fn under_way(&self) -> (Child, i32) {
        let child = self.home.command(&["promote", "box", "--to", "staging"]).spawn().unwrap();
        let pid = until("the stage to run", || {
            fs::read_to_string(self.path.join("../pid")).ok()?.trim().parse().ok()
        });
        self.home.daemon();
        (child, pid)
    }
}

fn states(visits: &Value) -> String {
    let visits = visits.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let told = visits.iter().map(|visit| format!("{} {}", text(&visit["stage"]), text(&visit["state"])));
    told.collect::<Vec<_>>().join(", ")
}

fn names(stages: &Value) -> String {
    let stages = stages.as_array().map(Vec::as_slice).unwrap_or_default();
    stages.iter().map(|stage| stage["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}
