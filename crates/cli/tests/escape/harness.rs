//! A private `$ZENO_HOME` with its daemon, the commands run in it, and proof that nothing of it is left at the end.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A home of its own, and a folder beside it that sandboxes see and the store does not cover.
#[derive(Debug)]
pub(crate) struct Home {
    store: TempDir,
    seen: TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The home that tests without special wishes share. It goes when the last of them is done.
pub(crate) fn shared() -> Arc<Home> {
    static SHARED: Mutex<Weak<Home>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.upgrade().unwrap_or_else(|| {
        let home = Arc::new(Home::new());
        *shared = Arc::downgrade(&home);
        home
    })
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = |prefix| tempfile::Builder::new().prefix(prefix).tempdir_in("/var/tmp").unwrap();
        Self { store: folder("zeno-escape-"), seen: folder("zeno-escape-seen-") }
    }

    pub(crate) fn store(&self) -> &Path {
        self.store.path()
    }

    /// A folder of the host that sandboxes see. It is also `$HOME`.
    pub(crate) fn seen(&self) -> &Path {
        self.seen.path()
    }

    /// The program, with an environment of which the test knows all.
    pub(crate) fn zeno(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.seen())
            .env("ZENO_HOME", self.store())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn say(&self, arguments: &[&str]) -> Said {
        said(&mut self.zeno(arguments))
    }

    /// Does it, and gives back what it printed.
    pub(crate) fn must(&self, arguments: &[&str]) -> String {
        let said = self.say(arguments);
        assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
        said.out
    }

    /// A command in a throwaway sandbox.
    pub(crate) fn run(&self, options: &[&str], argv: &[&str]) -> Said {
        self.say(&[&["run", "--no-workspace"], options, &["--"], argv].concat())
    }

    /// A sandbox that stays; its name.
    pub(crate) fn create(&self, options: &[&str]) -> String {
        self.must(&[&["create", "--no-workspace"], options].concat()).trim().to_owned()
    }

    pub(crate) fn exec(&self, sandbox: &str, argv: &[&str]) -> Said {
        self.say(&[&["exec", sandbox, "--"], argv].concat())
    }

    /// A payload in a throwaway sandbox: what it printed.
    pub(crate) fn attack(&self, options: &[&str], payload: &str, arguments: &[&str]) -> Vec<String> {
        let script = script(payload);
        let said = self.run(options, &[&["/usr/bin/python3", "-I", "-c", &script], arguments].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        lines(&said.out)
    }

    /// Every process that has this home's files mounted, or was started by its name.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let name = self.store().to_str().unwrap().as_bytes();
        let mentions = |path: PathBuf| {
            fs::read(path).is_ok_and(|bytes| bytes.windows(name.len()).any(|window| window == name))
        };
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| *pid != std::process::id())
            .filter(|pid| {
                ["mountinfo", "environ"]
                    .into_iter()
                    .any(|file| mentions(format!("/proc/{pid}/{file}").into()))
            })
            .collect()
    }

    pub(crate) fn daemon(&self) -> Pid {
        let status: serde_json::Value =
            serde_json::from_str(&self.must(&["daemon", "status", "--json"])).unwrap();
        Pid::from_raw(i32::try_from(status["health"]["pid"].as_i64().unwrap()).unwrap()).unwrap()
    }

    pub(crate) fn is_well(&self) {
        let said = self.run(&[], &["echo", "well"]);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "well\n"), "{}", said.err);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let destroyed = self.say(&["destroy", "--all", "--yes"]);
        let stopped = self.say(&["daemon", "stop"]);
        let gone = eventually(|| self.processes().is_empty());
        let left = self.processes();
        let told: Vec<_> = left.iter().map(|pid| fs::read_to_string(format!("/proc/{pid}/status"))).collect();
        for pid in left.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            // One that ends meanwhile needs no killing.
            kill_process(pid, Signal::KILL).unwrap_or_default();
        }
        if std::thread::panicking() {
            return;
        }
        assert_eq!((destroyed.code, stopped.code), (Some(0), Some(0)), "{destroyed:?} {stopped:?}");
        assert!(gone, "processes are left: {left:?} {told:?}");
        let kept = fs::read_dir(self.store().join("sandboxes")).unwrap().count();
        assert_eq!(kept, 0, "folders of sandboxes are left");
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(self.store().to_str().unwrap()), "mounts are left");
    }
}

/// A payload on this machine, outside any sandbox: the control.
pub(crate) fn outside(payload: &str, arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-I", "-c", &script(payload)]).args(arguments).current_dir("/").stdin(Stdio::null());
    let said = said(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    lines(&said.out)
}

/// A payload with what all payloads start with.
pub(crate) fn script(payload: &str) -> String {
    [include_str!("payloads/probe.py"), payload].concat()
}

pub(crate) fn said(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: status.code(), out: text(stdout), err: text(stderr) }
}

/// Runs a command with this as its standard input.
pub(crate) fn said_with(command: &mut Command, input: &[u8]) -> Said {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    match child.stdin.take().unwrap().write_all(input) {
        // Whoever is refused does not listen first.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: status.code(), out: text(stdout), err: text(stderr) }
}

pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(ToOwned::to_owned).collect()
}

/// Waits for something to become true; long, because the machine may be busy with other things.
pub(crate) fn eventually(is_so: impl FnMut() -> bool) -> bool {
    within(Duration::from_secs(60), is_so)
}

/// Whether something becomes true soon enough.
pub(crate) fn within(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    while Instant::now() < end {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    is_so()
}

/// What came of one attempt.
pub(crate) fn answer<'a>(lines: &'a [String], attempt: &str) -> &'a str {
    let found = lines.iter().find_map(|line| line.strip_prefix(attempt)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no answer to `{attempt}` in {lines:#?}"))
}

/// The attempts that got through.
pub(crate) fn through(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.split_once(": done").map(|(name, _)| name)).collect()
}

/// The program under test: a test run may name one that lies where every user can read it.
pub(crate) fn program() -> PathBuf {
    let named = model::env::variables().into_iter().find(|variable| variable.name.0 == b"ZENO_BIN");
    named.map_or_else(
        || PathBuf::from(env!("CARGO_BIN_EXE_zeno")),
        |variable| PathBuf::from(variable.value.as_os_str()),
    )
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
