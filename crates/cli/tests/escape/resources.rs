//! Runaways: each gets its error or dies; the host, the daemon and the other sandboxes do not notice. And nothing
//! outlives its time, whoever was killed meanwhile.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use rustix::pty::OpenptFlags;

use crate::capabilities::find;
use crate::harness::{Home, Said, answer, eventually, is_root, lines, outside, script, within};

const FORKS: &str = include_str!("payloads/forks.py");
const MEMORY: &str = include_str!("payloads/memory.py");
const DESCRIPTORS: &str = include_str!("payloads/descriptors.py");
const INODES: &str = include_str!("payloads/inodes.py");
const STUBBORN: &str = include_str!("payloads/stubborn.py");

/// A payload in a sandbox with limits; it may fail.
fn burst(home: &Home, options: &[&str], payload: &str, arguments: &[&str]) -> Said {
    let script = script(payload);
    home.run(options, &[&["/usr/bin/python3", "-I", "-c", &script], arguments].concat())
}

/// A limit that was asked for is hard, or the sandbox is refused and says why.
fn is_refused(said: &Said) -> bool {
    // 4: of `create`, which has no command's code to give.
    let is_refused =
        matches!(said.code, Some(125 | 4)) && said.err.contains("cannot enforce") && said.out.is_empty();
    let told = model::env::variables().into_iter().find(|variable| variable.name.0 == b"ZENO_TEST_CGROUPS");
    if let Some(cgroups) = told {
        assert_eq!(is_refused, cgroups.value.0 == b"none", "{said:?}");
    }
    is_refused
}

#[test]
fn a_fork_bomb_stops_at_the_limit() {
    let home = Home::new();
    let said = burst(&home, &["--pids", "100", "--best-effort"], FORKS, &["one", "300"]);
    let inside = lines(&said.out);
    let processes: u32 = answer(&inside, "processes").parse().unwrap();
    assert!((50..=100).contains(&processes), "{said:?}");
    assert_eq!(answer(&inside, "refusal"), "EAGAIN");
    assert_eq!(outside(FORKS, &["one", "150"]), ["processes: 150", "refusal: none"]);
    home.is_well();
}

/// The kernel counts processes per user, and root inside can be any number of users.
#[test]
fn a_fork_bomb_of_many_users_stops_at_the_limit() {
    let home = Home::new();
    let said = burst(&home, &["--pids", "64"], FORKS, &["users", "200"]);
    if !is_refused(&said) {
        let processes: u32 = answer(&lines(&said.out), "processes").parse().unwrap();
        assert!(processes <= 64, "{said:?}");
    }
    let become_another = "attempt('setuid', lambda: os.setuid(1000 if os.getuid() != 1000 else 1001))";
    // An ordinary user's sandbox has no other users to hide among: their ids mean nothing there.
    let expected = if is_root() { "setuid: done" } else { "setuid: EINVAL" };
    assert_eq!(home.attack(&[], become_another, &[]), [expected]);
    home.is_well();
}

#[test]
fn a_memory_bomb_dies() {
    let home = Home::new();
    for kind in ["heap", "tmpfs"] {
        let said = burst(&home, &["--memory", "64MiB"], MEMORY, &[kind, "256"]);
        assert!(is_refused(&said) || !said.out.contains("taken"), "{kind}: {said:?}");
        let control = burst(&home, &[], MEMORY, &[kind, "128"]);
        assert_eq!(control.out, "taken\n", "{kind}: {control:?}");
    }
    home.is_well();
}

/// What is read and written fills the page cache. It is charged to the sandbox, and the kernel takes it back from there:
/// nobody has to die, and nobody else has less.
#[test]
fn a_page_cache_bomb_stays_within_the_limit() {
    let home = Home::new();
    let large = home.seen().join("large");
    let file = fs::File::create(&large).unwrap();
    (&file).write_all(&vec![1; 192 << 20]).unwrap();
    // On the disk and in nobody's cache, so that whoever reads it is charged.
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    let made = home.say(&["create", "--no-workspace", "--memory", "64MiB"]);
    if is_refused(&made) {
        return home.is_well();
    }
    let sandbox = made.out.trim();
    let script = script(MEMORY);
    let large = large.to_str().unwrap();
    for kind in ["read", "written"] {
        let said = home.exec(sandbox, &["/usr/bin/python3", "-I", "-c", &script, kind, "192", large]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "taken\n"), "{kind}: {said:?}");
        let peak = peak(&home, sandbox);
        // That it came near shows that the cache counts: the program itself needs a tenth of that.
        assert!((48 << 20..=64 << 20).contains(&peak), "{kind}: {peak}");
    }
    home.is_well();
    home.must(&["destroy", sandbox]);
}

