//! `zeno run`: exit codes, bytes, environment, and a host that notices nothing.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::home::{Home, Ran, finish, is_root};
use crate::wait::{end, until};
use crate::yard::git;

#[test]
fn every_exit_code_is_the_commands_own() {
    let home = Home::new();
    home.create("codes", &[]);
    // One sandbox: what is under test is the way of the code, and that is the same.
    for code in 0..=255 {
        let ran = home.zeno(&["exec", "codes", "--", "sh", "-c", &format!("exit {code}")]);
        assert_eq!(ran.code, code, "{ran}");
    }
    for code in [0, 1, 7, 124, 125, 126, 127, 128, 255] {
        assert_eq!(home.run(&[], &format!("exit {code}")).code, code);
    }
    for signal in [1, 2, 3, 6, 9, 11, 13, 14, 15, 31, 34, 64] {
        let ran = home.run(&[], &format!("kill -{signal} $$"));
        assert_eq!((ran.code, ran.err().as_str()), (128 + signal, ""), "signal {signal}");
    }
}

#[test]
fn what_cannot_be_started_is_told_as_a_shell_does() {
    let home = Home::new();
    let plain = home.yard().join("plain");
    fs::write(&plain, "not a program").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let check = |arguments: &[&str], code: i32, said: &str| {
        let ran = home.zeno(&[&["run", "--no-workspace"], arguments].concat());
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.err().contains(said), "{ran}");
    };
    check(&["--", "no-such-program"], 127, "no-such-program");
    check(&["--", "/no/such/program"], 127, "/no/such/program");
    check(&["--", plain.to_str().unwrap()], 126, "plain");
    check(&["--", "/"], 126, "`/`");
    check(&["-w", "/no/such/folder", "--", "true"], 125, "/no/such/folder");
    check(&["-u", "no-such-user", "--", "true"], 125, "no-such-user");
    // A script without `#!` is run by a shell.
    fs::write(&plain, "exit 9").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
    check(&["--", plain.to_str().unwrap()], 9, "");
}

#[test]
fn a_timeout_ends_the_command_and_all_it_started() {
    let home = Home::new();
    home.create("late", &[]);
    let deaf = "trap '' TERM INT HUP; (trap '' TERM; setsid sh -c 'sleep 1001 & exec sleep 1002') & \
                setsid sleep 1003 & (setsid setsid sleep 1004 &); (setsid sh -c '(sleep 1005 &)' &); \
                while :; do sleep 1; done";
    let start = Instant::now();
    home.detach("late", "exec sleep 1006");
    let ran = home.zeno(&["exec", "--timeout", "3s", "late", "--", "sh", "-c", deaf]);
    assert_eq!(ran.code, 124, "{ran}");
    assert_eq!(ran.err(), "zeno: the command ran out of time\n");
    assert!(start.elapsed().as_secs() < 10, "it ended at its time, not at its leisure");
    let left = home.exec("late", "ps -eo args | grep '[s]leep 100'; true");
    assert_eq!(left.out(), "sleep 1006\n", "what it started is gone too, what another started is not");

    assert_eq!(home.run(&["--timeout", "300ms"], deaf).code, 124);
    assert_eq!(home.run(&["--timeout", "60s"], "exit 5").code, 5);
}

#[test]
fn both_outputs_are_apart_and_exact_to_the_byte() {
    let home = Home::new();
    let yard = home.yard();
    let mut random = vec![0; 10 << 20];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    let mut other = random.clone();
    other.reverse();
    fs::write(yard.join("one"), &random).unwrap();
    fs::write(yard.join("two"), &other).unwrap();
    let ran = home.run(&[], "cat two >&2 & cat one; wait");
    assert_eq!(ran.code, 0);
    // Not assert_eq: nobody wants to read ten mebibytes of difference.
    assert!(ran.stdout == random, "standard output: {} bytes", ran.stdout.len());
    assert!(ran.stderr == other, "standard error: {} bytes", ran.stderr.len());

    let mut through = home.command(&["run", "--no-workspace", "--", "cat"]);
    let ran = finish(through.stdin(Stdio::piped()).spawn().unwrap(), &random);
    assert!(ran.code == 0 && ran.stdout == random, "through: {} bytes", ran.stdout.len());
}

