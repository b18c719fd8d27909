//! What the sandboxes of one home leave on the machine. Taken before and after, and compared whole.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Traces {
    /// Lines of mountinfo that name the home.
    mounts: BTreeSet<String>,
    /// Cgroups named after one of its sandboxes.
    cgroups: BTreeSet<PathBuf>,
    /// Processes that name the home, or belong to the session of one of its daemons: pid and command line.
    processes: BTreeSet<(i32, String)>,
    /// Files beneath its folder of sandboxes.
    files: BTreeSet<PathBuf>,
    /// Files of it that stand behind a loop device, there or deleted.
    loops: BTreeSet<String>,
}

impl Traces {
    pub(crate) fn of(home: &Path, daemons: &BTreeSet<i32>, sandboxes: &[String]) -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let name = home.to_str().unwrap();
        let mut cgroups = BTreeSet::new();
        walk(Path::new("/sys/fs/cgroup"), &mut |path| {
            let leaf = path.file_name().unwrap_or_default();
            if path.is_dir() && sandboxes.iter().any(|id| leaf == id.as_str()) {
                cgroups.insert(path.to_owned());
            }
        });
        let mut files = BTreeSet::new();
        walk(&home.join("sandboxes"), &mut |path| {
            files.insert(path.to_owned());
        });
        Self {
            mounts: mounts.lines().filter(|line| line.contains(name)).map(str::to_owned).collect(),
            cgroups,
            processes: processes(home, daemons),
            files,
            loops: loops(home),
        }
    }
}

/// Everything below a folder, by name.
pub(crate) fn names_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut names = BTreeSet::new();
    walk(folder, &mut |path| {
        names.insert(path.to_owned());
    });
    names
}

/// What a daemon calls its own cgroups, as far as its launcher is in one.
pub(crate) fn cgroups_of(daemon: i32) -> BTreeSet<String> {
    let listed = below(daemon, "zeno-launcher").into_iter().filter_map(|launcher| {
        let text = fs::read_to_string(format!("/proc/{launcher}/cgroup"));
        text.ok()
    });
    let is_its_own = |name: &&str| name.strip_prefix("zeno-").is_some_and(|name| name.len() == 16);
    let names =
        |text: String| text.split(['/', '\n']).filter(is_its_own).map(str::to_owned).collect::<Vec<_>>();
    listed.flat_map(names).collect()
}

/// The cgroups of this name, and all below them.
pub(crate) fn cgroups_named(name: &str) -> BTreeSet<PathBuf> {
    let folders = names_below(Path::new("/sys/fs/cgroup")).into_iter().filter(|path| path.is_dir());
    folders.filter(|path| path.components().any(|part| part.as_os_str() == name)).collect()
}

/// What of this home stands behind a loop device.
pub(crate) fn loops(home: &Path) -> BTreeSet<String> {
    let devices = fs::read_dir("/sys/block").unwrap().map(Result::unwrap);
    let behind =
        devices.filter_map(|device| fs::read_to_string(device.path().join("loop/backing_file")).ok());
    behind.filter(|file| file.contains(home.to_str().unwrap())).collect()
}

/// Inits have no environment and the launcher's command line; but they keep the daemon's session when it is gone.
pub(crate) fn processes(home: &Path, daemons: &BTreeSet<i32>) -> BTreeSet<(i32, String)> {
    pids()
        .filter_map(|pid| {
            let stat = Stat::of(pid)?;
            // The launcher's spare comes and goes with every sandbox; it is nobody's.
            if fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim() == "zeno-spare" {
                return None;
            }
            // A zombie is gone but for its parent's asking.
            let ours = daemons.contains(&stat.session) || names(pid, home);
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            (ours && stat.state != 'Z').then(|| (pid, String::from_utf8_lossy(&line).replace('\0', " ")))
        })
        .collect()
}

/// The living processes of this name that the daemon started.
pub(crate) fn below(parent: i32, name: &str) -> Vec<i32> {
    let is_called =
        |pid: i32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name);
    let is_below = |pid: i32| Stat::of(pid).is_some_and(|stat| stat.parent == parent && stat.state != 'Z');
    pids().filter(|pid| is_below(*pid) && is_called(*pid)).collect()
}

/// The processes of this name that the daemon's launcher started.
pub(crate) fn below_launcher(daemon: i32, name: &str) -> Vec<i32> {
    below(daemon, "zeno-launcher").into_iter().flat_map(|launcher| below(launcher, name)).collect()
}

/// Of every process that this one can see.
fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap().map(Result::unwrap);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What `/proc/<pid>/stat` says of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Self { state, parent, session: fields.nth(1)?.parse().ok()? })
    }
}

/// Unreadable ones are somebody else's, or are found by their session.
fn names(pid: i32, home: &Path) -> bool {
    let home = home.as_os_str().as_bytes();
    ["environ", "cmdline"].iter().any(|file| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(home.len()).any(|part| part == home)
    })
}

/// Everything below a folder. What vanishes while we look is not there.
fn walk(folder: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        see(&entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), see);
        }
    }
}
