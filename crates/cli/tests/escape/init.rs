//! Init shares its user with the workload. It can be neither read nor steered nor ended from inside.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::harness::{Home, lines, script, shared, through};

const INIT: &str = include_str!("payloads/init.py");
const SIGNALS: &str = include_str!("payloads/signals.py");

#[test]
fn init_can_be_neither_read_nor_steered() {
    let home = shared();
    let inside = home.attack(&[], INIT, &["1"]);
    assert!(through(&inside).is_empty(), "{:#?}", through(&inside));

    // The same on a process of one's own: all of it works, but for writing to its read-only memory.
    let own = r#"sleep 60 & /usr/bin/python3 -I -c "$0" $!; kill $!"#;
    let control = lines(&home.run(&[], &["sh", "-c", own, &script(INIT)]).out);
    assert_eq!(control.len(), inside.len());
    let failed: Vec<_> = control.iter().filter(|line| !line.contains(": done")).collect();
    assert_eq!(failed, ["process_vm_writev: EFAULT", "comm: EINVAL"], "{control:#?}");
}

#[test]
fn no_signal_from_inside_ends_init() {
    let home = shared();
    let sandbox = home.create(&[]);
    let said = home.exec(&sandbox, &["/usr/bin/python3", "-I", "-c", &script(SIGNALS)]);
    assert_eq!(lines(&said.out), ["kill: alive", "pidfd_send_signal: alive", "rt_sigqueueinfo: alive"]);
    assert_eq!(home.exec(&sandbox, &["echo", "still here"]).out, "still here\n", "{}", said.err);
    home.must(&["destroy", &sandbox]);
}

/// CVE-2019-5736: what runs a sandbox is no file that anybody could write to.
#[test]
fn init_runs_from_a_sealed_memory_file() {
    let home = Home::new();
    home.is_well();
    let daemon = home.daemon().as_raw_nonzero();
    let exe = fs::read_link(format!("/proc/{daemon}/exe")).unwrap();
    assert!(exe.to_str().unwrap().starts_with("/memfd:zeno"), "{exe:?}");
    let sealed = fs::File::open(format!("/proc/{daemon}/exe")).unwrap();
    let seals = rustix::fs::fcntl_get_seals(&sealed).unwrap();
    assert!(seals.contains(rustix::fs::SealFlags::WRITE | rustix::fs::SealFlags::SEAL));

    // Every process of ours runs from it: launcher and init too, as far as we may look.
    let sandbox = home.create(&[]);
    let file = fs::metadata(format!("/proc/{daemon}/exe")).unwrap().ino();
    for pid in home.processes() {
        if let Ok(metadata) = fs::metadata(format!("/proc/{pid}/exe")) {
            assert_eq!(metadata.ino(), file, "process {pid}");
        }
    }
    home.must(&["destroy", &sandbox]);
}

/// CVE-2024-21626: a leaked descriptor of a folder is a way out.
#[test]
fn a_command_inherits_three_descriptors_and_no_folder() {
    let home = shared();
    let list = "ls /proc/self/fd; for f in 0 1 2; do readlink /proc/self/fd/$f; done";
    let said = home.run(&[], &["sh", "-c", list]);
    let said = lines(&said.out);
    // The fourth is the folder that `ls` reads.
    assert_eq!(said[..4], ["0", "1", "2", "3"]);
    assert!(said[4..].iter().all(|file| file.starts_with("pipe:") || file == "/dev/null"), "{said:?}");

    let sandbox = home.create(&[]);
    let enter = |folder: &str| home.say(&["exec", &sandbox, "-w", folder, "--", "echo", "entered"]);
    let leaked = (0..16).map(|number| format!("/proc/self/fd/{number}"));
    for folder in leaked.chain(["cwd", "root", "fd"].map(|name| format!("/proc/1/{name}"))) {
        let said = enter(&folder);
        assert_eq!((said.code, said.out.as_str()), (Some(125), ""), "{folder}: {said:?}");
    }
    // The control: a folder that is there.
    assert_eq!(enter("/proc/self/task").out, "entered\n");
    home.must(&["destroy", &sandbox]);
}

/// bubblewrap's cases: what is no command is not run, and says so; odd names are names.
#[test]
fn odd_and_impossible_commands() {
    let home = shared();
    let sandbox = home.create(&[]);
    let make = "cd /tmp && for n in -- --version -rf 'a b' \"$(printf 'a\\nb')\"; do printf '#!/bin/sh\\necho ran\\n' > \"./$n\" \
                && chmod 755 \"./$n\"; done; echo text > data";
    assert_eq!(home.exec(&sandbox, &["sh", "-c", make]).code, Some(0));
    for name in ["--", "--version", "-rf", "a b", "a\nb"] {
        let said = home.say(&["exec", &sandbox, "-e", "PATH=/tmp:/usr/bin:/bin", "--", name]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "ran\n"), "{name:?}: {said:?}");
    }
    for (command, code) in [("/tmp/none", 127), ("none", 127), ("/tmp/data", 126), ("/tmp", 126), ("", 127)] {
        let said = home.exec(&sandbox, &[command]);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{command}: {said:?}");
    }
    home.must(&["destroy", &sandbox]);
}

/// There is no switch inside: the program itself finds no daemon there.
#[test]
fn zeno_inside_does_not_reach_the_daemon_outside() {
    let home = shared();
    let program = home.seen().join("zeno");
    fs::copy(crate::harness::program(), &program).unwrap();
    let sandbox = home.create(&[]);
    let program = program.to_str().unwrap();
    for verb in [&["daemon", "status"][..], &["get", &sandbox], &["destroy", &sandbox], &["daemon", "stop"]] {
        home.run(&["--timeout", "20s"], &[&[program], verb].concat());
    }
    let said = home.run(&[], &[program, "daemon", "status"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(home.exec(&sandbox, &["echo", "untouched"]).out, "untouched\n");
    home.must(&["destroy", &sandbox]);
}
