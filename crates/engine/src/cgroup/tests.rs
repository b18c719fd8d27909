//! On the real kernel: version 1 limits. Needs root or delegated cgroups; says so if not.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use model::SandboxId;
use model::limits::Limits;
use model::units::{Cpus, Size};
use rustix::process::Pid;

use super::hierarchy::Hierarchy;
use super::layout::{Controller, Layout, Standing, Version};
use super::{Cgroup, Error};

#[test]
fn too_much_memory_is_killed_and_counted() {
    let Some(home) = Home::with(&[Controller::Memory]) else { return };
    let limits = Limits { memory: Some(Size(32 << 20)), ..Limits::default() };
    let cgroup = home.layout.create(id(1), &limits).unwrap().unwrap();
    // `tail` keeps the last line, and zeros have no end of line.
    let status = shell_in(&cgroup, "head -c 200000000 /dev/zero | tail").wait().unwrap();
    // The kernel chooses: mostly `tail`, which the shell tells, now and then the shell.
    assert!(status.code() == Some(137) || status.signal() == Some(9), "{status}");
    assert!(cgroup.oom_kills().unwrap() >= Some(1));
    assert!(cgroup.memory_used().unwrap() <= Some(32 << 20));
    assert_eq!(home.layout.find(id(1)), Some(cgroup.clone()));
    cgroup.remove().unwrap();
    assert_eq!(home.layout.find(id(1)), None);
}

#[test]
fn a_fork_bomb_hits_its_limit() {
    let Some(home) = Home::with(&[Controller::Pids]) else { return };
    let limits = Limits { pids: Some(8), ..Limits::default() };
    let cgroup = home.layout.create(id(2), &limits).unwrap().unwrap();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 100 & done 2>/dev/null";
    let status = shell_in(&cgroup, script).wait().unwrap();
    assert!(!status.success(), "the shell gives up at the limit");
    let directory = cgroup.directories.first().unwrap();
    assert_eq!(read(&directory.join("pids.events")), "max 1\n");
    kill_all(directory);
    cgroup.remove().unwrap();
}

#[test]
fn processor_time_is_rationed() {
    let Some(home) = Home::with(&[Controller::Cpu]) else { return };
    let limits = Limits { cpus: Some(Cpus(50)), ..Limits::default() };
    let cgroup = home.layout.create(id(3), &limits).unwrap().unwrap();
    let mut burner = shell_in(&cgroup, "while :; do :; done");
    let statistics = cgroup.directories.first().unwrap().join("cpu.stat");
    wait_until(|| !read(&statistics).contains("nr_throttled 0\n"));
    burner.kill().unwrap();
    burner.wait().unwrap();
    cgroup.remove().unwrap();
}