#[test]
fn input_streams_and_its_end_arrives() {
    let home = Home::new();
    let mut child = home
        .command(&["run", "--no-workspace", "--", "sh", "-c", "read a; echo got $a; cat; echo end"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(b"first\n").unwrap();
    let mut answer = [0; 10];
    stdout.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"got first\n", "answered before the input ended");
    stdin.write_all(b"second\n").unwrap();
    drop(stdin);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "second\nend\n");
    assert_eq!(end(&mut child).code(), Some(0));

    // A command that reads nothing does not hang on input that nobody takes.
    let mut deaf = home.command(&["run", "--no-workspace", "--", "true"]);
    let mut child = deaf.stdin(Stdio::piped()).spawn().unwrap();
    let _held = child.stdin.take();
    assert_eq!(end(&mut child).code(), Some(0));
}

#[test]
fn a_command_finds_itself_where_its_caller_stands() {
    let home = Home::new();
    let yard = home.yard();
    fs::create_dir(yard.join("deep")).unwrap();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let ran = home.run(&[], "pwd; id -u; id -g; umask; echo $HOME");
    let yard = yard.display();
    let umask = fs::read_to_string("/proc/self/status").unwrap();
    let umask = umask.lines().find_map(|line| line.strip_prefix("Umask:\t")).unwrap();
    assert_eq!(ran.out(), format!("{yard}\n{uid}\n{gid}\n{umask}\n{yard}\n"));

    let ran = home.run(&["-e", "A=1 2", "-e", "HOME", "-e", "NOT_SET", "-w", "deep"], "pwd; echo $A; env");
    assert!(ran.out().starts_with(&format!("{yard}/deep\n1 2\n")), "{ran}");
    assert!(!ran.out().contains("NOT_SET"), "{ran}");

    home.create("made", &["-e", "A=made", "-e", "B=made", "-w", "deep"]);
    let ran = home.zeno(&["exec", "-e", "B=exec", "made", "--", "sh", "-c", "pwd; echo $A $B"]);
    assert_eq!(ran.out(), format!("{yard}/deep\nmade exec\n"));
    assert_eq!(home.zeno(&["exec", "-w", "..", "made", "pwd"]).out(), format!("{yard}\n"));
}

/// Not the daemon's, which has that of whoever came first, nor that of what is made ahead of time.
#[test]
fn the_umask_is_that_of_the_callers_shell() {
    let home = Home::new();
    let under = |umask: &str, arguments: &[&str]| {
        let ran = home.zeno_by(&["sh", "-c", &format!("umask {umask}; exec \"$@\""), "sh"], arguments);
        assert_eq!(ran.code, 0, "{ran}");
        ran.out()
    };
    let look = [
        "--",
        "sh",
        "-c",
        "umask; touch /tmp/f; mkdir /tmp/d; stat -c %a /tmp/f /tmp/d; rm -r /tmp/f /tmp/d",
    ];
    let seen = [("077", "0077\n600\n700\n"), ("002", "0002\n664\n775\n"), ("027", "0027\n640\n750\n")];
    for (umask, expected) in seen {
        assert_eq!(under(umask, &[&["run", "--no-workspace"], &look[..]].concat()), expected);
    }
    under("027", &["create", "--no-workspace", "--name", "box"]);
    // A sandbox keeps that of whoever made it, as it keeps the environment.
    assert_eq!(under("077", &[&["exec", "box"], &look[..]].concat()), seen[2].1);
}

