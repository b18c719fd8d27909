//! The daemon's own life: started when needed, one per home, killed at any moment without loss.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::home::{Home, is_gone, is_root};
use crate::http::Connection;
use crate::traces::{Stat, below, below_launcher};
use crate::wait::{PATIENCE, end, until};

#[test]
fn it_starts_by_itself_once_and_in_private() {
    let home = Home::new();
    assert_eq!(home.zeno(&["daemon", "status"]).code, 3);
    let pids: Vec<_> = thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| home.json(&["daemon", "start"]))).collect();
        calls.into_iter().map(|call| call.join().unwrap()["health"]["pid"].clone()).collect()
    });
    assert!(pids.iter().all(|pid| *pid == json!(home.daemon().unwrap())), "{pids:?}");
    let daemon = home.daemon().unwrap();
    assert_eq!(fs::read_to_string(format!("/proc/{daemon}/comm")).unwrap(), "zeno-daemon\n");
    let lines = |word: &str| home.processes().into_iter().filter(|(_, line)| line.contains(word)).count();
    until("the losers to leave", || (lines("daemon run") == 1).then_some(()));
    let mode = |name: &str| fs::symlink_metadata(home.path().join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode(""), mode("daemon.sock"), mode("daemon.log")), (0o700, 0o600, 0o600));

    let ran = home.zeno(&["daemon", "run"]);
    assert_eq!(ran.code, 7, "{ran}");
    assert!(ran.err().contains("a daemon already runs"), "{ran}");
}

#[test]
fn a_file_that_may_not_grow_does_not_end_it() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let daemon = home.daemon().unwrap();
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::XFSZ).unwrap();
    assert_eq!(home.run(&[], "echo text").out(), "text\n");
    assert_eq!(home.daemon(), Some(daemon), "still the same");
}

#[test]
fn sandboxes_live_on_without_it() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo text > /var/tmp/file");
    let number = home.detach("box", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done");
    let log = home.path().join("sandboxes").join(home.ok(&["list", "-q"]).trim()).join("log");
    let written = || fs::metadata(&log).unwrap().len();
    let check = |how: &str| {
        let before = written();
        until("it to count on", || (written() > before).then_some(()));
        assert_eq!(home.daemon(), None, "{how}");
        assert_eq!(home.state("box"), "active", "{how}");
        assert_eq!(home.exec("box", "cat /var/tmp/file").out(), "text\n", "{how}");
        let count = || home.ok(&["logs", "--exec", &number, "box"]).lines().count();
        let counted = count();
        until("the log to go on", || (count() > counted).then_some(()));
    };
    home.ok(&["daemon", "stop"]);
    check("stopped");
    home.crash();
    check("killed");
    home.ok(&["pause", "box"]);
    home.crash();
    assert_eq!(home.state("box"), "paused");
    home.ok(&["resume", "box"]);
    home.ok(&["stop", "box"]);
    home.crash();
    assert_eq!(home.state("box"), "stopped");
    home.ok(&["start", "box"]);
    assert_eq!(home.exec("box", "cat /var/tmp/file").out(), "text\n");
}

/// Two hundred creates and a hundred destroys as root, forty and twenty as a user, who is slower. In a workspace it is `cargo
/// xtask soak kills`.
#[test]
fn killed_at_any_moment_it_loses_no_sandbox_and_leaves_no_orphan() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let over = AtomicBool::new(false);
    let rounds = if is_root() { 200 } else { 40 };
    let (mut kept, mut kills) = (Vec::new(), 0);
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut random = File::open("/dev/urandom").unwrap();
            let mut kills = 0;
            while !over.load(Ordering::Relaxed) {
                let mut byte = [0];
                random.read_exact(&mut byte).unwrap();
                // The moment is the point: anywhere in the life of a create or destroy, which take a few of these.
                thread::sleep(Duration::from_millis(20 + u64::from(byte[0]) / 2));
                if let Some(pid) = home.daemon().and_then(Pid::from_raw) {
                    kills += usize::from(kill_process(pid, Signal::KILL).is_ok());
                }
            }
            kills
        });
        for round in 0..rounds {
            let name = format!("box{round}");
            let created = home.zeno(&["create", "--no-workspace", "--name", &name]);
            if created.code == 0 && (round % 2 == 0 || home.zeno(&["destroy", &name]).code != 0) {
                kept.push((name, round % 2 == 0));
            }
        }
        over.store(true, Ordering::Relaxed);
        kills = killer.join().unwrap();
    });
    assert!(kills > rounds / 8, "{kills}");
    until("the last one killed to be gone", || (home.zeno(&["daemon", "start"]).code == 0).then_some(()));
    for (name, must_be_there) in kept {
        let state = home.zeno(&["get", "--json", &name]);
        assert!(state.code == 0 || !must_be_there, "{name} is lost: {state}");
        if must_be_there {
            assert_eq!(home.exec(&name, "echo alive").out(), "alive\n", "{name}");
        }
    }
    until("every sandbox to be one thing or the other", || {
        let states = home.json(&["list"]);
        let states = states.as_array().unwrap().iter().map(|sandbox| sandbox["state"].as_str().unwrap());
        states.into_iter().all(|state| matches!(state, "ready" | "active" | "failed")).then_some(())
    });
    // What is left behind, the home's end will tell.
}

