//! Snapshots: sealed, gone back to, forked, restored, removed.

use std::time::Duration;

use model::units::Size;
use serde_json::json;

use crate::home::{Home, Ran, finish, is_root};
use crate::wait::{end, until};

/// Everything that overlayfs marks in its own way: whiteouts, opaque folders, moved folders, in the workspace, in `/tmp`
/// and in what is read live.
const DO: &str = "echo more >> README; rm -r folder; mkdir folder; echo new > folder/new; rm src/gone.rs
    rm -r node_modules; mv src lib; mkdir /tmp/a; echo a > /tmp/a/a; echo home > ~/made; chmod 700 /tmp
    mkdir -p ~/deep/er; echo 1 > ~/deep/er/one; rm -r ~/real; mkdir ~/real; echo inside > ~/real/inside; chmod 600 run.sh";
const UNDO: &str =
    "echo again >> README; rm -r folder; echo file > folder; mv lib src2; rm -r /tmp/a; rm ~/made
    rm -r ~/deep; echo second > ~/real/second; chmod 777 /tmp; rm ~/real/inside; ln -s x ~/link";
const SEE: &str = "cat README; find . -path ./.git -prune -o -print | sort; find ~/made ~/deep ~/real ~/link /tmp -exec \
    stat -c '%A %n' {} + 2>/dev/null | sort; cat ~/real/* folder/* 2>/dev/null; stat -c %a run.sh";

#[test]
fn what_was_sealed_is_what_is_seen_by_all_who_stand_on_it() {
    let home = Home::new();
    let yard = Yard::new(&home);
    assert_eq!(home.exec("box", DO).code, 0);
    let before = yard.see("box");
    assert_eq!(home.ok(&["snapshot", "box", "--name", "one", "--label", "k=v"]), "one\n");
    assert_eq!(yard.see("box"), before, "it looks the same on the sealed layer");
    assert_eq!(home.exec("box", UNDO).code, 0);
    let after = yard.see("box");
    assert_ne!(after, before);

    // What was done since, and all there is.
    let since = |options: &[&str]| home.ok(&[&["diff", "box", "--name-status"], options].concat());
    assert!(since(&[]).contains("D\tsrc/gone.rs\n") || since(&[]).contains("gone.rs"), "{}", since(&[]));
    assert!(!since(&["--from", "one"]).contains("gone.rs"), "{}", since(&["--from", "one"]));
    for path in ["M\tREADME\n", "T\tfolder\n", "made\n", "link\n"] {
        assert!(since(&["--from", "one"]).contains(path), "{}", since(&["--from", "one"]));
    }
    home.ok(&["restore", "one", "--name", "restored"]);
    assert_eq!(home.ok(&["diff", "restored", "--from", "one"]), "");
    assert_eq!(home.zeno(&["diff", "restored"]).code, 0);
    assert_eq!(yard.see("restored"), before);
    assert_eq!(home.ok(&["fork", "box", "-n", "2", "--name", "fork"]), "fork-1\nfork-2\n");
    assert_eq!((yard.see("fork-1"), yard.see("fork-2")), (after.clone(), after.clone()));
    assert_eq!(home.exec("fork-1", "rm -rf /tmp/* ~/real README").code, 0);
    assert_eq!((yard.see("fork-2"), yard.see("box")), (after.clone(), after));

    let id = home.json(&["get", "box"])["id"].clone();
    assert_eq!(home.ok(&["rollback", "box", "one"]), "box  active\n");
    assert_eq!(yard.see("box"), before);
    assert_eq!(home.json(&["get", "box"])["id"], id);
    // Stopped and started, it is the same still.
    home.ok(&["stop", "box"]);
    home.ok(&["start", "box"]);
    assert_eq!(yard.see("box"), before);
    let caveats = home.json(&["get", "fork-1"])["caveats"].as_array().unwrap().clone();
    assert!(caveats.iter().any(|caveat| caveat["kind"] == "processes"), "{caveats:?}");
    assert!(yard.is_untouched());
}

