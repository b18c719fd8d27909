//! The processes of the sandbox, from its own `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;

/// What `/proc/<pid>/stat` says of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// Stopped by a signal.
    pub(super) stopped: bool,
}

/// Every process but init.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // A process that ends while we look is not there any more.
    pids.filter(|pid| *pid != 1)
        .filter_map(|pid| parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// A command's process and all that came from it: its descendants, and whoever is still in its session.
pub(super) fn family(root: i32) -> Vec<i32> {
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
    Some(Process {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        stopped: matches!(*fields.first()?, "T" | "t"),
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
    }
}
