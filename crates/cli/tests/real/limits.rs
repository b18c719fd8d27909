//! Limits that were asked for: hard, told, and gone with the sandbox.

use serde_json::{Value, json};

use crate::home::{Home, Ran, is_root};
use crate::traces::loops;
use crate::wait::until;

const MIB: u64 = 1 << 20;

/// Fills the sandbox's disk and says how much it took.
fn fill(home: &Home, name: &str) -> u64 {
    let ran = home.exec(name, "dd if=/dev/zero of=/var/tmp/zeno-fill bs=64k; stat -c %s /var/tmp/zeno-fill");
    assert!(ran.err().contains("No space left on device"), "{ran}");
    ran.out().trim().parse().unwrap()
}

fn written(home: &Home, name: &str) -> u64 {
    let text = home.json(&["status", name])["written"].as_str().unwrap().to_owned();
    text.parse::<model::units::Size>().map_or(0, |size| size.0)
}

#[test]
fn a_disk_ends_where_it_was_told_to() {
    let home = Home::new();
    home.create("box", &["--disk", "16MiB"]);
    assert!(written(&home, "box") < MIB);
    let filled = fill(&home, "box");
    assert!((12 * MIB..=16 * MIB).contains(&filled), "{filled}");
    let counted = written(&home, "box");
    assert!((filled..=16 * MIB).contains(&counted), "{counted}");
    // Every part of the view is on the same disk.
    let ran = home.exec("box", "head -c 1M /dev/zero > /tmp/more");
    assert!(ran.err().contains("No space left on device"), "{ran}");
    home.exec("box", "rm /var/tmp/zeno-fill");
    assert!(written(&home, "box") < MIB, "what was removed is free again");
    assert_eq!(home.exec("box", "echo little > /tmp/more; cat /tmp/more").out(), "little\n");
}

#[test]
fn a_disk_survives_stop_or_says_that_it_does_not() {
    let home = Home::new();
    home.create("box", &["--disk", "16MiB"]);
    let caveats = home.json(&["get", "box"])["caveats"].clone();
    let volatile = caveats.as_array().unwrap().iter().any(|caveat| caveat["kind"] == "durability");
    assert_eq!(volatile, !is_root(), "{caveats}");
    let told = if is_root() { "a snapshot copies all of it" } else { "no snapshot can be made of it" };
    assert!(caveats.to_string().contains(told), "{caveats}");
    home.exec("box", "cd /var/tmp; head -c 3M /dev/urandom > kept; sha256sum kept > sum; chmod 600 kept; rm -f /etc/hostname");
    let before = written(&home, "box");
    assert!((3 * MIB..4 * MIB).contains(&before), "{before}");
    home.ok(&["stop", "box"]);
    assert_eq!(loops(&home.path()).len(), 0);
    let check = "cd /var/tmp; sha256sum -c sum; stat -c %a kept; test -e /etc/hostname; echo $?";
    if is_root() {
        let stopped = written(&home, "box");
        assert!(stopped.abs_diff(before) < MIB / 4, "{stopped}, before {before}");
        for _ in 0..3 {
            home.ok(&["start", "box"]);
            assert_eq!(home.exec("box", check).out(), "kept: OK\n600\n1\n");
            home.ok(&["stop", "box"]);
        }
        home.ok(&["start", "box"]);
        let filled = fill(&home, "box");
        assert!((8 * MIB..13 * MIB).contains(&filled), "the limit holds as before: {filled}");
    } else {
        assert_eq!(written(&home, "box"), 0);
        home.ok(&["start", "box"]);
        assert_ne!(home.exec("box", "test -e /var/tmp/kept").code, 0);
        assert!(fill(&home, "box") <= 16 * MIB);
    }
}

/// That nothing is left of a throwaway's disk, and of one that is destroyed, every home looks at its end.
#[test]
fn a_disk_goes_with_its_sandbox_even_without_a_daemon() {
    let home = Home::new();
    assert_eq!(home.run(&["--disk", "16MiB"], "echo > /var/tmp/zeno-file").code, 0);
    assert_eq!(loops(&home.path()).len(), 0);
    home.create("box", &["--disk", "16MiB", "--ttl", "12s"]);
    home.exec("box", "echo text > /var/tmp/zeno-file");
    assert_eq!(loops(&home.path()).len(), usize::from(is_root()));
    home.crash();
    assert_eq!(home.exec("box", "cat /var/tmp/zeno-file").out(), "text\n", "it lives on");
    home.crash();
    until("the sandbox's time to be over", || home.processes().is_empty().then_some(()));
    until("its disk to be let go", || loops(&home.path()).is_empty().then_some(()));
    assert_eq!(home.daemon(), None, "nobody else did it");
}