#[test]
fn a_tree_of_snapshots_and_what_becomes_of_it() {
    let home = Home::new();
    home.create("box", &["-e", "WORD=here", "--label", "team=a", "--pids", "100", "--best-effort"]);
    for number in ["1", "2", "3"] {
        home.exec("box", &format!("echo {number} > /tmp/number"));
        home.ok(&["snapshot", "box", "--name", &format!("s{number}")]);
    }
    home.ok(&["rollback", "box", "s1"]);
    home.exec("box", "echo other > /tmp/number");
    home.ok(&["snapshot", "box", "--name", "other"]);
    insta::assert_snapshot!(names(&home.ok(&["snapshots", "--tree"])), @"
    NAME
    s1
      s2
        s3
      other
    ");
    let shown = home.json(&["snapshots", "get", "s2"]);
    assert_eq!(
        (&shown["depth"], &shown["reason"], &shown["sandbox_name"]),
        (&json!(2), &json!("asked"), &json!("box"))
    );
    // Nothing was written since: no new layer.
    home.ok(&["snapshot", "box", "--name", "same"]);
    assert_eq!(
        home.json(&["snapshots", "get", "same"])["depth"],
        home.json(&["snapshots", "get", "other"])["depth"]
    );
    // What stands on one that goes stays whole, and so does the family.
    home.ok(&["restore", "s3", "--name", "b"]);
    home.ok(&["snapshots", "rm", "s2", "s3"]);
    home.ok(&["destroy", "box"]);
    home.ok(&["gc"]);
    assert_eq!(home.exec("b", "cat /tmp/number; echo $WORD").out(), "3\nhere\n");
    home.ok(&["stop", "b"]);
    home.ok(&["start", "b"]);
    assert_eq!(home.exec("b", "cat /tmp/number").out(), "3\n");
    let record = home.json(&["get", "b"]);
    assert_eq!((&record["labels"], &record["limits"]["pids"]), (&json!({"team": "a"}), &json!(100)));
    assert_eq!(record["snapshot"], home.json(&["snapshots", "get", "s1"])["id"]);
    insta::assert_snapshot!(names(&home.ok(&["snapshots", "--of", "box", "--tree"])), @"
    NAME
    s1
      other
        same
    ");
    home.ok(&["destroy", "b"]);
    home.ok(&["snapshots", "rm", "s1", "other", "same"]);
    let found = home.json(&["gc", "--dry-run"]);
    assert_eq!(found["items"].as_array().unwrap().len(), 4, "{found}");
    let removed = home.json(&["gc"]);
    assert_eq!((&removed["items"], &removed["size"]), (&found["items"], &found["size"]));
    assert_eq!(home.json(&["gc"])["items"], json!([]));
    assert_eq!(std::fs::read_dir(home.path().join("layers")).unwrap().count(), 0);
}

#[test]
fn one_that_runs_goes_on_and_is_whole_in_its_snapshot() {
    let home = Home::new();
    home.create("box", &[]);
    // Two files that always say the same, unless they are looked at in between; links, holes, marks.
    home.exec(
        "box",
        "mkdir /tmp/dir; rm -rf /usr/share/doc 2>/dev/null; echo x > /tmp/one; ln /tmp/one /tmp/two
         truncate -s 100M /tmp/hole; echo end >> /tmp/hole; mkfifo /tmp/fifo; ln -s nowhere /tmp/link
         echo secret > /tmp/closed; chmod 0 /tmp/closed; mkdir /tmp/shut; echo in > /tmp/shut/in; chmod 0 /tmp/shut",
    );
    let number = home.detach(
        "box",
        "i=0; while :; do i=$((i+1)); echo $i > /tmp/dir/$((i % 50)); echo $i > /tmp/next; mv /tmp/next /tmp/last; echo $i; done",
    );
    let count = || home.ok(&["logs", "--exec", &number, "box"]).lines().count();
    until("it to count", || (count() > 100).then_some(()));
    home.ok(&["snapshot", "box", "--name", "live"]);
    let then = count();
    until("it to go on", || (count() > then + 10).then_some(()));
    assert_eq!(home.state("box"), "active");
    home.ok(&["restore", "live", "--name", "copy"]);
    let seen = home.exec(
        "copy",
        "test /tmp/one -ef /tmp/two && stat -c '%h %s' /tmp/one /tmp/hole; test $(stat -c %b /tmp/hole) -lt 100 && echo hole
         test -p /tmp/fifo && readlink /tmp/link; stat -c '%a %s' /tmp/closed; chmod 700 /tmp/shut; ls -A /tmp/shut",
    );
    assert_eq!(seen.out(), "2 2\n1 104857604\nhole\nnowhere\n0 7\nin\n", "{seen}");
    let last: u64 = home.exec("copy", "cat /tmp/last").out().trim().parse().unwrap();
    let largest =
        home.exec("copy", "cat /tmp/dir/* | sort -n | tail -1").out().trim().parse::<u64>().unwrap();
    // The shell stood still between two of its steps.
    assert!(largest == last || largest == last + 1, "{largest} {last}");
    assert_eq!(home.exec("copy", "ls /usr/share/doc").code == 0, !is_root());

    // One that is paused stays so.
    home.ok(&["pause", "box"]);
    home.ok(&["snapshot", "box", "--name", "paused"]);
    assert_eq!(home.state("box"), "paused");
    let paused = count();
    home.ok(&["resume", "box"]);
    until("it to go on", || (count() > paused + 10).then_some(()));
    // Back where it was, without what ran.
    home.ok(&["rollback", "box", "live"]);
    assert_eq!(home.exec("box", "cat /tmp/last; pgrep -c sleep").out(), format!("{last}\n0\n"));
    assert_eq!(home.zeno(&["snapshot", "box"]).code, 0);
}

/// A sandbox without commands is made anew around its snapshot, and one that is stopped around its start.
#[test]
fn numbers_of_commands_go_on_whatever_becomes_of_the_processes() {
    let home = Home::new();
    home.create("box", &[]);
    let next = || -> u32 { home.detach("box", "true").parse().unwrap() };
    let idle = || {
        until("no command to run", || {
            let execs = home.json(&["execs", "box"]);
            execs.as_array().unwrap().iter().all(|exec| !exec["outcome"].is_null()).then_some(())
        });
    };
    assert_eq!((next(), next()), (1, 2));
    idle();
    home.ok(&["snapshot", "box", "--name", "first"]);
    assert_eq!(next(), 3);
    idle();
    home.ok(&["rollback", "box", "first"]);
    home.ok(&["snapshot", "box"]);
    assert_eq!(next(), 4);
    idle();
    home.ok(&["stop", "box"]);
    home.ok(&["start", "box"]);
    assert_eq!(next(), 5);
    // What comes of a snapshot begins by itself.
    home.ok(&["restore", "first", "--name", "other"]);
    assert_eq!(home.detach("other", "true"), "1");
}

/// Each is a copy of all that was written since the sandbox last stood still, but holds only what its parent has not.
#[test]
fn the_size_of_a_snapshot_of_one_that_runs_is_what_came_since_its_parent() {
    let home = Home::new();
    home.create("box", &[]);
    home.detach("box", "exec sleep 1000");
    let size = |name: &str| {
        home.ok(&["snapshot", "box", "--name", name]);
        let counted = || home.json(&["snapshots", "get", name])["size"].as_str().map(str::to_owned);
        match until("it to be counted", counted).as_str() {
            // Nobody can ask for as little as that.
            "0B" => 0,
            size => size.parse::<Size>().unwrap().0 >> 10,
        }
    };
    home.exec("box", "head -c 4M /dev/urandom > /tmp/large; echo x > /tmp/small");
    let first = size("first");
    assert!((4096..5000).contains(&first), "{first} KiB");
    home.exec("box", "head -c 1M /dev/urandom > /tmp/more; echo y >> /tmp/small");
    let second = size("second");
    assert!((1024..2000).contains(&second), "{second} KiB");
    home.exec("box", "rm /tmp/more");
    assert_eq!(size("third"), 0);
}

/// It is a copy, which the sandbox never stood on.
#[test]
fn what_changed_since_a_snapshot_of_one_that_ran() {
    let home = Home::new();
    let yard = Yard::new(&home);
    assert_eq!(home.exec("box", "echo early > early; rm -r folder; mv src lib; echo a > /tmp/a").code, 0);
    home.ok(&["snapshot", "box", "--name", "sealed"]);
    assert_eq!(home.exec("box", "echo 1 > lib/main.rs; echo more >> early; echo b > /tmp/b").code, 0);
    home.detach("box", "exec sleep 1000");
    home.ok(&["snapshot", "box", "--name", "live"]);
    let since = |options: &[&str]| home.ok(&[&["diff", "box", "--from", "live"], options].concat());
    assert_eq!(since(&[]), "");
    let late = "echo late > late; rm early; chmod 755 README; echo 2 > lib/main.rs; echo more >> /tmp/a; mv /tmp/b /tmp/c";
    assert_eq!(home.exec("box", late).code, 0);
    assert_eq!(
        since(&["--name-status"]),
        "D\tearly\nM\tREADME\nA\tlate\nM\tlib/main.rs\nM\t/tmp/a\nR100\t/tmp/b\t/tmp/c\n"
    );
    insta::assert_snapshot!(since(&["--patch", home.yard().join("repository/lib").to_str().unwrap()]), @"
    diff --git a/lib/main.rs b/lib/main.rs
    index d00491fd7e5bb6fa28c517a0bb32b8b506539d4d..0cfbf08886fca9a91cb753ec8734c84fcbe52c9f 100644
    --- a/lib/main.rs
    +++ b/lib/main.rs
    @@ -1 +1 @@
    -1
    +2
    ");
    // Two are compared by what each changed since then, too, although neither stands on it.
    home.ok(&["fork", "box", "--name", "fork"]);
    assert_eq!(home.exec("fork", "echo 3 > lib/main.rs; echo theirs > theirs").code, 0);
    let between = home.json(&["diff", "box", "fork", "--from", "live"]);
    let sums = ["one", "other", "different", "same"].map(|what| between[what].clone());
    assert_eq!(sums, [json!([]), json!(["theirs"]), json!(["lib/main.rs"]), json!(3)], "{between}");
    assert_eq!(
        home.ok(&["diff", "box", "fork", "--from", "live", "--name-status"]),
        "M\tlib/main.rs\nA\ttheirs\n"
    );
    assert!(yard.is_untouched());
}

#[test]
fn a_deep_stack_reads_the_same_and_becomes_shallow() {
    let home = Home::new();
    home.create("box", &[]);
    let mut numbers = String::new();
    for number in 0..40 {
        let line = format!(
            "mkdir -p /tmp/d; echo {number} > /tmp/d/{number}; echo {number} > /tmp/last; rm -rf /tmp/d/{}; rm -rf /tmp/x
             mkdir /tmp/x; echo {number} > /tmp/x/{number}; mv /tmp/d /tmp/e; mv /tmp/e /tmp/d",
            number / 2
        );
        assert_eq!(home.exec("box", &line).code, 0);
        home.ok(&["snapshot", "box", "--name", &format!("s{number}")]);
        numbers = home.exec("box", SHOW).out();
    }
    let depth = |name: &str| home.json(&["snapshots", "get", name])["depth"].as_u64().unwrap();
    until("the last to be shallow", || (depth("s39") <= 8 && depth("s20") <= 8).then_some(()));
    for (name, last) in [("s39", 39), ("s20", 20), ("s3", 3)] {
        home.ok(&["restore", name, "--name", &format!("of-{name}")]);
        let seen = home.exec(&format!("of-{name}"), "cat /tmp/last; ls /tmp/x").out();
        assert_eq!(seen, format!("{last}\n{last}\n"));
    }
    assert_eq!(home.exec("of-s39", SHOW).out(), numbers);
    // Whatever was made one of what: since then, it is the same that changed.
    for from in [39, 20, 9, 3] {
        let since = home.ok(&["diff", "box", "--name-status", "--from", &format!("s{from}")]);
        assert_eq!(since, changed_since(from), "s{from}");
    }
    home.ok(&["stop", "box"]);
    home.ok(&["gc"]);
    home.ok(&["start", "box"]);
    assert_eq!(home.exec("box", SHOW).out(), numbers);
    home.ok(&["rollback", "box", "s20"]);
    assert_eq!(home.exec("box", "cat /tmp/last").out(), "20\n");
    let plan = std::fs::read(
        home.path()
            .join("sandboxes")
            .join(home.json(&["get", "box"])["id"].as_str().unwrap())
            .join("plan.json"),
    );
    let plan: serde_json::Value = serde_json::from_slice(&plan.unwrap()).unwrap();
    assert!(plan["layers"].as_array().unwrap().len() <= 8, "{}", plan["layers"]);
}

/// What the last of the 40 steps of above made of the state after this one.
fn changed_since(from: u32) -> String {
    if from == 39 {
        return String::new();
    }
    // Each step writes the file of its number, and removes that of half of it.
    let in_folder = |step: u32| (step / 2 + 1..=step).map(|number| format!("/tmp/d/{number}"));
    let (before, after): (Vec<_>, Vec<_>) = (in_folder(from).collect(), in_folder(39).collect());
    let mut lines: Vec<_> = before.iter().filter(|path| !after.contains(path)).cloned().collect();
    lines.push(format!("/tmp/x/{from}"));
    lines.sort();
    let mut new: Vec<_> = after.iter().filter(|path| !before.contains(path)).cloned().collect();
    new.extend(["/tmp/last".to_owned(), "/tmp/x/39".to_owned()]);
    new.sort();
    let letter = |path: &str| if path == "/tmp/last" { 'M' } else { 'A' };
    let gone = lines.iter().map(|path| format!("D\t{path}\n"));
    gone.chain(new.iter().map(|path| format!("{}\t{path}\n", letter(path)))).collect()
}

const SHOW: &str = "find /tmp -printf '%p %y %m\\n' | sort; cat /tmp/d/*";

/// Kills the daemon while it is at work, a little later each time, and looks what the next one makes of it.
#[test]
fn a_daemon_that_is_killed_leaves_the_old_or_the_new() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo base > /tmp/n");
    home.ok(&["snapshot", "box", "--name", "base"]);
    for round in 0..ROUNDS {
        let text = format!("{round}\n");
        assert_eq!(home.exec("box", &format!("echo {round} > /tmp/n")).code, 0);
        let name = format!("s{round}");
        let (work, outcomes) = match round % 3 {
            0 => (vec!["snapshot", "box", "--name", &name], vec![text.as_str()]),
            1 => (vec!["rollback", "box", "base"], vec![text.as_str(), "base\n"]),
            _ => (vec!["fork", "box", "--name", &name], vec![text.as_str()]),
        };
        let mut at_work = home.command(&work).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(400 * u64::from(round)));
        home.crash();
        end(&mut at_work);
        let seen = home.exec("box", "cat /tmp/n");
        assert!(outcomes.contains(&seen.out().as_str()), "round {round}, {work:?}: {seen}");
        assert_eq!(home.state("box"), "active", "round {round}, {work:?}");
        // What is there is whole.
        let snapshots = home.json(&["snapshots"]);
        for snapshot in snapshots.as_array().unwrap() {
            let called = snapshot["name"].as_str().map(str::to_owned);
            let expected = match &called {
                Some(name) if name == "base" => "base\n".to_owned(),
                Some(name) => format!("{}\n", &name[1..]),
                None => continue,
            };
            home.ok(&["restore", called.as_deref().unwrap(), "--name", "look"]);
            assert_eq!(home.exec("look", "cat /tmp/n").out(), expected, "round {round}, {work:?}");
            home.ok(&["destroy", "look"]);
        }
        let fork = home.zeno(&["get", &name, "--json"]);
        if fork.code == 0 {
            let fork: serde_json::Value = serde_json::from_str(&fork.out()).unwrap();
            if fork["state"] == "failed" {
                // Killed while it made this one: it says so, and is there to be destroyed.
                assert!(fork["reason"].as_str().unwrap().contains("half-way"), "round {round}: {fork}");
            } else {
                let seen = home.exec(&name, "cat /tmp/n");
                assert_eq!(seen.out(), text, "round {round}, {work:?}: {seen}, {fork}");
            }
            home.ok(&["destroy", &name]);
        }
        if round % 3 == 0 && home.zeno(&["snapshots", "get", &name]).code == 0 {
            home.ok(&["snapshots", "rm", &name]);
        }
        home.ok(&["gc"]);
    }
    assert_eq!(std::fs::read_dir(home.path().join("trash")).unwrap().count(), 0);
}

const ROUNDS: u32 = 30;

#[test]
fn nothing_is_lost_because_a_clock_ran_out() {
    let home = Home::new();
    let timed = home.run(&["--timeout", "3s", "--label", "k=v"], "echo half > /tmp/work; sleep 100");
    assert_eq!(timed.code, 124, "{timed}");
    let id = kept(&timed);
    let snapshot = home.json(&["snapshots", "get", &id]);
    assert_eq!((&snapshot["reason"], &snapshot["labels"]), (&json!("timeout"), &json!({"k": "v"})));
    assert!(snapshot["expires"].is_string(), "{snapshot}");
    home.ok(&["restore", &id, "--name", "again"]);
    assert_eq!(home.exec("again", "cat /tmp/work").out(), "half\n");
    // The sandbox's own time is a clock as well.
    for on_expire in ["stop", "destroy"] {
        let options = ["--ttl", "5s", "--on-expire", on_expire];
        let expired = home.run(&options, "echo half > /tmp/work; sleep 100");
        assert_eq!(expired.code, 125, "{expired}");
        let told = "zeno: the sandbox ended first: its time was over; give more with --ttl\n";
        assert!(expired.err().contains(told), "{expired}");
        let id = kept(&expired);
        assert_eq!(home.json(&["snapshots", "get", &id])["reason"], "expired");
        home.ok(&["restore", &id, "--name", on_expire]);
        let seen = home.exec(on_expire, "cat /tmp/work; echo $HOME");
        assert_eq!(seen.out(), format!("half\n{}\n", home.yard().display()), "files and environment");
    }
    // Who wrote nothing has nothing to keep, and who was done does not want it kept.
    for options in [
        (&["--timeout", "200ms"][..], "sleep 100"),
        (&["--ttl", "3s"], "sleep 100"),
        (&[], "echo done > /tmp/work; exit 3"),
    ] {
        let ran = home.run(options.0, options.1);
        assert!(!ran.err().contains("kept"), "{ran}");
    }
    let lines = home.zeno(&[
        "run",
        "--json",
        "--no-workspace",
        "--timeout",
        "3s",
        "--",
        "sh",
        "-c",
        "echo > /tmp/a; sleep 99",
    ]);
    let last: serde_json::Value = serde_json::from_str(lines.out().lines().last().unwrap()).unwrap();
    assert_eq!((&last["kind"], &last["snapshot"]["reason"]), (&json!("removed"), &json!("timeout")));

    home.create("goes", &["--ttl", "5s", "--on-expire", "destroy"]);
    home.exec("goes", "echo mine > /tmp/mine");
    until("it to go", || (home.zeno(&["get", "goes"]).code == 6).then_some(()));
    let kept = home.json(&["snapshots", "--of", "goes"]);
    assert_eq!(kept[0]["reason"], "expired", "{kept}");
    home.ok(&["restore", kept[0]["id"].as_str().unwrap(), "--name", "back"]);
    assert_eq!(home.exec("back", "cat /tmp/mine").out(), "mine\n");
}

#[test]
fn nothing_is_lost_because_a_clock_ran_out_unseen() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let line = "echo half > /tmp/work; sleep 100";
    let options = ["run", "--no-workspace", "--ttl", "15s", "--label", "k=v", "--", "sh", "-c", line];
    let left = home.command(&options).spawn().unwrap();
    let id = until("it to be there", || home.ok(&["list", "-q"]).lines().next().map(str::to_owned));
    until("it to work", || (home.exec(&id, "cat /tmp/work").out() == "half\n").then_some(()));
    home.crash();
    assert_ne!(finish(left, b"").code, 0);
    until("its time to be over", || home.processes().is_empty().then_some(()));
    assert_eq!(home.daemon(), None, "nobody was there to see it");

    let snapshots = home.json(&["snapshots", "--of", &id]);
    assert_eq!((&snapshots[0]["reason"], &snapshots[0]["labels"]), (&json!("expired"), &json!({"k": "v"})));
    let record = home.json(&["get", &id]);
    assert_eq!(record["state"], "destroyed", "{record}");
    assert!(record["reason"].as_str().unwrap().starts_with("its time was over at"), "{record}");
    home.ok(&["restore", snapshots[0]["id"].as_str().unwrap(), "--name", "back"]);
    assert_eq!(home.exec("back", "cat /tmp/work").out(), "half\n");
    // Its environment was known only to the daemon that ended.
    let caveats = home.json(&["get", "back"])["caveats"].clone();
    assert!(caveats.to_string().contains("no environment variables are known"), "{caveats}");
}

