//! Races on a real repository: several fixes, and which of them is right.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use model::units::Size;
use serde_json::{Value, json};

use crate::home::{Home, Ran, finish};
use crate::terminal::Screen;
use crate::wait::until;

/// Adds wrongly.
const BROKEN: &str = "add() { echo $(($1 - $2)); }\n";
const TEST: &str = ". ./lib.sh; got=$(add 2 3); test \"$got\" = 5 || { echo \"add 2 3 is $got\"; exit 1; }";

#[test]
fn of_three_fixes_the_right_one_wins_and_the_others_are_explained() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let before = yard.head();
    let race = yard.race(
        &[
            ("noise", "sed -i 's/-/*/' lib.sh; python3 -c 'b\"x\" * (64 << 20)'"),
            ("right", "sed -i 's/-/+/' lib.sh; mkdir -p ~/cache; echo much > ~/cache/x"),
            ("crash", "echo about to die; kill -SEGV $$"),
        ],
        &["--check", TEST],
        0,
    );
    let [noise, right, crash] = entries(&race);
    assert_eq!((&race["winner"], &race["winner_sandbox"]), (&json!("right"), &right["sandbox"]));
    let outcomes: Vec<_> = entries::<3>(&race).iter().map(|entry| entry["outcome"].clone()).collect();
    assert_eq!(outcomes, ["fail", "pass", "fail"]);
    assert_eq!(noise["lost"], "`check-1` failed: exit code 1, expected exit code 0 (add 2 3 is 6)");
    assert_eq!(crash["lost"], "its command was killed by signal 11 (about to die)");
    let memory = entries::<3>(&race)
        .map(|entry| entry["peak_memory"].as_str().unwrap().parse::<Size>().unwrap().0 >> 20);
    assert!(memory[0] >= 64 && (1..64).contains(&memory[1]), "{memory:?}");
    assert_eq!((&right["files"], &right["lines"]), (&json!(1), &json!({"added": 1, "removed": 1})));
    // What the winner's sandbox holds is what was judged, and the losers are still there to be looked at.
    let winner = right["sandbox"].as_str().unwrap();
    assert!(home.ok(&["diff", winner, "--patch"]).contains("+add() { echo $(($1 + $2)); }"));
    assert_eq!(home.json(&["verdicts", winner])[0]["id"], right["verdict"]);
    let loser = noise["sandbox"].as_str().unwrap();
    let patch = home.ok(&["diff", loser, winner, "--patch"]);
    assert!(patch.contains("-add() { echo $(($1 * $2)); }\n+add() { echo $(($1 + $2)); }\n"), "{patch}");
    assert_eq!(home.ok(&["diff", loser, winner, "--name-status"]).lines().next(), Some("M\tlib.sh"));
    // By the names that they had in the race, the last or the one that is named.
    let named = home.ok(&["diff", "noise", "right"]);
    assert!(named.contains("lib.sh") && named.contains("both changed it"), "{named}");
    assert_eq!(home.ok(&["diff", "noise", "right", "--patch"]), patch);
    let [one, other] = ["noise", "right"].map(|name| format!("{}/{name}", race["id"].as_str().unwrap()));
    assert_eq!(home.ok(&["diff", &one, &other, "--patch"]), patch);
    assert_eq!(home.ok(&["diff", "noise", "--with", &other, "--patch"]), patch);
    assert_eq!(home.zeno(&["diff", &format!("{one}x"), "right"]).code, 6);
    assert_eq!(home.exec(loser, "cat lib.sh").out(), BROKEN.replace('-', "*"));
    // A sandbox of this name comes first.
    home.create("right", &[]);
    assert_eq!(home.ok(&["diff", "right"]), "");
    assert_eq!(home.json(&["get", loser])["labels"], json!({"race": race["id"], "candidate": "noise"}));
    assert_eq!(home.json(&["races"])[0], race);
    assert_eq!(yard.head(), before, "reality was not touched");
}

