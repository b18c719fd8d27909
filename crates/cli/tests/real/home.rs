//! A home of zeno's own for each test, with what a test does to it most.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use model::SandboxId;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::http::{Connection, Response};
use crate::traces::{Stat, Traces, cgroups_named, cgroups_of, names_below, processes};
use crate::wait::{PATIENCE, end, until};

/// Dropped, it removes its sandboxes, stops its daemon and looks whether anything is left.
#[derive(Debug)]
pub(crate) struct Home {
    folder: TempDir,
    /// Every daemon it had.
    daemons: Mutex<BTreeSet<i32>>,
    before: Traces,
    /// Its home is a small disk of its own.
    mounted: bool,
}

/// How a call of `zeno` ended, and all it said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("zeno-real-").tempdir_in("/var/tmp").unwrap();
        let before = Traces::of(folder.path(), &BTreeSet::new(), &[]);
        Self { folder, daemons: Mutex::default(), before, mounted: false }
    }

    /// One with room for little. Only root can mount it where the daemon sees it.
    pub(crate) fn on_small_disk() -> Self {
        let mut home = Self::new();
        fs::create_dir(home.path()).unwrap();
        let options = ["-t", "tmpfs", "-o", "size=2m,mode=700", "zeno-small"];
        assert!(Command::new("mount").args(options).arg(home.path()).status().unwrap().success());
        home.mounted = true;
        home.before = Traces::of(&home.path(), &BTreeSet::new(), &[]);
        home
    }

    /// ZENO_HOME.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A folder beside the home, where a test may do what it likes.
    pub(crate) fn yard(&self) -> PathBuf {
        let yard = self.folder.path().join("yard");
        fs::create_dir_all(&yard).unwrap();
        yard
    }

    /// `zeno` in the yard, with pipes on all three ends and an environment of which the test knows all.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.prepared(program());
        command.args(arguments);
        command
    }

    /// The same for any program.
    pub(crate) fn prepared(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.yard())
            .env("ZENO_HOME", self.path())
            .current_dir(self.yard())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn zeno(&self, arguments: &[&str]) -> Ran {
        let ran = finish(self.command(arguments).spawn().unwrap(), b"");
        self.remember_daemon();
        ran
    }

    /// `zeno` as another program starts it, whose name and arguments come before.
    pub(crate) fn zeno_by(&self, starter: &[&str], arguments: &[&str]) -> Ran {
        let mut command = self.prepared(starter[0]);
        command.args(&starter[1..]).arg(program()).args(arguments);
        let ran = finish(command.spawn().unwrap(), b"");
        self.remember_daemon();
        ran
    }

    /// Standard output of a call that has to succeed.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.zeno(arguments);
        assert_eq!(ran.code, 0, "zeno {arguments:?}: {ran}");
        ran.out()
    }

    /// The same, read as JSON.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// A shell line in a throwaway sandbox.
    pub(crate) fn run(&self, options: &[&str], line: &str) -> Ran {
        self.zeno(&[&["run", "--no-workspace"], options, &["--", "sh", "-c", line]].concat())
    }

    /// Makes a sandbox of this name.
    #[track_caller]
    pub(crate) fn create(&self, name: &str, options: &[&str]) {
        self.ok(&[&["create", "--no-workspace", "--name", name], options].concat());
    }

    /// Makes a sandbox with the workspace around this folder.
    pub(crate) fn create_in(&self, name: &str, folder: &Path) {
        let made =
            finish(self.command(&["create", "--name", name]).current_dir(folder).spawn().unwrap(), b"");
        assert_eq!(made.code, 0, "{made}");
        self.remember_daemon();
    }

    /// A shell line in a sandbox.
    pub(crate) fn exec(&self, name: &str, line: &str) -> Ran {
        self.zeno(&["exec", name, "--", "sh", "-c", line])
    }

    /// A shell line in a sandbox, left running.
    #[track_caller]
    pub(crate) fn detach(&self, name: &str, line: &str) -> String {
        self.ok(&["exec", "-d", name, "--", "sh", "-c", line]).trim().to_owned()
    }

    #[track_caller]
    pub(crate) fn state(&self, name: &str) -> String {
        self.json(&["get", name])["state"].as_str().unwrap().to_owned()
    }

    pub(crate) fn http(&self) -> Connection<UnixStream> {
        let stream = UnixStream::connect(self.path().join("daemon.sock")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection::new(stream)
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> Response {
        self.http().ask(method, path, &[], body)
    }

    /// The daemon as the kernel names the other end of its socket. None: it does not run.
    pub(crate) fn daemon(&self) -> Option<i32> {
        let stream = UnixStream::connect(self.path().join("daemon.sock")).ok()?;
        let pid = rustix::net::sockopt::socket_peercred(&stream).unwrap().pid.as_raw_nonzero().get();
        self.daemons.lock().unwrap().insert(pid);
        Some(pid)
    }

    /// Kills the daemon as a crash would, and waits for its end and the launcher's.
    pub(crate) fn crash(&self) {
        let daemon = self.daemon().unwrap();
        let launchers: Vec<i32> =
            self.processes().into_iter().map(|(pid, _)| pid).filter(|pid| is_child(*pid, daemon)).collect();
        kill_process(Pid::from_raw(daemon).unwrap(), Signal::KILL).unwrap();
        for pid in [vec![daemon], launchers].concat() {
            until("the end of the daemon", || is_gone(pid).then_some(()));
        }
    }

    pub(crate) fn processes(&self) -> BTreeSet<(i32, String)> {
        processes(self.folder.path(), &self.daemons.lock().unwrap())
    }

    pub(crate) fn traces(&self) -> Traces {
        self.traces_of(&self.sandboxes())
    }

    /// The same, with every name in the home and every cgroup of the daemon's: for what must leave nothing at all. What is
    /// made ahead of time and what is to be removed come and go by themselves.
    pub(crate) fn all_traces(&self) -> (Traces, BTreeSet<PathBuf>) {
        let restless = ["stock", "trash"].map(|name| self.path().join(name));
        let mut all = names_below(&self.path());
        all.retain(|path| !restless.iter().any(|folder| path.starts_with(folder)));
        let cgroups: BTreeSet<String> = self.daemon().into_iter().flat_map(cgroups_of).collect();
        all.extend(cgroups.iter().flat_map(|name| cgroups_named(name)));
        (self.traces(), all)
    }

    fn traces_of(&self, sandboxes: &[String]) -> Traces {
        Traces::of(&self.path(), &self.daemons.lock().unwrap(), sandboxes)
    }

    /// Ids of all there are and were.
    fn sandboxes(&self) -> Vec<String> {
        self.zeno(&["list", "-a", "-q"]).out().lines().map(str::to_owned).collect()
    }

    fn remember_daemon(&self) {
        self.daemon();
    }

    /// What a call showed, without what differs from one time to the next.
    pub(crate) fn plain(&self, ran: &Ran) -> String {
        let text = ran.to_string().replace(self.folder.path().to_str().unwrap(), "FOLDER");
        let mut plain = String::new();
        for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            match bare.parse::<SandboxId>() {
                Ok(_) => plain += &word.replace(bare, "ID"),
                Err(_) => plain += word,
            }
        }
        plain
    }

    /// The test has failed already; only the machine is looked after, and the daemon heard.
    fn put_in_order(&self) {
        for arguments in [&["destroy", "--all", "--yes"][..], &["daemon", "stop"]] {
            eprintln!("{}", self.zeno(arguments));
        }
        eprintln!("daemon.log:\n{}", fs::read_to_string(self.path().join("daemon.log")).unwrap_or_default());
    }

    /// Removes everything, and looks whether that was all.
    fn leave(&self) {
        if !self.path().exists() {
            return;
        }
        let sandboxes = self.sandboxes();
        self.ok(&["destroy", "--all", "--yes"]);
        self.ok(&["daemon", "stop"]);
        until("nothing to be left behind", || (self.traces_of(&sandboxes) == self.before).then_some(()));
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.put_in_order();
        } else {
            self.leave();
        }
        if self.mounted {
            let done = Command::new("umount").arg(self.path()).status().unwrap();
            assert!(done.success() || std::thread::panicking(), "umount: {done}");
        }
        // What a sandbox closed even to its owner stays in snapshots, and could not be removed with the rest.
        let opened = Command::new("chmod").args(["-R", "u+rwX"]).arg(self.folder.path()).status().unwrap();
        assert!(opened.success() || std::thread::panicking(), "chmod: {opened}");
    }
}