#[test]
fn everything_together_is_capped() {
    let Some(home) = Home::with(&[Controller::Memory, Controller::Pids]) else { return };
    let shared = home.layout.shared().unwrap();
    assert_eq!(shared.caveats, []);
    let mut child = shell_in(&shared.cgroup.unwrap(), "read forever");
    let membership = read(Path::new(&format!("/proc/{}/cgroup", child.id())));
    let leaf = format!("/{}/shared", home.layout.name);
    assert_eq!(membership.lines().filter(|line| line.ends_with(&leaf)).count(), 2, "{membership}");
    let limit = |controller, file: &str| {
        let root = home.layout.root(home.layout.place(controller).unwrap());
        read(&root.join(file)).trim().parse::<u64>().unwrap()
    };
    assert!(limit(Controller::Memory, "memory.limit_in_bytes") < 1 << 50);
    assert!(limit(Controller::Pids, "pids.max") < 4_194_304);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn leftovers_of_dead_sandboxes_go() {
    let Some(home) = Home::with(&[Controller::Memory, Controller::Pids]) else { return };
    let limits = Limits { memory: Some(Size(1 << 30)), pids: Some(10), ..Limits::default() };
    let alive = home.layout.create(id(5), &limits).unwrap();
    home.layout.create(id(6), &limits).unwrap();
    assert!(home.layout.sweep(&[id(5)]).is_empty());
    assert_eq!(home.layout.find(id(5)), alive);
    assert_eq!(home.layout.find(id(6)), None);
}

#[test]
fn a_daemons_own_directories_go_when_the_last_process_has_ended() {
    let Some(home) = Home::with(&[Controller::Memory, Controller::Pids]) else { return };
    let shared = home.layout.shared().unwrap().cgroup.unwrap();
    let is_there = || shared.directories.iter().any(|directory| directory.parent().unwrap().exists());
    let mut child = shell_in(&shared, "read until told");
    home.layout.forget(Duration::ZERO);
    assert!(is_there(), "a sandbox lives on in it");
    let slow = std::thread::spawn(move || {
        // Longer than an end takes on a machine with nothing else to do.
        std::thread::sleep(Duration::from_millis(300));
        drop(child.stdin.take());
        child.wait().unwrap();
    });
    home.layout.forget(Duration::from_secs(60));
    assert!(!is_there());
    slow.join().unwrap();
}

#[test]
fn an_ordinary_user_needs_delegation_and_then_has_limits() {
    // Only root can delegate and take it back; as an ordinary user the whole suite runs in both worlds instead.
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let needed = [Controller::Memory, Controller::Pids, Controller::Cpu];
    let Some(home) = Home::with(&needed) else { return };
    let path = home.directory.path().to_path_buf();
    let before = as_nobody({
        let path = path.clone();
        move || Layout::probe(&path)
    });
    let limits = Limits { memory: Some(Size(16 << 20)), pids: Some(20), ..Limits::default() };
    let refused = before.can_enforce(&limits).unwrap_err();
    assert_eq!(refused.iter().map(|missing| missing.controller).collect::<Vec<_>>(), needed[..2]);
    assert!(matches!(before.create(id(7), &limits), Err(Error::Unusable { .. })));

    // What the remedy says, without sudo.
    let mut delegated = Vec::new();
    for controller in needed {
        let remedy = before.remedy(controller).replace("sudo ", "");
        if remedy.starts_with("mkdir") {
            delegated.push(PathBuf::from(remedy.split(' ').nth(2).unwrap()));
            assert!(Command::new("sh").args(["-c", &remedy]).status().unwrap().success());
        }
    }
    let (layout, code, kills) = as_nobody(move || {
        let layout = Layout::probe(&path);
        let cgroup = layout.create(id(7), &limits).unwrap().unwrap();
        let code = shell_in(&cgroup, "head -c 100000000 /dev/zero | tail").wait().unwrap().code();
        let kills = cgroup.oom_kills().unwrap();
        cgroup.remove().unwrap();
        (layout, code, kills)
    });
    clean(&layout);
    for directory in &delegated {
        fs::remove_dir(directory).unwrap();
    }
    assert_eq!((code, kills.map(|kills| kills > 0)), (Some(137), Some(true)));
}

/// No version 2 hierarchy with controllers can be had here: plain files show what would be written where.
#[test]
fn version_2_gets_the_right_words_in_the_right_files() {
    let top = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = top.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("cgroup.controllers", "cpu memory pids\n");
    put("cgroup.subtree_control", "cpu memory\n");
    put("cgroup.procs", "");
    let hierarchy = Hierarchy {
        version: Version::V2,
        controllers: Vec::new(),
        mount: top.path().to_path_buf(),
        current: top.path().to_path_buf(),
    };
    let layout = Layout::of(&[hierarchy], Path::new("/home/zeno"), rustix::process::geteuid().as_raw());
    put(&format!("{}/cgroup.subtree_control", layout.name), "");
    let leaf = format!("{}/{}", layout.name, id(8));
    for file in ["memory.max", "memory.swap.max", "pids.max", "cpu.max"] {
        put(&format!("{leaf}/{file}"), "max");
    }
    let limits =
        Limits { cpus: Some(Cpus(1500)), memory: Some(Size(1 << 20)), pids: Some(64), ..Limits::default() };
    layout.create(id(8), &limits).unwrap().unwrap();
    let text = |path: &str| read(&top.path().join(path));
    assert_eq!(text("cgroup.subtree_control"), "+pids", "the only one not handed down yet");
    assert_eq!(text(&format!("{leaf}/cpu.max")), "150000 100000");
    assert_eq!(text(&format!("{leaf}/memory.max")), "1048576");
    assert_eq!(text(&format!("{leaf}/memory.swap.max")), "0");
    assert_eq!(text(&format!("{leaf}/pids.max")), "64");
}

/// A daemon's home with a layout of its own, cleaned up at the end.
struct Home {
    directory: tempfile::TempDir,
    layout: Layout,
}

impl Home {
    /// None for a user who has no cgroups, who is then refused such a limit. Root always has them here.
    fn with(needed: &[Controller]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::probe(directory.path());
        for controller in needed {
            match layout.standing(*controller) {
                Standing::Usable(place) if place.version == Version::V1 => {}
                other => {
                    assert!(!rustix::process::geteuid().is_root(), "{controller} is {other:?}");
                    let all = Limits {
                        memory: Some(Size(32 << 20)),
                        pids: Some(8),
                        cpus: Some(Cpus(50)),
                        ..Limits::default()
                    };
                    assert!(layout.create(id(1), &all).is_err(), "what cannot be enforced is refused");
                    return None;
                }
            }
        }
        Some(Self { directory, layout })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        clean(&self.layout);
    }
}

fn clean(layout: &Layout) {
    for controller in Controller::ALL {
        if let Ok(place) = layout.place(controller) {
            super::group::remove(&layout.root(place), Instant::now() + Duration::from_secs(60)).unwrap();
        }
    }
}

/// A shell that enters the cgroup by itself, before it starts.
fn shell_in(cgroup: &Cgroup, script: &str) -> Child {
    let files = cgroup.process_files().into_iter();
    let doors: Vec<_> = files.map(|path| fs::OpenOptions::new().write(true).open(path).unwrap()).collect();
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    // SAFETY: between fork and exec only `write` is called.
    unsafe {
        command.pre_exec(move || {
            for door in &doors {
                rustix::io::write(door.as_fd(), b"0")?;
            }
            Ok(())
        })
    };
    command.spawn().unwrap()
}

/// Runs with another user's rights. Credentials belong to a thread, so only this one loses its own.
fn as_nobody<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    const NOBODY: u32 = 65534;
    let thread = std::thread::spawn(move || {
        // SAFETY: plain numbers; the raw call changes this thread only, which ends after `work`.
        let groups = unsafe { libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY) };
        // SAFETY: as above.
        let users = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
        assert_eq!((groups, users), (0, 0));
        work()
    });
    thread.join().unwrap()
}

fn kill_all(directory: &Path) {
    wait_until(|| {
        for pid in read(&directory.join("cgroup.procs")).lines() {
            let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
            // It may have ended since it was listed.
            if let Err(error) = rustix::process::kill_process(pid, rustix::process::Signal::KILL) {
                assert_eq!(error, rustix::io::Errno::SRCH);
            }
        }
        read(&directory.join("cgroup.procs")).is_empty()
    });
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn id(bits: u64) -> SandboxId {
    SandboxId::from_bits(bits)
}