#[test]
fn only_a_socket_of_ours_is_spoken_to() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let socket = home.path().join("daemon.sock");
    let hidden = home.path().join("hidden.sock");
    fs::rename(&socket, &hidden).unwrap();
    symlink(&hidden, &socket).unwrap();
    let ran = home.zeno(&["list"]);
    assert_eq!(ran.code, 7, "{ran}");
    assert!(ran.err().contains("or is no socket; not connecting"), "{ran}");
    fs::rename(&hidden, &socket).unwrap();
    home.ok(&["list"]);
    let before = home.all_traces();
    let given = chown(&socket, Some(12345), None);
    if is_root() {
        given.unwrap();
        insta::assert_snapshot!(home.plain(&home.zeno(&["list"])), @"
        ------- stderr -------
        error: the socket `FOLDER/home/daemon.sock` belongs to user 12345, or is no socket; not connecting
          try: zeno doctor
        [exit 7]
        ");
        assert_eq!(home.all_traces(), before, "nothing is left of it");
        chown(&socket, Some(0), None).unwrap();
    } else {
        assert_eq!(
            given.unwrap_err().kind(),
            ErrorKind::PermissionDenied,
            "only root can give a socket away"
        );
        home.ok(&["list"]);
    }
}

#[test]
fn an_older_daemon_is_replaced() {
    let home = Home::new();
    fs::create_dir(home.path()).unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o700)).unwrap();
    let lock = File::create(home.path().join("daemon.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let listener = UnixListener::bind(home.path().join("daemon.sock")).unwrap();
    let old = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut asked = Vec::new();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 27\r\n\r\n{\"version\":\"0.0.1\",\"pid\":1}",
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
        ] {
            let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
            asked.push(head[0].clone());
            (&stream).write_all(answer.as_bytes()).unwrap();
        }
        fs::remove_file(listener.local_addr().unwrap().as_pathname().unwrap()).unwrap();
        drop(lock);
        asked
    });
    assert_eq!(home.run(&[], "echo new").out(), "new\n");
    assert_eq!(old.join().unwrap(), ["GET /healthz HTTP/1.1", "POST /v1/daemon/stop HTTP/1.1"]);
}

#[test]
fn a_replaced_daemon_leaves_its_sandboxes_to_the_new_one() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo text > /var/tmp/file");
    let number = home.detach("box", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done");
    let counted = || home.ok(&["logs", "--exec", &number, "box"]).lines().count();
    let (before, old) = (counted(), home.daemon().unwrap());

    // The running daemon, made to look like one of an older release: in its lock, and in all it says.
    let (socket, hidden) = (home.path().join("daemon.sock"), home.path().join("hidden.sock"));
    let older = VERSION.replace(|c: char| c.is_ascii_digit(), "0");
    assert_eq!(fs::read_to_string(home.path().join("daemon.lock")).unwrap(), VERSION);
    fs::write(home.path().join("daemon.lock"), &older).unwrap();
    fs::rename(&socket, &hidden).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let aged = thread::spawn(move || {
        let (client, _) = listener.accept().unwrap();
        let daemon = UnixStream::connect(hidden).unwrap();
        let (mut asked, mut answered) = (client.try_clone().unwrap(), daemon.try_clone().unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                std::io::copy(&mut asked, &mut answered).unwrap();
                // The client hung up; the daemon would wait for its next question.
                answered.shutdown(Shutdown::Write).unwrap();
            });
            pass_on(daemon, &client, VERSION, &older);
        });
    });
    assert_eq!(home.exec("box", "cat /var/tmp/file").out(), "text\n", "answered by the new one");
    aged.join().unwrap();
    let new = home.daemon().unwrap();
    assert_ne!(new, old);
    until("the end of the old daemon", || is_gone(old).then_some(()));
    assert_eq!(fs::read_to_string(home.path().join("daemon.lock")).unwrap(), VERSION);
    assert_eq!(home.state("box"), "active");
    until("it to count on", || (counted() > before).then_some(()));
    home.ok(&["list"]);
    assert_eq!(home.daemon().unwrap(), new, "one of our own age stays");
}

