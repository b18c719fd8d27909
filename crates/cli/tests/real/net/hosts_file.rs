//! Names that the machine knows by a file are decided about by name, like any other.

use std::process::Stdio;

use super::{attempts, in_world, inside_of, record};
use crate::home::{Home, is_root, program};
use crate::wait::{end, until};

#[test]
fn a_sandbox_knows_no_names_but_its_own_without_asking() {
    let home = Home::new();
    home.create("web", &["--net", "allow:host:9"]);
    let hostname = home.exec("web", "uname -n").out();
    let expected =
        format!("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 {hostname}");
    assert_eq!(home.exec("web", "cat /etc/hosts").out(), expected);
    assert!(home.exec("web", "getent hosts localhost").out().contains("localhost"));
    assert_ne!(home.exec("web", "echo 10.0.0.1 db.corp >> /etc/hosts").code, 0);
    // After a stop and a start, too, and in what is made of it.
    home.ok(&["stop", "web"]);
    home.ok(&["start", "web"]);
    assert_eq!(home.exec("web", "cat /etc/hosts").out(), expected);
    home.ok(&["fork", "web", "--name", "other"]);
    assert_eq!(home.exec("other", "cat /etc/hosts").out(), expected);
    assert!(!home.json(&["diff", "web"]).to_string().contains("/etc/hosts"));
    // Without a gateway nothing is decided, and the machine's own is shown.
    let own = std::fs::read_to_string("/etc/hosts").unwrap();
    assert_eq!(home.run(&[], "cat /etc/hosts").out(), own);
}

/// The daemon sees a hosts file of the test's own.
#[test]
fn a_name_of_the_machines_file_is_reached_by_name() {
    in_world(|home, world| {
        let file = home.yard().join("hosts");
        std::fs::write(&file, "127.0.0.1 localhost\n10.77.0.1 db.corp\n").unwrap();
        home.ok(&["daemon", "stop"]);
        end(&mut world.daemon);
        let mut daemon = inside_of(world.machine, "unshare");
        if !is_root() {
            daemon.args(["--map-current-user", "--keep-caps"]);
        }
        daemon.args(["-m", "python3", "-c", BEHIND]).arg(&file).arg(program()).env("ZENO_HOME", home.path());
        world.daemon =
            daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the daemon to answer", || home.daemon());
        let lines = ["tcp db.corp 80 hello", "tcp db.corp 443 hello"];
        insta::assert_snapshot!(attempts(home, "allow:db.corp:80+private", &lines), @"
        tcp db.corp 80 -> seen:hello
        tcp db.corp 443 -> ConnectionResetError
        ");
        let shown = record(home, &[]);
        assert!(shown.contains("allow tcp db.corp 80: db.corp:80+private\n"), "{shown}");
        assert!(shown.contains("deny tcp db.corp 443: nothing allows it\n"), "{shown}");
    });
}

/// Puts a file over the machine's own, gives up the right to do so, and becomes the daemon.
const BEHIND: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
BIND, AMBIENT, CLEAR = 4096, 47, 4
assert libc.mount(sys.argv[1].encode(), b"/etc/hosts", None, BIND, None) == 0
assert libc.prctl(AMBIENT, CLEAR, 0, 0, 0) == 0
os.execv(sys.argv[2], [sys.argv[2], "daemon", "run"])
"#;