/// The most memory that the kernel ever counted in a sandbox with a limit.
fn peak(home: &Home, sandbox: &str) -> u64 {
    let record: serde_json::Value = serde_json::from_str(&home.must(&["get", sandbox, "--json"])).unwrap();
    let controllers = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
    let controller = controllers.into_iter().find(|folder| folder.exists()).unwrap();
    let cgroup = find(controller, record["id"].as_str().unwrap()).expect("a limit has a cgroup");
    let files = ["memory.max_usage_in_bytes", "memory.peak"].map(|file| cgroup.join(file));
    let told = files.iter().find_map(|file| fs::read_to_string(file).ok()).expect("the kernel counts");
    told.trim().parse().unwrap()
}

/// Files without a byte need inodes. On a disk of its own a sandbox has so many; without one it has the machine's, which
/// `docs/limits.md` says.
#[test]
fn the_inodes_cannot_be_used_up() {
    let home = Home::new();
    let make = script(INODES);
    let make = ["/usr/bin/python3", "-I", "-c", &make, "6000"];
    let sandbox = home.create(&["--disk", "16MiB"]);
    let before = entries(home.store());
    let said = lines(&home.exec(&sandbox, &make).out);
    let count: u64 = answer(&said, "files").parse().unwrap();
    assert!((1000..=4096).contains(&count), "{said:?}");
    assert_eq!(answer(&said, "refusal"), "ENOSPC");
    assert_eq!(entries(home.store()), before, "not one of them is the machine's");
    home.is_well();
    // What it removes it has again.
    let again = home.exec(
        &sandbox,
        &["sh", "-c", "rm -r /var/tmp/many && echo again > /var/tmp/again && cat /var/tmp/again"],
    );
    assert_eq!(again.out, "again\n", "{again:?}");
    home.must(&["destroy", &sandbox]);

    let open = home.create(&[]);
    let before = entries(home.store());
    assert_eq!(lines(&home.exec(&open, &make).out), ["files: 6000", "refusal: none"]);
    assert!(entries(home.store()) >= before + 6000, "these are");
    home.must(&["destroy", &open]);
    assert!(eventually(|| entries(home.store()) <= before), "and they go with it");
}

/// How many names there are below a folder.
fn entries(folder: &Path) -> u64 {
    let inside = fs::read_dir(folder).into_iter().flatten().flatten();
    inside
        .map(|entry| {
            1 + if entry.file_type().is_ok_and(|kind| kind.is_dir()) { entries(&entry.path()) } else { 0 }
        })
        .sum()
}

#[test]
fn the_disk_cannot_be_filled() {
    let home = Home::new();
    let fill = "dd if=/dev/zero of=/tmp/fill bs=1M count=64 status=none && echo filled";
    let said = home.run(&["--disk", "16MiB"], &["sh", "-c", fill]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.err.contains("No space left on device"), "{said:?}");
    assert_eq!(home.run(&[], &["sh", "-c", fill]).out, "filled\n");
    home.is_well();
}

/// Starts a payload that fills something and waits until it is full: how much, and the kernel's word.
fn fill(home: &Home, sandbox: &str, kind: &str) -> (u64, String) {
    let script = script(DESCRIPTORS);
    home.must(&["exec", sandbox, "-d", "--", "/usr/bin/python3", "-I", "-c", &script, kind]);
    let full = || home.exec(sandbox, &["cat", "/tmp/full"]).out;
    assert!(eventually(|| full().ends_with('\n')));
    let full = full();
    let (count, why) = full.trim().split_once(' ').unwrap();
    (count.parse().unwrap(), why.to_owned())
}

#[test]
fn open_files_have_an_end() {
    let home = Home::new();
    let sandbox = home.create(&[]);
    let (count, why) = fill(&home, &sandbox, "files");
    assert!(count <= 65_536, "{count}");
    assert_eq!(why, "EMFILE");
    // Init, the daemon and others go on.
    assert_eq!(home.exec(&sandbox, &["echo", "on"]).out, "on\n");
    home.is_well();
    home.must(&["destroy", &sandbox]);
}

/// Terminals are counted for the whole machine; one sandbox must not have them all.
#[test]
fn a_flood_of_terminals_leaves_some_for_others() {
    let home = Home::new();
    let sandbox = home.create(&[]);
    let (count, why) = fill(&home, &sandbox, "terminals");
    assert!(count > 50, "the flood itself works: {count}");
    assert_eq!(why, "ENOSPC");
    let host = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY);
    assert!(host.is_ok(), "{host:?}");
    let other = home.run(&["-t"], &["sh", "-c", "test -t 0 && echo terminal"]);
    assert_eq!(other.out.trim(), "terminal", "{other:?}");
    home.must(&["destroy", &sandbox]);
}