/// Of a race that was under way when the daemon was killed, and of one that is forgotten.
#[test]
fn logs_without_a_record_go_at_the_next_start() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let race = yard.race(&[("a", "echo mine")], &["--check", "true"], 0);
    let [entry] = entries::<1>(&race);
    let kept = [
        home.path().join("races").join(race["id"].as_str().unwrap()),
        home.path().join("verdicts").join(entry["verdict"].as_str().unwrap()),
    ];
    assert!(kept.iter().all(|folder| folder.is_dir()), "{kept:?}");
    home.crash();
    let orphans = ["races/rc0", "verdicts/vd0", "stages/pr0"].map(|name| home.path().join(name));
    for orphan in &orphans {
        fs::create_dir_all(orphan).unwrap();
        fs::write(orphan.join("a.log"), "half").unwrap();
    }
    assert_eq!(home.json(&["races"])[0], race);
    until("what has no record to go", || orphans.iter().all(|orphan| !orphan.exists()).then_some(()));
    assert!(kept.iter().all(|folder| folder.is_dir()), "{kept:?}");
}

#[test]
fn the_winner_becomes_real_and_nobody_else() {
    let home = Home::new();
    let yard = Yard::new(&home);
    fs::write(yard.repository.join("zeno.yaml"), format!("checks:\n  - name: adds\n    run: '{TEST}'\n"))
        .unwrap();
    let before = yard.head();
    let lost = [("noise", "sed -i 's/-/*/' lib.sh"), ("crash", "kill -SEGV $$")];
    let race = yard.race(&lost, &["--promote", "yes"], 1);
    assert_eq!((&race["winner"], &race["promoted"]), (&json!(null), &json!(null)));
    assert_eq!(yard.head(), before, "where nobody wins nothing is promoted");

    let right = ("right", "sed -i 's/-/+/' lib.sh");
    let race = yard.race(&[lost[0], right, lost[1]], &["--promote", "yes"], 0);
    let [_, winner, _] = entries(&race);
    let promotion = &race["promoted"]["promotion"];
    assert_eq!(
        (&promotion["verdict"], &promotion["sandbox"]),
        (&winner["verdict"], &winner["sandbox"]),
        "{race}"
    );
    assert_eq!(fs::read_to_string(yard.repository.join("lib.sh")).unwrap(), BROKEN.replace('-', "+"));
    home.ok(&["undo"]);
    assert_eq!(yard.head(), before);

    // Where nobody can be asked, it is not promoted.
    let race = yard.race(&[right], &["--promote", "ask"], 0);
    assert_eq!((&race["winner"], &race["promoted"]), (&json!("right"), &json!(null)));
    assert_eq!(yard.head(), before);
}

#[test]
fn what_the_winner_won_by_judges_its_promotion_too() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let right = ("right", "sed -i 's/-/+/' lib.sh; echo right > notes");
    let promoted = |race: &Value| race["promoted"]["promotion"].clone();
    let race = yard.race(&[right], &["--check", TEST, "--promote", "yes"], 0);
    let [winner] = entries(&race);
    assert!(winner["verdict"].is_string(), "{race}");
    assert_eq!(
        promoted(&race)["verdict"],
        winner["verdict"],
        "exactly what was judged, and nothing is run again"
    );
    home.ok(&["undo"]);

    // Reality has moved on since the state that the race starts from.
    assert_eq!(yard.zeno(&["create", "--name", "box"]).code, 0);
    home.ok(&["snapshot", "box", "--name", "start"]);
    let one = format!("{TEST}; test $(cat gone notes 2>/dev/null | wc -l) -le 2");
    let options = ["--from", "start", "--check", &one, "--promote", "yes"];
    let before = yard.head();
    fs::write(yard.repository.join("gone"), "x\ny\n").unwrap();
    let tried = ["race", "--try", "right=sed -i s/-/+/ lib.sh; echo right > notes"];
    let refused = yard.zeno(&[&tried[..], &options].concat());
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err().contains("together with what changed here"), "{refused}");
    assert!(refused.err().contains("did not pass `check-1`"), "{refused}");
    assert!(!yard.repository.join("notes").exists());
    fs::write(yard.repository.join("gone"), "y\n").unwrap();
    let race = yard.race(&[right], &options, 0);
    let [winner] = entries(&race);
    let verdict = promoted(&race)["verdict"].clone();
    assert!(verdict.is_string() && verdict != winner["verdict"], "{race}");
    let all = home.json(&["verdicts"]);
    let judged = all.as_array().unwrap().iter().find(|judged| judged["id"] == verdict).unwrap();
    assert_eq!((&judged["outcome"], &judged["checks"][0]["run"]), (&json!("pass"), &json!(one)), "{judged}");
    home.ok(&["undo"]);
    fs::write(yard.repository.join("gone"), "x\n").unwrap();
    assert_eq!(yard.head(), before);

    // The checks of zeno.yaml are asked besides: a race opens no gate that they would close.
    let declare = |line: &str| {
        fs::write(yard.repository.join("zeno.yaml"), format!("checks: {{declared: {line}}}\n")).unwrap();
    };
    declare("grep -q right notes");
    let race = yard.race(&[right], &["--check", TEST, "--promote", "yes"], 0);
    assert!(promoted(&race)["verdict"].is_string(), "{race}");
    home.ok(&["undo"]);
    declare("grep -q wrong notes");
    let refused = yard.zeno(&[&tried[..], &["--check", TEST, "--promote", "yes"]].concat());
    assert_eq!(refused.code, 4, "{refused}");
    assert!(refused.err().contains("did not pass `declared`"), "{refused}");
}