/// `/tmp` and `/run` start empty, but a workspace that lies there is there.
#[test]
fn a_workspace_beneath_an_emptied_folder_is_seen_and_nothing_beside_it() {
    let home = Home::new();
    let mut places = vec!["/tmp"];
    // Where an ordinary user may write there differs from machine to machine.
    let below_run = ["/run", "/run/lock", "/run/shm"].into_iter();
    let is_ours = |place: &&str| rustix::fs::access(*place, rustix::fs::Access::WRITE_OK).is_ok();
    places.extend(
        below_run
            .filter(is_ours)
            .find(|place| fs::canonicalize(place).is_ok_and(|real| real.starts_with("/run"))),
    );
    if is_root() {
        assert_eq!(places, ["/tmp", "/run"]);
    }
    for (number, place) in places.into_iter().enumerate() {
        let folder = |prefix| tempfile::Builder::new().prefix(prefix).tempdir_in(place).unwrap();
        let (work, beside) = (folder("zeno-real-work-"), folder("zeno-real-beside-"));
        fs::create_dir(work.path().join("deep")).unwrap();
        fs::write(work.path().join("deep/file"), "frozen\n").unwrap();
        git(work.path(), &["init", "-q"]);
        let name = format!("box{number}");
        home.create_in(&name, work.path());
        fs::write(work.path().join("deep/file"), "changed\n").unwrap();
        let look = format!(
            "pwd; cat deep/file; ls -A {place}; echo inside > deep/new; echo inside > {place}/inside"
        );
        let seen = home.exec(&name, &look).out();
        let mut seen = seen.lines();
        assert_eq!(seen.next(), work.path().to_str());
        assert_eq!(seen.next(), Some("frozen"));
        let names: Vec<_> = seen.collect();
        assert!(names.contains(&work.path().file_name().unwrap().to_str().unwrap()), "{names:?}");
        assert!(!names.contains(&beside.path().file_name().unwrap().to_str().unwrap()), "{names:?}");
        if place == "/tmp" {
            assert_eq!(names.len(), 1, "{names:?}");
        }
        assert!(!work.path().join("deep/new").exists() && !Path::new(place).join("inside").exists());
        let diff = home.json(&["diff", &name]);
        assert_eq!(diff["workspace"][0]["path"], "deep/new", "{diff}");
        assert_eq!(diff["machine"][0]["path"], format!("{place}/inside"), "{diff}");
        // Made again around what it wrote, it sees the same.
        home.ok(&["stop", &name]);
        home.ok(&["start", &name]);
        assert_eq!(
            home.exec(&name, &format!("cat deep/file deep/new {place}/inside")).out(),
            "frozen\ninside\ninside\n"
        );
    }
}

#[test]
fn only_root_has_other_users_to_offer() {
    let home = Home::new();
    let ran =
        home.run(&["-u", "nobody"], "id -un; id -u; echo $HOME; touch /var/tmp/by-nobody && echo wrote");
    if is_root() {
        assert_eq!(ran.out(), "nobody\n65534\n/nonexistent\nwrote\n", "{ran}");
        assert_eq!(home.run(&["-u", "12345:54321"], "id -u; id -g; id -G").out(), "12345\n54321\n54321\n");
    } else {
        insta::assert_snapshot!(ran, @"
        ------- stderr -------
        zeno: a sandbox made by an ordinary user has only that user; sandboxes made by root can have others
        [exit 125]
        ");
    }
    let own = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(home.run(&["-u", &own], "id -u").out(), format!("{own}\n"));
}

#[test]
fn nothing_a_command_does_reaches_the_host() {
    let home = Home::new();
    let yard = home.yard();
    fs::create_dir_all(yard.join("folder/deep")).unwrap();
    fs::write(yard.join("folder/deep/file"), "precious").unwrap();
    fs::write(yard.join("file"), "precious").unwrap();
    let ran = home.run(
        &[],
        "set -e; rm -rf folder; echo changed > file; chmod 600 file; mkdir new; mv file moved; ls; \
         echo x > /tmp/zeno-real-tmp; echo x > /var/tmp/zeno-real-var; test ! -e folder",
    );
    assert_eq!((ran.code, ran.out().as_str()), (0, "moved\nnew\n"), "{ran}");
    assert_eq!(fs::read_to_string(yard.join("folder/deep/file")).unwrap(), "precious");
    assert_eq!(fs::read_to_string(yard.join("file")).unwrap(), "precious");
    assert!(!yard.join("new").exists() && !yard.join("moved").exists());
    for path in ["/tmp/zeno-real-tmp", "/var/tmp/zeno-real-var"] {
        assert!(!fs::exists(path).unwrap(), "{path}");
    }
}

/// A mount may go between the plan of a sandbox and its making. That costs nobody a sandbox, nor those after it. Only root
/// can mount; everyone else has as many in a row.
#[test]
fn mounts_that_come_and_go_cost_no_sandbox() {
    let home = Home::new();
    let place = home.yard().join("restless");
    fs::create_dir(&place).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mount = |words: &[&str]| Command::new(words[0]).args(&words[1..]).arg(&place).status();
            while is_root() && !is_over.load(Ordering::Relaxed) {
                assert!(mount(&["mount", "-t", "tmpfs", "zeno-restless"]).unwrap().success());
                assert!(mount(&["umount"]).unwrap().success());
            }
        });
        let ran: Vec<Ran> = (0..40).map(|_| home.run(&[], "echo here")).collect();
        is_over.store(true, Ordering::Relaxed);
        for ran in ran {
            assert_eq!((ran.code, ran.out().as_str()), (0, "here\n"), "{ran}");
        }
    });
}