#[test]
fn what_cannot_be_is_refused_with_the_way_out() {
    let home = Home::new();
    home.create("a", &[]);
    home.create("b", &[]);
    home.exec("a", "echo a > /tmp/a");
    home.ok(&["snapshot", "a", "--name", "s"]);
    insta::assert_snapshot!(home.plain(&home.zeno(&["snapshot", "b", "--name", "s"])), @"
    ------- stderr -------
    error: the name `s` is taken by another snapshot
      try: choose another name, or remove that snapshot: `zeno snapshots rm s`
    [exit 2]
    ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["rollback", "b", "s"])), @"
    ------- stderr -------
    error: `s` is no snapshot of sandbox `b` or of what it was made from
      try: make a new sandbox of it: `zeno restore s`
      try: see which there are: `zeno snapshots --tree`
    [exit 4]
    ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["rollback", "b"])), @"
    ------- stderr -------
    error: sandbox `b` stands on no snapshot
      try: make one first: `zeno snapshot b`
    [exit 6]
    ");
    insta::assert_snapshot!(home.plain(&home.zeno(&["restore", "t"])), @"
    ------- stderr -------
    error: there is no snapshot `t`
      try: did you mean `s`?
      try: see which there are: `zeno snapshots`
    [exit 6]
    ");
    assert_eq!(home.zeno(&["fork", "a", "-n", "0"]).code, 2);
    // One that cannot be made does not keep the other.
    home.create("x-1", &[]);
    let forked = home.zeno(&["fork", "a", "-n", "2", "--name", "x"]);
    assert_eq!((forked.code, forked.out().as_str()), (2, "x-2\n"), "{forked}");
    assert!(forked.err().contains("the name `x-1` is taken"), "{forked}");
    assert_eq!(home.exec("x-2", "cat /tmp/a").out(), "a\n");
}

