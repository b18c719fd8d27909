//! What /proc says about a process and everything below it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::RigError;
use crate::files;

/// The part of /proc/PID/stat that is of use here.
#[derive(Debug)]
struct Stat {
    parent: i32,
    /// Its own time and that of the children it has waited for.
    cpu: Duration,
}

/// A process and all its descendants.
pub(crate) fn tree(top: i32) -> Result<Vec<i32>, RigError> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for pid in all()? {
        // Gone since the listing: then it has no children either.
        if let Ok(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = vec![top];
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    Ok(found)
}

/// CPU time of processes, each with that of the children it has waited for.
#[derive(Debug)]
pub(crate) struct Cpu(BTreeMap<i32, Duration>);

impl Cpu {
    /// Those that have just ended are left out.
    pub(crate) fn of(pids: &[i32]) -> Self {
        Self(pids.iter().filter_map(|pid| Some((*pid, stat(*pid).ok()?.cpu))).collect())
    }

    /// What was spent meanwhile by those that are still there, and by those that came. One that has ended takes its time
    /// along where nobody waited for it: it must not be taken from the others'.
    pub(crate) fn since(&self, before: &Self) -> Duration {
        let spent = |(pid, now): (&i32, &Duration)| match before.0.get(pid) {
            Some(then) => now.saturating_sub(*then),
            None => *now,
        };
        self.0.iter().map(spent).sum()
    }
}

/// Proportional set size in bytes: shared pages count by share, so that a sum counts each once.
pub(crate) fn pss(pid: i32) -> Result<u64, RigError> {
    let rollup = files::read(Path::new(&format!("/proc/{pid}/smaps_rollup")))?;
    let kilobytes = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.map(|kilobytes| kilobytes * 1024).ok_or(RigError::Stat { pid })
}

pub(crate) fn all() -> Result<Vec<i32>, RigError> {
    let entries = files::list(Path::new("/proc"))?;
    Ok(entries.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok()).collect())
}

fn stat(pid: i32) -> Result<Stat, RigError> {
    parse(&files::read(Path::new(&format!("/proc/{pid}/stat")))?).ok_or(RigError::Stat { pid })
}

fn parse(text: &str) -> Option<Stat> {
    // The name in brackets may itself hold spaces and brackets.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks: u64 = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum::<Option<_>>()?;
    Some(Stat { parent, cpu: Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_a_hostile_name() {
        let stat = parse("7 (a) b (c) S 5 7 7 0 -1 4 0 0 0 0 100 50 25 25 20 0 1 0 9").unwrap();
        assert_eq!((stat.parent, stat.cpu), (5, Duration::from_secs(2)));
    }

    #[test]
    fn what_ended_meanwhile_is_not_taken_from_the_others() {
        let seconds = |times: &[(i32, u64)]| {
            Cpu(times.iter().map(|(pid, seconds)| (*pid, Duration::from_secs(*seconds))).collect())
        };
        let (before, after) = (seconds(&[(1, 10), (2, 90)]), seconds(&[(1, 13), (3, 4)]));
        assert_eq!(after.since(&before), Duration::from_secs(7));
    }

    #[test]
    fn a_child_is_below_us_and_has_memory() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(tree(own).unwrap().contains(&pid));
        assert!(pss(own).unwrap() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