/// Only root can mount; for everyone else nothing changes, and that is seen too.
#[test]
fn what_is_mounted_and_unmounted_while_the_daemon_runs_is_seen() {
    let home = Home::new();
    let place = home.yard().join("place");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("below"), "").unwrap();
    let look = || home.run(&[], "ls place").out();
    assert_eq!(look(), "below\n");
    let mount = Command::new("mount").args(["-t", "tmpfs", "zeno-real"]).arg(&place).output().unwrap();
    assert_eq!(mount.status.success(), is_root());
    if is_root() {
        fs::write(place.join("above"), "").unwrap();
    }
    let mounted = look();
    if is_root() {
        assert!(Command::new("umount").arg(&place).status().unwrap().success());
    }
    assert_eq!(mounted, if is_root() { "above\n" } else { "below\n" });
    assert_eq!(look(), "below\n");
}

#[test]
fn a_throwaway_is_gone_when_its_caller_is() {
    let home = Home::new();
    home.ok(&["list"]);
    let before = home.traces();
    assert_eq!(home.run(&[], "sleep 1000 & echo > kept").code, 0);
    // The next init, which is nobody's yet, may be on its way.
    until("all traces of the command to be gone", || (home.traces() == before).then_some(()));

    let mut child = home.command(&["run", "--no-workspace", "--", "sleep", "1000"]).spawn().unwrap();
    until("the sandbox to be used", || home.ok(&["list"]).contains("active").then_some(()));
    assert_ne!(home.traces(), before, "a live one is seen");
    child.kill().unwrap();
    child.wait().unwrap();
    until("the sandbox to be gone", || (home.traces() == before).then_some(()));
    assert_eq!(home.ok(&["list", "-q"]), "");

    let kept = home.run(&["--keep", "--name", "kept"], "echo text > kept");
    assert_eq!(kept.err(), "kept: kept (zeno shell kept, zeno destroy kept)\n");
    assert_eq!(home.exec("kept", "cat kept").out(), "text\n");
}

#[test]
fn a_workspace_is_frozen_and_the_next_one_is_fresh() {
    let home = Home::new();
    let work = home.yard().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("file"), "first").unwrap();
    home.ok(&["create", "--workspace", "work", "--name", "box"]);
    let cat = ["--workspace", "work", "-w", "work", "--", "cat", "file"];
    for round in 0..20 {
        let text = format!("round {round}");
        fs::write(work.join("file"), &text).unwrap();
        assert_eq!(home.zeno(&[&["run"][..], &cat].concat()).out(), text);
    }
    assert_eq!(home.exec("box", "cat work/file").out(), "first");
    let status = home.json(&["status", "box"]);
    assert_eq!(status["freshness"]["behind"], serde_json::json!(["file"]));
    assert_eq!(status["live"], "rest");
    assert!(
        home.ok(&["status", "box"]).contains(
            "1 path moved on since, untouched in the sandbox; the rest of the machine is read live\n"
        )
    );
    home.create("bare", &[]);
    assert_eq!(home.json(&["status", "bare"])["live"], "all");
}

#[test]
fn the_hosts_network_is_there_only_if_asked_for_and_is_named_then() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let dial =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached", listener.local_addr().unwrap().port());
    let run =
        |net: &[&str]| home.zeno(&[&["run", "--no-workspace"], net, &["--", "bash", "-c", &dial]].concat());
    assert_eq!(run(&["--net", "host"]).out(), "reached\n");
    for net in [&[][..], &["--net", "none"]] {
        let ran = run(net);
        assert!(ran.code == 1 && ran.out().is_empty(), "{ran}");
    }
    home.create("open", &["--net", "host"]);
    let caveats = home.json(&["get", "open"])["caveats"].clone();
    assert!(caveats.as_array().unwrap().iter().any(|caveat| caveat["kind"] == "network"), "{caveats}");
    assert_eq!(home.exec("open", "ls -A /sys").out(), "", "what the host's network shows there is not shown");
}
