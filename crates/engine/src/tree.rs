//! Processes and who came from whom, from `/proc`: in a sandbox its own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::sys;

/// What `/proc/<pid>/stat` says of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// Stopped by a signal.
    pub(crate) stopped: bool,
}

/// Every process but init and those that have ended.
pub(crate) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that ends while we look is not there any more.
    pids.filter(|pid| *pid != 1)
        .filter_map(|pid| parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// Ends a command and all that came from it. While it stands still it adopts the orphans and makes nobody new, so
/// that looking again finds whoever was being born.
pub(crate) fn end_family(command: Pid) {
    signal(command, Signal::STOP);
    for _ in 0..ROUNDS {
        let family = family(command.as_raw_nonzero().get());
        let others = family.into_iter().filter_map(Pid::from_raw).filter(|pid| *pid != command);
        if others.map(|pid| signal(pid, Signal::KILL)).count() == 0 {
            break;
        }
    }
    signal(command, Signal::KILL);
}

/// Ends all that came from this process, which adopts whoever loses its parent, and waits for their end.
pub(crate) fn end_descendants() {
    let own = rustix::process::getpid();
    for _ in 0..LOOKS {
        let family = family(own.as_raw_nonzero().get());
        let others = family.into_iter().filter_map(Pid::from_raw).filter(|pid| *pid != own);
        let alive = others.map(|pid| signal(pid, Signal::KILL)).count();
        while sys::wait_any().is_some() {}
        if alive == 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stops everyone but us, and looks until they stand still: a signal takes effect when the kernel lets go of its target,
/// and meanwhile somebody may be born. One that hangs in the kernel is not waited for.
pub(crate) fn stop_everyone() -> io::Result<()> {
    for _ in 0..ROUNDS {
        sys::signal_everyone(libc::SIGSTOP)?;
        if all().iter().all(|process| process.stopped) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A fork bomb could go on for ever; whoever ends it cannot.
const ROUNDS: usize = 100;
/// Ten seconds of looking: one that hangs in the kernel is not waited for any longer.
const LOOKS: usize = 10_000;

/// Whoever ended since we looked is no loss.
fn signal(pid: Pid, signal: Signal) {
    rustix::process::kill_process(pid, signal).unwrap_or_default();
}

/// A command's process and all that came from it: its descendants, and whoever is still in its session.
fn family(root: i32) -> Vec<i32> {
    let processes = all();
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in &processes {
        children.entry(process.parent).or_default().push(process.pid);
    }
    let mut found: HashSet<i32> = HashSet::from([root]);
    let mut at = vec![root];
    at.extend(processes.iter().filter(|process| process.session == root).map(|process| process.pid));
    while let Some(pid) = at.pop() {
        found.insert(pid);
        at.extend(children.remove(&pid).unwrap_or_default());
    }
    found.into_iter().collect()
}

fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    // The name is in parentheses and may hold anything, so count from the last one.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 2..)?).ok()?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let state = *fields.first()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        stopped: matches!(state, "T" | "t"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let process = parse(7, b"7 (a) b (c) T 3 7 5 0 -1").unwrap();
        assert_eq!(process, Process { pid: 7, parent: 3, session: 5, stopped: true });
        assert_eq!(parse(7, b"7 (a"), None);
        assert_eq!(parse(7, b"7 (ended) Z 3 7 5 0 -1"), None);
    }
}