#[test]
fn a_patch_a_branch_and_a_sandbox_race_each_other() {
    let home = Home::new();
    let yard = Yard::new(&home);
    yard.git(&["checkout", "-qb", "Fix/branch"]);
    fs::write(yard.repository.join("lib.sh"), BROKEN.replace('-', "+")).unwrap();
    fs::write(yard.repository.join("notes"), "why\n").unwrap();
    fs::remove_file(yard.repository.join("gone")).unwrap();
    yard.git(&["add", "-A"]);
    yard.git(&["commit", "-qm", "fix"]);
    let patch =
        Command::new("git").args(["diff", "HEAD^", "--", "lib.sh"]).current_dir(&yard.repository).output();
    fs::write(home.yard().join("small.diff"), patch.unwrap().stdout).unwrap();
    yard.git(&["checkout", "-q", "main"]);
    assert_eq!(yard.zeno(&["create", "--name", "box"]).code, 0);
    home.exec("box", "sed -i 's/-/+/' lib.sh; echo 1 > one; echo 2 > two");
    let patch = format!("patch:{}", home.yard().join("small.diff").display());
    let candidates = ["--candidate", &patch, "--candidate", "ref:Fix/branch", "--candidate", "sandbox:box"];
    let race = yard.race(&[], &[&candidates[..], &["--check", TEST]].concat(), 0);
    let measured: Vec<_> = entries::<3>(&race)
        .iter()
        .map(|entry| (entry["name"].clone(), entry["outcome"].clone(), entry["files"].clone()))
        .collect();
    let passed = |name: &str, files: u64| (json!(name), json!("pass"), json!(files));
    assert_eq!(measured, [passed("small", 1), passed("fix-branch", 3), passed("box", 3)]);
    assert_eq!(race["winner"], "small");
    // A patch that does not fit loses, and says why.
    home.exec("box", "rm lib.sh");
    let race = yard.race(&[], &["--from", "box", "--candidate", &patch, "--check", "true"], 1);
    let [entry] = entries(&race);
    assert!(entry["lost"].as_str().unwrap().contains("lib.sh: No such file"), "{entry}");
}

#[test]
fn the_highest_score_wins_and_what_starts_elsewhere_starts_there() {
    let home = Home::new();
    let yard = Yard::new(&home);
    assert_eq!(yard.zeno(&["create", "--name", "box"]).code, 0);
    home.exec("box", "echo 5 > number");
    home.ok(&["snapshot", "box", "--name", "start"]);
    let more = ["--from", "start", "--check", "test -s number", "--score", "echo about; cat number"];
    let race = yard.race(
        &[("same", "true"), ("more", "echo 7.5 > number"), ("words", "echo many > number")],
        &more,
        0,
    );
    let scores: Vec<_> = entries::<3>(&race).iter().map(|entry| entry["score"].clone()).collect();
    assert_eq!(scores, [json!(5.0), json!(7.5), Value::Null]);
    assert_eq!((&race["winner"], &race["pick"]), (&json!("more"), &json!("score")));
    let [same, _, words] = entries(&race);
    assert_eq!((&same["files"], &words["lost"]), (&json!(0), &json!("its score is not a number (many)")));
}

