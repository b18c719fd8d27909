//! What a sandbox learns of the host: no processes, no environment, no messages of the kernel.

use std::fs;

use crate::harness::{Home, is_root, lines, said, shared};

#[test]
fn only_its_own_processes_are_there() {
    let home = shared();
    let list = "ls /proc > /tmp/all; grep -c '^[0-9]' /tmp/all; kill -0 2000000; cat /proc/1/cgroup | cut -d: -f3 | sort -u";
    let said = lines(&home.run(&[], &["sh", "-c", list]).out);
    // Init, the shell, and the one that lists.
    assert_eq!(said[0], "3", "{said:?}");
    assert_eq!(said[1..], ["/"], "{said:?}");
    // Ours cannot be signalled by the number it has outside.
    let me = std::process::id().to_string();
    assert_eq!(home.run(&[], &["sh", "-c", &format!("kill -0 {me}")]).code, Some(1));
    assert!(fs::read_dir("/proc").unwrap().count() > 10);
}

#[test]
fn the_daemons_environment_stays_with_the_daemon() {
    let home = Home::new();
    let started = said(home.zeno(&["daemon", "start"]).env("TOKEN", "SENTINEL"));
    assert_eq!(started.code, Some(0), "{started:?}");
    let search = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'";
    let inside = home.run(&[], &["sh", "-c", search]);
    assert!(inside.out.contains("ZENO_HOME="), "{inside:?}");
    assert!(!inside.out.contains("SENTINEL"), "{inside:?}");
    let daemon = fs::read(format!("/proc/{}/environ", home.daemon().as_raw_nonzero())).unwrap();
    assert!(String::from_utf8_lossy(&daemon).contains("TOKEN=SENTINEL"));
}

#[test]
fn messages_of_the_kernel_cannot_be_read() {
    let said = shared().run(&[], &["dmesg"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out, "");
    if is_root() {
        assert_eq!(said_outside("dmesg"), Some(0));
    }
}

fn said_outside(program: &str) -> Option<i32> {
    said(&mut std::process::Command::new(program)).code
}

#[test]
fn the_hosts_network_is_not_shown() {
    let home = shared();
    let list = "ls /sys/class/net; tail -n +2 /proc/net/route; tail -n +2 /proc/net/arp; tail -n +2 /proc/net/unix | wc -l";
    let inside = lines(&home.run(&[], &["sh", "-c", list]).out);
    assert_eq!(inside[0], "lo", "{inside:?}");
    // Init's own sockets and nobody else's: none of them has a name of the host.
    let named = home.run(&[], &["sh", "-c", "grep -o '[@/].*' /proc/net/unix; true"]).out;
    let foreign: Vec<_> = lines(&named).into_iter().filter(|name| !name.contains("control.sock")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(fs::read_dir("/sys/class/net").unwrap().count() > 1);
}

#[test]
fn a_crash_inside_does_not_reach_the_hosts_handler() {
    let home = shared();
    // One byte: the only limit at which the kernel starts no handler (zero still does), and too little for a file.
    let limit = "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))";
    assert_eq!(home.attack(&[], limit, &[]), ["1 1"]);
    let crash = "ulimit -c unlimited; cd /tmp; sh -c 'kill -SEGV $$'; echo $?; ls /tmp";
    let said = home.run(&[], &["sh", "-c", crash]);
    assert_eq!(lines(&said.out), ["139"], "{said:?}");
}