#[test]
fn a_flood_of_output_fills_no_disk() {
    let home = Home::new();
    let sandbox = home.create(&[]);
    let flood = "head -c 90000000 /dev/zero; echo end > /tmp/end";
    home.must(&["exec", &sandbox, "-d", "--", "sh", "-c", flood]);
    let end = || home.exec(&sandbox, &["cat", "/tmp/end"]).out == "end\n";
    assert!(eventually(end));
    let log = fs::metadata(find(&home.store().join("sandboxes"), "log").unwrap()).unwrap().len();
    assert!((1 << 20..(64 << 20) + (1 << 20)).contains(&log), "{log}");
    let limited = home.run(&["--output-limit", "1MiB"], &["yes"]);
    assert!(limited.out.len() < 4 << 20 && limited.code != Some(0), "{:?}", limited.code);
    home.is_well();
    home.must(&["destroy", &sandbox]);
}

#[test]
fn orphans_are_reaped() {
    let home = Home::new();
    let sandbox = home.create(&[]);
    let orphans = "for n in $(seq 100); do (true & ) ; done; echo made";
    assert_eq!(home.exec(&sandbox, &["sh", "-c", orphans]).out, "made\n");
    let zombies =
        || home.exec(&sandbox, &["sh", "-c", "grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l"]).out;
    assert!(eventually(|| zombies() == "0\n"), "{}", zombies());
    home.must(&["destroy", &sandbox]);
}

#[test]
fn a_killed_daemon_loses_nobody() {
    let home = Home::new();
    let sandbox = home.create(&[]);
    let count = "n=0; while sleep 0.05; do n=$((n+1)); echo $n > /tmp/count; done";
    home.must(&["exec", &sandbox, "-d", "--", "sh", "-c", count]);
    let counted = || home.exec(&sandbox, &["cat", "/tmp/count"]).out;
    assert!(eventually(|| !counted().is_empty()));
    let old = home.daemon();
    kill_process(old, Signal::KILL).unwrap();
    assert!(eventually(|| {
        !fs::exists(format!("/proc/{}/exe", old.as_raw_nonzero())).unwrap()
            || fs::read_link(format!("/proc/{}/exe", old.as_raw_nonzero())).is_err()
    }));
    // The next call starts another, which finds the sandbox and what runs in it.
    let before = counted();
    assert!(eventually(|| counted() != before), "{before:?}");
    assert_ne!(home.daemon(), old);
    // That nothing is left in the end, the home itself asserts.
    home.must(&["destroy", &sandbox]);
}

/// Clients that find no daemon each start one; those that come too late must not wait to succeed the first.
#[test]
fn daemons_started_at_once_leave_none() {
    let home = Home::new();
    let started: Vec<_> =
        (0..4).map(|_| home.zeno(&["run", "--no-workspace", "--", "true"]).spawn().unwrap()).collect();
    for mut child in started {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    home.must(&["daemon", "stop"]);
    // More than the second for which a daemon tries to get the lock.
    let succeeded = within(Duration::from_millis(1500), || !home.processes().is_empty() && answers(&home));
    assert!(!succeeded, "another daemon came");
}

fn answers(home: &Home) -> bool {
    home.say(&["daemon", "status"]).code == Some(0)
}

#[test]
fn nothing_outlives_its_time() {
    let home = Home::new();
    let script = script(STUBBORN);
    let sandbox = home.create(&["--ttl", "15s", "--on-expire", "stop"]);
    for how in ["stopped", "running"] {
        let said = home.exec(&sandbox, &["/usr/bin/python3", "-I", "-c", &script, how]);
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    let stubborn = || hiding(&home);
    assert_eq!(stubborn(), 2, "the control: they outlive the command that started them");
    // Nobody is there to end them but init.
    kill_process(home.daemon(), Signal::KILL).unwrap();
    let begin = Instant::now();
    assert!(eventually(|| stubborn() == 0), "{:?}", begin.elapsed());
    home.must(&["destroy", &sandbox]);
}

#[test]
fn a_timeout_ends_a_command_that_hides() {
    let home = Home::new();
    let hide = "/usr/bin/python3 -I -c \"$0\"; sleep 60";
    let said = home.run(&["--timeout", "3s"], &["sh", "-c", hide, &script(STUBBORN)]);
    assert_eq!(said.code, Some(124), "{said:?}");
    assert!(eventually(|| hiding(&home) == 0), "{:?}", home.processes());
}

/// How many Python programs run in this home's sandboxes.
fn hiding(home: &Home) -> usize {
    let is_python = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| command.starts_with(b"/usr/bin/python3"))
    };
    home.processes().iter().filter(|pid| is_python(pid)).count()
}