#[test]
fn where_none_passes_none_wins_and_people_read_why() {
    let home = Home::new();
    let yard = Yard::new(&home);
    fs::write(
        yard.repository.join("zeno.yaml"),
        format!("checks: {{unit: '{}'}}\n", TEST.replace('\'', "''")),
    )
    .unwrap();
    let ran = yard.zeno(&["race", "--try", "slow=sleep 100", "--try", "idle=true", "--timeout", "3s"]);
    assert_eq!(ran.code, 1);
    let text = home.plain(&ran);
    let fates: Vec<_> = text.lines().skip_while(|line| !line.is_empty()).collect();
    insta::assert_snapshot!(fates.join("\n"), @"

    lost slow: its command took longer than 3s
    lost idle: `unit` failed: exit code 1, expected exit code 0 (add 2 3 is -1)
    [exit 1]
    ");
    let ran = yard.zeno(&["race", "--try", "a=true", "--try", "a=false", "--check", "true"]);
    insta::assert_snapshot!(home.plain(&ran), @"
    ------- stderr -------
    error: two candidates are called `a`
      try: give each a name of its own
    [exit 2]
    ");
}

/// Whatever they start from, candidates are under the limits of the race, and reach what it says.
#[test]
fn what_starts_elsewhere_is_under_the_limits_of_the_race() {
    let home = Home::new();
    let yard = Yard::new(&home);
    assert_eq!(
        yard.zeno(&["create", "--name", "box", "--net", "host", "--pids", "300", "--best-effort"]).code,
        0
    );
    home.ok(&["snapshot", "box", "--name", "start"]);
    let shows = "grep processes /proc/self/limits; readlink /proc/self/ns/net";
    let here = fs::read_link("/proc/self/ns/net").unwrap();
    let race = |options: &[&str]| {
        let options = [&["--from", "start", "--check", "true"], options].concat();
        let [entry] = entries::<1>(&yard.race(&[("only", shows)], &options, 0));
        let told = fs::read_to_string(entry["log"].as_str().unwrap()).unwrap();
        let mut lines = told.lines();
        let pids = lines.next().unwrap().split_whitespace().nth(2).unwrap().to_owned();
        let is_host = lines.next().unwrap() == here.to_str().unwrap();
        let sandbox = home.json(&["get", entry["sandbox"].as_str().unwrap()]);
        (pids, is_host, sandbox)
    };
    let (pids, is_host, _) = race(&[]);
    assert_eq!((pids.as_str(), is_host), ("300", true), "as what it starts from");
    let limits = ["--pids", "50", "--memory", "64MiB", "--best-effort", "--ttl", "1h", "--net", "none"];
    let (pids, is_host, sandbox) = race(&limits);
    assert_eq!((pids.as_str(), is_host), ("50", false));
    let limits = &sandbox["limits"];
    assert_eq!((&limits["pids"], &limits["memory"]), (&json!(50), &json!("64MiB")), "{sandbox}");
    assert!(!sandbox["caveats"].to_string().contains("host's network"), "{sandbox}");
    // Taken back to where it started, it is still under them.
    let id = sandbox["id"].as_str().unwrap();
    home.ok(&["rollback", id, "start"]);
    let told = home.exec(id, shows).out();
    assert!(told.contains(" 50 ") && !told.contains(here.to_str().unwrap()), "{told}");

    let there = ["race", "--candidate", "sandbox:box", "--check", "true"];
    assert_eq!(yard.zeno(&there).code, 0);
    for limit in [&["--pids", "50"][..], &["--net", "none"]] {
        let refused = yard.zeno(&[&there[..], limit].concat());
        assert_eq!(refused.code, 2, "{refused}");
        assert!(refused.err().contains("`box` is there already, and keeps the limits"), "{refused}");
    }
    // All that a sandbox may reach can be said of candidates, too.
    let (_, is_host, sandbox) = race(&["--net", "allow:registries"]);
    assert!(!is_host && sandbox["net"].to_string().contains("registries"), "{sandbox}");
}

#[test]
fn the_fastest_wins_where_that_is_asked_for() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let small = ("small", "sleep 4; sed -i s/-/+/ lib.sh");
    let quick = ("quick", "sed -i s/-/+/ lib.sh; echo more > notes");
    let quicker = ("wrong", "true");
    let race = yard.race(&[small, quick, quicker], &["--check", TEST, "--pick", "fastest"], 0);
    assert_eq!((&race["winner"], &race["pick"]), (&json!("quick"), &json!("fastest")), "{race}");
    let [small, ..] = entries::<3>(&race);
    assert_eq!(small["outcome"], "pass", "it lost by its time alone: {small}");
}

#[test]
fn a_person_sees_how_far_each_is_and_chooses() {
    let home = Home::new();
    let yard = Yard::new(&home);
    assert_eq!(yard.zeno(&["create", "--name", "box"]).code, 0);
    let go = home.yard().join("go");
    fs::write(&go, "").unwrap();
    let wait = "slow=until grep -q now ~/go; do sleep 0.1; done; sed -i s/-/+/ lib.sh";
    let tries =
        ["--try", wait, "--try", "other=sed -i s/-/+/ lib.sh; echo why > notes", "--try", "wrong=true"];
    let options = ["--from", "box", "--check", TEST, "--pick", "ask", "--parallel", "4"];
    let mut screen = Screen::drawn(&home, &[&["race"], &tries[..], &options].concat());
    // A line for each, and each goes on by itself.
    screen.see("slow ");
    screen.see("running");
    screen.see("pass in");
    screen.see("fail in");
    screen.see("add 2 3 is -1");
    assert!(!screen.shown.contains("Which one?"), "{}", screen.shown);
    fs::write(&go, "now\n").unwrap();
    screen.next("Which one? [slow/other] ");
    screen.type_in(b"other\n");
    screen.next("chosen: ");
    screen.next("? [y/N] ");
    assert!(!yard.repository.join("notes").exists());
    screen.type_in(b"y\n");
    assert_eq!(screen.end(), 0);
    home.daemon();
    assert_eq!(fs::read_to_string(yard.repository.join("notes")).unwrap(), "why\n");
    // Whoever names none of them has none.
    let mut screen = Screen::open(
        &home,
        &[
            &["race", "--try", "a=true", "--promote", "yes"],
            &options[..2],
            &["--check", "true", "--pick", "ask"],
        ]
        .concat(),
    );
    screen.next("Which one? [a] ");
    screen.type_in(b"\n");
    screen.next("none is chosen; all of them stay");
    assert_eq!(screen.end(), 0);
    assert_eq!(home.json(&["promotions"]).as_array().unwrap().len(), 1);
}

#[test]
fn whoever_leaves_ends_the_race_and_its_candidates() {
    let home = Home::new();
    let yard = Yard::new(&home);
    let arguments =
        ["race", "--try", "a=sleep 1000", "--try", "b=sleep 1000", "--check", "true", "--parallel", "2"];
    let mut child = home.command(&arguments).current_dir(&yard.repository).spawn().unwrap();
    let count = || home.ok(&["list", "-q"]).lines().count();
    until("both to run", || (count() == 2).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    until("both to be gone", || (count() == 0).then_some(()));
    assert_eq!(home.json(&["races"]), json!([]));
}

struct Yard<'a> {
    home: &'a Home,
    repository: PathBuf,
}

impl<'a> Yard<'a> {
    fn new(home: &'a Home) -> Self {
        let repository = home.yard().join("repository");
        fs::create_dir(&repository).unwrap();
        let yard = Self { home, repository };
        fs::write(yard.repository.join("lib.sh"), BROKEN).unwrap();
        fs::write(yard.repository.join("gone"), "x\n").unwrap();
        yard.git(&["init", "-q", "-b", "main"]);
        yard.git(&["add", "-A"]);
        yard.git(&["commit", "-qm", "first"]);
        yard
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let done = Command::new("git").args(who).args(arguments).current_dir(&self.repository).status();
        assert!(done.unwrap().success(), "{arguments:?}");
    }

    /// What git sees of the real repository.
    fn head(&self) -> Vec<u8> {
        let status = ["status", "--porcelain=v2", "--branch"];
        let shown = Command::new("git").args(status).current_dir(&self.repository).output();
        let mut shown = shown.unwrap().stdout;
        shown.extend(fs::read(self.repository.join("lib.sh")).unwrap());
        shown
    }

    fn zeno(&self, arguments: &[&str]) -> Ran {
        finish(self.home.command(arguments).current_dir(&self.repository).spawn().unwrap(), b"")
    }

    #[track_caller]
    fn race(&self, tries: &[(&str, &str)], options: &[&str], code: i32) -> Value {
        let tries: Vec<_> = tries.iter().map(|(name, line)| format!("{name}={line}")).collect();
        let mut arguments = vec!["race", "--json"];
        arguments.extend(tries.iter().flat_map(|entry| ["--try", entry]));
        arguments.extend(options);
        let ran = self.zeno(&arguments);
        assert_eq!(ran.code, code, "{ran}");
        serde_json::from_str(&ran.out()).unwrap()
    }
}

#[track_caller]
fn entries<const N: usize>(race: &Value) -> [Value; N] {
    race["entries"].as_array().unwrap().clone().try_into().unwrap()
}