/// The snapshot that a throwaway left, as it is told.
#[track_caller]
fn kept(ran: &Ran) -> String {
    let told = ran.err();
    let line = told.lines().find_map(|line| line.strip_prefix("zeno: what it wrote is kept: zeno restore "));
    let id = line.and_then(|line| line.split(',').next());
    id.unwrap_or_else(|| panic!("nothing was kept: {ran}")).to_owned()
}

fn names(table: &str) -> String {
    let name = |line: &str| {
        let end = line.trim_start().split(' ').next().unwrap().len() + line.len() - line.trim_start().len();
        line[..end].to_owned()
    };
    table.lines().map(name).collect::<Vec<_>>().join("\n")
}

/// A repository with a sandbox called `box`.
struct Yard<'a> {
    home: &'a Home,
    before: crate::files::Listing,
}

impl<'a> Yard<'a> {
    fn new(home: &'a Home) -> Self {
        let repository = home.yard().join("repository");
        for (name, text) in [
            ("repository/.gitignore", "node_modules\n"),
            ("repository/README", "readme\n"),
            ("repository/run.sh", "#!/bin/sh\n"),
            ("repository/src/main.rs", "fn main() {}\n"),
            ("repository/src/gone.rs", "gone\n"),
            ("repository/folder/old", "old\n"),
            ("repository/node_modules/a.js", "a\n"),
            ("real/file", "real\n"),
        ] {
            let path = home.yard().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]);
            assert!(command.args(arguments).current_dir(&repository).status().unwrap().success());
        };
        git(&["init", "-q"]);
        git(&["add", "-A"]);
        git(&["commit", "-qm", "first"]);
        let before = crate::files::listing(&home.yard());
        let mut create = home.command(&["create", "--name", "box"]);
        let made = finish(create.current_dir(&repository).spawn().unwrap(), b"");
        assert_eq!(made.code, 0, "{made}");
        home.daemon();
        Self { home, before }
    }

    /// All that a script of this file can have changed.
    #[track_caller]
    fn see(&self, name: &str) -> String {
        let seen = self.home.exec(name, SEE);
        assert_eq!(seen.code, 0, "{seen}");
        seen.out()
    }

    fn is_untouched(&self) -> bool {
        crate::files::listing(&self.home.yard()) == self.before
    }
}