/// Nothing is lost because a clock ran out, unless it was told before that it would be.
#[test]
fn what_is_on_a_disk_is_kept_when_its_time_is_over() {
    let home = Home::new();
    let options = ["--disk", "16MiB", "--timeout", "3s"];
    let ran = home.run(&options, "echo half > /var/tmp/zeno-work; sleep 1000");
    assert_eq!(ran.code, 124, "{ran}");
    home.create("box", &["--disk", "16MiB", "--ttl", "5s", "--on-expire", "destroy"]);
    let told = home.json(&["get", "box"])["caveats"].to_string();
    home.exec("box", "echo half > /var/tmp/zeno-work");
    until("its time to be over", || (home.zeno(&["get", "box"]).code == 6).then_some(()));
    let kept = home.json(&["snapshots"]);
    let kept = kept.as_array().unwrap();
    if !is_root() {
        assert!(kept.is_empty() && told.contains("the end of its time lose it"), "{kept:?} {told}");
        return;
    }
    let reasons: Vec<_> = kept.iter().map(|kept| kept["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["timeout", "expired"]);
    for (at, kept) in kept.iter().enumerate() {
        let name = format!("again-{at}");
        home.ok(&["restore", kept["id"].as_str().unwrap(), "--name", &name]);
        assert_eq!(home.exec(&name, "cat /var/tmp/zeno-work").out(), "half\n");
    }
}

#[test]
fn what_is_on_a_disk_can_be_compared_and_saved() {
    let home = Home::new();
    home.create("box", &["--disk", "16MiB"]);
    home.exec("box", "echo one > /var/tmp/zeno-note");
    if !is_root() {
        // Only the sandbox sees its memory.
        for verb in [&["diff", "box"][..], &["diff", "box", "--patch"], &["snapshot", "box"]] {
            let refused = home.zeno(verb);
            assert_eq!(refused.code, 4, "{refused}");
            assert!(refused.err().contains("try: make the sandbox without --disk"), "{refused}");
        }
        return;
    }
    let changed = |name: &str| {
        let diff = home.json(&["diff", name]);
        let changes = diff["machine"].as_array().unwrap().iter().map(|change| change["path"].clone());
        changes.filter(|path| path.as_str().unwrap().contains("zeno")).collect::<Vec<_>>()
    };
    assert_eq!(changed("box"), ["/var/tmp/zeno-note"]);
    home.ok(&["snapshot", "box", "--name", "one"]);
    // While something runs, and while nothing can.
    home.detach("box", "sleep 100");
    home.exec("box", "echo two > /var/tmp/zeno-note; echo x > /var/tmp/zeno-more");
    home.ok(&["snapshot", "box", "--name", "two"]);
    home.ok(&["stop", "box"]);
    assert_eq!(changed("box"), ["/var/tmp/zeno-more", "/var/tmp/zeno-note"]);
    home.ok(&["snapshot", "box", "--name", "still-two"]);
    home.ok(&["start", "box"]);

    home.ok(&["rollback", "box", "one"]);
    assert_eq!(home.exec("box", "cat /var/tmp/zeno-*").out(), "one\n");
    let filled = fill(&home, "box");
    assert!((12 * MIB..=16 * MIB).contains(&filled), "the limit holds as before: {filled}");
    for name in ["two", "still-two"] {
        home.ok(&["restore", name, "--name", "look"]);
        assert_eq!(home.exec("look", "cat /var/tmp/zeno-*").out(), "x\ntwo\n");
        assert!(fill(&home, "look") <= 16 * MIB);
        home.ok(&["destroy", "look"]);
    }
    home.ok(&["fork", "box", "--name", "fork"]);
    assert_eq!(home.exec("fork", "rm /var/tmp/zeno-fill; cat /var/tmp/zeno-*").out(), "one\n");
    home.crash();
    assert_eq!(home.exec("fork", "cat /var/tmp/zeno-*").out(), "one\n");
}

#[test]
fn a_disk_that_cannot_be_is_refused() {
    let home = Home::new();
    if !is_root() {
        // In memory, where a disk can have any size.
        assert_eq!(home.run(&["--disk", "100KiB"], "true").code, 0);
        return;
    }
    for (size, why) in
        [("100KiB", "less than the smallest disk"), ("9000000TiB", "could not make a disk image")]
    {
        let ran = home.zeno(&["create", "--no-workspace", "--disk", size, "--json"]);
        assert_eq!(ran.code, 2, "{ran}");
        let problem: Value = serde_json::from_str(&ran.err()).unwrap();
        assert_eq!(problem["code"], "bad_request");
        assert!(problem["causes"][0].as_str().unwrap().contains(why), "{ran}");
    }
    assert_eq!(home.ok(&["list", "-q"]), "");
}

/// A file that is deleted while something holds it open takes its room all the same.
#[test]
fn what_is_deleted_and_held_open_counts_as_written() {
    let home = Home::new();
    home.create("box", &[]);
    let before = written(&home, "box");
    let line =
        "head -c 8M /dev/zero > /var/tmp/held; exec 3< /var/tmp/held 4>> /var/tmp/held; rm /var/tmp/held
                cd /dev/shm; head -c 4M /dev/zero > memory; exec 5< memory; rm memory
                exec 6< /etc/passwd; rm /etc/passwd; echo done; sleep 1000";
    let holding = home.detach("box", line);
    until("the files to be gone", || {
        home.ok(&["logs", "--exec", &holding, "box"]).contains("done").then_some(())
    });
    let held = written(&home, "box") - before;
    assert!(
        (8 * MIB..8 * MIB + MIB / 2).contains(&held),
        "once, and neither memory nor the machine's: {held}"
    );
    home.ok(&["kill", "--signal", "KILL", "box", &holding]);
    until("the room to be free again", || (written(&home, "box") < before + MIB / 2).then_some(()));
}

/// Blocks are only reserved, so that nothing has to be written. Their file is deleted, so that no folder shows them.
#[test]
fn more_than_the_default_disk_limit_stops_a_sandbox_that_says_so() {
    let home = Home::new();
    home.create("box", &[]);
    let status = home.ok(&["status", "box"]);
    assert!(status.contains("limit       the default disk limit of 16GiB is soft: "), "{status}");
    let closed = status.contains("folders that it closed to its own user");
    assert_eq!(closed, !is_root(), "{status}");
    home.create("hard", &["--disk", "16MiB"]);
    let status = home.ok(&["status", "hard"]);
    assert!(!status.contains("is soft"), "{status}");

    let room = rustix::fs::statvfs(home.path()).unwrap();
    assert!(room.f_bavail * room.f_frsize > 18 << 30, "this takes 17 GiB of the disk for a moment");
    let little = home.exec("box", "fallocate -l 1G /var/tmp/zeno-little");
    assert_eq!(little.code, 0, "{little}");
    let line = "exec 3> /var/tmp/zeno-fill; rm /var/tmp/zeno-fill; fallocate -l 16G /proc/self/fd/3; echo $?; sleep 1000";
    let ran = home.exec("box", line);
    let reason = "it wrote 17.0 GiB, more than the default of 16GiB; `--disk` sets another";
    assert_eq!((ran.code, ran.out().as_str()), (125, "0\n"), "{ran}");
    assert_eq!(ran.err(), format!("zeno: the sandbox ended first: {reason}\n"));
    let stopped = until("it to be stopped", || {
        Some(home.json(&["get", "box"])).filter(|sandbox| sandbox["state"] == "stopped")
    });
    assert_eq!(stopped["reason"], reason);
    assert_eq!(written(&home, "box") >> 30, 1, "what was held open is gone with who held it");
    // With that it is below the limit again.
    home.ok(&["start", "box"]);
    assert_eq!(home.exec("box", "stat -c %s /var/tmp/zeno-little").out(), "1073741824\n");
    assert_eq!(home.state("hard"), "ready");
}

/// Where cgroups cannot be used a limit is refused, with the way out; the suite runs where they can, too, and knows.
fn is_refused(ran: &Ran) -> bool {
    let is_refused = ran.code == 125 && ran.err().contains("this machine cannot enforce --");
    let told = model::env::variables().into_iter().find(|variable| variable.name.0 == b"ZENO_TEST_CGROUPS");
    if let Some(cgroups) = told {
        assert_eq!(is_refused, cgroups.value.0 == b"none", "{ran}");
    }
    if is_refused {
        assert!(ran.err().contains("sudo mkdir -p /") && ran.err().contains("--best-effort"), "{ran}");
    }
    is_refused
}

#[test]
fn a_limit_holds_or_is_refused_or_is_named_as_not_enforced() {
    let home = Home::new();
    let ran = home.run(&["--cpus", "0.5"], "timeout 4 sh -c 'while :; do :; done'; times");
    let refused = is_refused(&ran);
    if !refused {
        // The last line is the children's: `0m1.98s 0m0.01s`.
        let told = ran.out();
        let used = told
            .lines()
            .last()
            .and_then(|line| line.split_once('s')?.0.split_once('m')?.1.parse::<f64>().ok());
        assert!(used.is_some_and(|used| used < 3.2), "half a processor for four seconds: {ran}");
    }
    let best_effort =
        home.zeno(&["create", "--no-workspace", "--name", "loose", "--cpus", "0.5", "--best-effort"]);
    assert_eq!(best_effort.code, 0, "{best_effort}");
    let caveats = home.json(&["get", "loose"])["caveats"].to_string();
    assert_eq!(caveats.contains("--cpus"), refused, "{caveats}");
}

#[test]
fn want_of_memory_is_told() {
    let home = Home::new();
    let told = "zeno: killed: out of memory (limit 64MiB); give more with --memory\n";
    // `tail` keeps the last line, and zeros have no end of line.
    let ran = home.zeno(&["run", "--no-workspace", "--memory", "64MiB", "--", "tail", "/dev/zero"]);
    if is_refused(&ran) {
        return;
    }
    assert_eq!((ran.code, ran.err().as_str()), (137, told), "the command itself was killed");
    // And one that it started.
    let ran = home.run(&["--memory", "64MiB"], "tail /dev/zero; exit 3");
    assert!(ran.code == 3 && ran.err().ends_with(told), "{ran}");

    home.create("box", &["--memory", "64MiB"]);
    let answer = home.ask("POST", "/v1/sandboxes/box/exec", br#"{"argv":["tail","/dev/zero"]}"#);
    let outcome = answer.lines().last().unwrap()["outcome"].clone();
    assert_eq!(outcome, json!({ "kind": "out-of-memory", "code": 137, "limit": "64MiB" }));
    let memory = home.json(&["status", "box"])["memory"].clone();
    assert_eq!(memory["killed"], 1);
    // What was killed before is not held against the next.
    let ran = home.exec("box", "kill -9 $$");
    assert_eq!((ran.code, ran.err().as_str()), (137, ""));
    let ran = home.exec("box", "tail /dev/zero; exit 0");
    assert!(ran.code == 0 && !ran.err().contains("zeno:"), "who copes with it does not fail: {ran}");
}

#[test]
fn nothing_is_lost_for_want_of_memory() {
    let home = Home::new();
    let ran = home.run(&["--memory", "64MiB"], "echo half > /tmp/work; exec tail /dev/zero");
    if is_refused(&ran) {
        return;
    }
    assert_eq!(ran.code, 137, "{ran}");
    let told = ran.err();
    let kept = told.split_whitespace().map(|word| word.trim_matches(',')).find(|word| word.starts_with("sn"));
    let kept = kept.unwrap_or_else(|| panic!("{ran}"));
    assert_eq!(home.json(&["snapshots", "get", kept])["reason"], "out-of-memory");
    home.ok(&["restore", kept, "--name", "again"]);
    assert_eq!(home.exec("again", "cat /tmp/work").out(), "half\n");
}

#[test]
fn a_limit_of_zero_is_refused_by_every_face() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    for (name, zero) in [("memory", "\"0B\""), ("disk", "\"0\""), ("pids", "0"), ("cpus", "\"0\"")] {
        let body = format!(r#"{{"limits":{{"{name}":{zero}}}}}"#);
        let answer = home.ask("POST", "/v1/sandboxes", body.as_bytes());
        let problem = answer.json();
        assert_eq!((answer.status, &problem["code"]), (400, &json!("bad_request")), "{problem}");
        assert!(problem.to_string().contains(if name == "cpus" { "processors" } else { name }), "{problem}");
        let ran = home.zeno(&["create", "--no-workspace", &format!("--{name}"), "0"]);
        assert_eq!(ran.code, 2, "{ran}");
    }
    assert_eq!(home.ok(&["list", "-a", "-q"]), "");
}