/// Passes answers on, with one word in them exchanged for another of its length.
fn pass_on(mut from: UnixStream, mut to: &UnixStream, word: &str, other: &str) {
    assert_eq!(word.len(), other.len());
    let mut bytes = vec![0; 64 << 10];
    loop {
        let length = from.read(&mut bytes).unwrap();
        if length == 0 {
            return;
        }
        for at in 0..length.saturating_sub(word.len() - 1) {
            if bytes[at..].starts_with(word.as_bytes()) {
                bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
            }
        }
        to.write_all(&bytes[..length]).unwrap();
    }
}

/// Of the program under test, which is built with this one.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_tcp_door_asks_for_its_token() {
    let home = Home::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut daemon = home.command(&["daemon", "run", "--listen", &free.to_string()]).spawn().unwrap();
    let ask = |path: &str, headers: &[(&str, &str)]| {
        let stream = until("the door", || TcpStream::connect(free).ok());
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection::new(stream).ask("GET", path, headers, b"").status
    };
    assert_eq!(ask("/healthz", &[]), 200);
    let token = fs::read_to_string(home.path().join("token")).unwrap();
    assert_eq!(fs::metadata(home.path().join("token")).unwrap().mode() & 0o777, 0o600);
    let bearer = format!("Bearer {}", token.trim());
    let wrong = format!("Bearer {}", "0".repeat(token.trim().len()));
    assert_eq!(ask("/v1/sandboxes", &[]), 401);
    assert_eq!(ask("/v1/sandboxes", &[("authorization", &wrong)]), 401);
    assert_eq!(ask("/v1/sandboxes", &[("authorization", &bearer)]), 200);
    let rebound = [("authorization", bearer.as_str()), ("host", "evil.example")];
    assert_eq!(ask("/v1/sandboxes", &rebound), 403);
    let page = [("authorization", bearer.as_str()), ("origin", "https://evil.example")];
    assert_eq!(ask("/v1/sandboxes", &page), 403);
    home.ok(&["daemon", "stop"]);
    assert_eq!(end(&mut daemon).code(), Some(0));
}

#[test]
fn a_killed_launcher_costs_nobody_a_sandbox() {
    let home = Home::new();
    home.create("box", &[]);
    let daemon = home.daemon().unwrap();
    for _ in 0..3 {
        // What was made ahead needs none, so that the next may take a moment.
        let launcher = until("a launcher", || match below(daemon, "zeno-launcher")[..] {
            [launcher] => Some(launcher),
            _ => None,
        });
        kill_process(Pid::from_raw(launcher).unwrap(), Signal::KILL).unwrap();
        until("its end", || Stat::of(launcher).is_none_or(|stat| stat.state == 'Z').then_some(()));
        assert_eq!(home.run(&[], "echo again").out(), "again\n");
        assert_eq!(home.exec("box", "echo still here").out(), "still here\n");
    }
}

#[test]
fn a_sandbox_whose_init_was_killed_has_failed_and_says_so() {
    let home = Home::new();
    home.create("box", &[]);
    home.exec("box", "echo kept > /tmp/file");
    let [init] = below_launcher(home.daemon().unwrap(), "zeno-init")[..] else {
        panic!("one sandbox, one init")
    };
    kill_process(Pid::from_raw(init).unwrap(), Signal::KILL).unwrap();
    let failed = until("it to fail", || {
        let sandbox = home.json(&["get", "box"]);
        (sandbox["state"] == "failed").then_some(sandbox)
    });
    assert!(failed["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{failed}");
    let ran = home.exec("box", "true");
    assert_ne!(ran.code, 0, "{ran}");
    assert!(ran.err().contains("zeno "), "what to do next: {ran}");
    home.ok(&["destroy", "box"]);
}