impl Ran {
    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8(self.stderr.clone()).unwrap()
    }
}

/// As jj shows a command in its snapshots.
impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.stdout))?;
        if !self.stderr.is_empty() {
            write!(f, "------- stderr -------\n{}", String::from_utf8_lossy(&self.stderr))?;
        }
        write!(f, "[exit {}]", self.code)
    }
}

/// Feeds a call, and takes all it says to its end.
#[track_caller]
pub(crate) fn finish(mut child: Child, input: &[u8]) -> Ran {
    let mut stdin = child.stdin.take();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if let Some(mut stdin) = stdin.take() {
                stdin.write_all(input).unwrap();
            }
        });
        let stdout = scope.spawn(move || all(out.as_mut()));
        let stderr = scope.spawn(move || all(err.as_mut()));
        let code = end(&mut child);
        let code = code.code().unwrap_or_else(|| panic!("zeno was killed: {code}"));
        Ran { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    })
}

fn all<R: Read>(pipe: Option<&mut R>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// Its parent may not have asked yet.
pub(crate) fn is_gone(pid: i32) -> bool {
    Stat::of(pid).is_none_or(|stat| stat.state == 'Z')
}

fn is_child(pid: i32, parent: i32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.parent == parent)
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Where the suite was copied for another user, it names the copy.
pub(crate) fn program() -> PathBuf {
    let named = model::env::variables().into_iter().find(|variable| variable.name == "ZENO_BIN".into());
    named.map_or_else(
        || Path::new(env!("CARGO_BIN_EXE_zeno")).to_owned(),
        |variable| variable.value.as_os_str().into(),
    )
}
