//! Processes and who came from whom, from `/proc`: in a sandbox its own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::time::{Duration, Instant};

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
    pids.filter(|pid| *pid != 1).filter_map(|pid| parse(pid, &stat_of(pid)?)).collect()
}

/// None: it is not there any more.
pub(crate) fn stat_of(pid: i32) -> Option<Vec<u8>> {
    fs::read(format!("/proc/{pid}/stat")).ok()
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

/// Stops everyone but us, and looks until they stand still: a signal takes effect when the kernel lets go of its target.
/// On failure some may be stopped, and the caller lets them go on.
///
/// Not by a cgroup's freezer: that of version 2 would stop init with the rest, which keeps the clock and has to answer;
/// that of version 1 is a hierarchy of its own, which no sandbox is in.
pub(crate) fn stop_everyone() -> Result<(), StopError> {
    settle(PATIENCE, || sys::signal_everyone(libc::SIGSTOP).map(drop), restless)
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StopError {
    #[error("could not signal the processes of the sandbox")]
    Signal(#[source] io::Error),
    #[error("could not see whether the processes of the sandbox stand still")]
    Look(#[source] io::Error),
    #[error(
        "the sandbox does not stand still: process {} had not stopped {} s after it was told to (state {})",
        .0.pid, PATIENCE.as_secs(), .0.state
    )]
    Restless(Thread),
}

/// One thread that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    /// Of its process.
    pid: i32,
    /// As `ps` names it.
    state: char,
}

/// Twice nobody may be seen to run, without being told again in between: while we look from one to the next, one that
/// still ran could wake another that we have seen already, and a timer can wake anybody.
fn settle(
    patience: Duration,
    mut stop: impl FnMut() -> io::Result<()>,
    mut look: impl FnMut() -> io::Result<Option<Thread>>,
) -> Result<(), StopError> {
    let deadline = Instant::now() + patience;
    loop {
        stop().map_err(StopError::Signal)?;
        let mut seen = look().map_err(StopError::Look)?;
        if seen.is_none() {
            std::thread::sleep(MOMENT);
            seen = look().map_err(StopError::Look)?;
        }
        match seen {
            None => return Ok(()),
            Some(thread) if Instant::now() >= deadline => return Err(StopError::Restless(thread)),
            Some(_) => std::thread::sleep(MOMENT),
        }
    }
}

/// One that does not stand still, if there is any. Threads stop one by one, so each is looked at.
fn restless() -> io::Result<Option<Thread>> {
    for pid in numbers("/proc")?.into_iter().filter(|pid| *pid != 1) {
        let tasks = format!("/proc/{pid}/task");
        for task in unless_ended(numbers(&tasks))?.unwrap_or_default() {
            let task = format!("{tasks}/{task}");
            let stat = unless_ended(fs::read(format!("{task}/stat")))?;
            let Some(state) = stat.as_deref().and_then(state) else { continue };
            let stands = match state {
                'T' | 't' | 'Z' | 'X' => true,
                'D' => waits_for_newborn(&task)?,
                _ => false,
            };
            if !stands {
                return Ok(Some(Thread { pid, state }));
            }
        }
    }
    Ok(None)
}

/// In an uninterruptible sleep a stop only waits. Mostly that cannot be left at that: a long `write` goes on when it wakes
/// up, and changes the file while it is copied. But one that makes a process changes no file until it has done so. And
/// after `vfork` it sleeps until its child becomes a program or ends, which that does not do before we let it: this one
/// would never be seen to stop.
fn waits_for_newborn(task: &str) -> io::Result<bool> {
    let call = match fs::read_to_string(format!("{task}/syscall")) {
        // We may not look into it, so that we do not know.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
        call => unless_ended(call)?,
    };
    Ok(call.is_some_and(|call| is_making_process(&call)))
}

/// Reads `/proc/<pid>/syscall`, which begins with the number of the call.
fn is_making_process(call: &str) -> bool {
    let number = call.split_whitespace().next().and_then(|number| number.parse().ok());
    number.is_some_and(|number: i64| MAKING_PROCESSES.contains(&number))
}

#[cfg(target_arch = "x86_64")]
const MAKING_PROCESSES: &[i64] = &[libc::SYS_vfork, libc::SYS_clone, libc::SYS_clone3];
#[cfg(not(target_arch = "x86_64"))]
const MAKING_PROCESSES: &[i64] = &[libc::SYS_clone, libc::SYS_clone3];

fn numbers(folder: &str) -> io::Result<Vec<i32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(numbers)
}

/// Whoever ended while we look is not there any more.
fn unless_ended<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        other => other.map(Some),
    }
}

/// A fork bomb could go on for ever; whoever ends it cannot.
const ROUNDS: usize = 100;
/// Ten seconds of looking: one that hangs in the kernel is not waited for any longer.
const LOOKS: usize = 10_000;
/// What a slow disk may take for one call. Meanwhile init does nothing else, and the daemon waits for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const MOMENT: Duration = Duration::from_millis(1);

/// Whoever ended since we looked is no loss.
fn signal(pid: Pid, signal: Signal) {
    rustix::process::kill_process(pid, signal).unwrap_or_default();
}

/// A command's process and all that came from it: its descendants, and whoever is still in its session.
pub(crate) fn family(root: i32) -> Vec<i32> {
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

/// What comes after the name, which is in parentheses and may hold anything, so that the last one counts.
pub(crate) fn after_name(stat: &[u8]) -> Option<&str> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(stat.get(end + 2..)?).ok()
}

fn state(stat: &[u8]) -> Option<char> {
    after_name(stat)?.chars().next()
}

fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let fields: Vec<&str> = after_name(stat)?.split(' ').collect();
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
    use std::ffi::{CStr, CString};

    use rustix::fs::Mode;

    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_confuse() {
        let process = parse(7, b"7 (a) b (c) T 3 7 5 0 -1").unwrap();
        assert_eq!(process, Process { pid: 7, parent: 3, session: 5, stopped: true });
        assert_eq!(parse(7, b"7 (a"), None);
        assert_eq!(parse(7, b"7 (ended) Z 3 7 5 0 -1"), None);
        assert_eq!((state(b"7 (a) b (c) D 3 7"), state(b"7 (a")), (Some('D'), None));
    }

    /// What comes of looking at somebody who is seen like this, one look after the other, the last for ever.
    fn settled(looks: &[Option<Thread>]) -> Result<usize, StopError> {
        let (mut told, mut looked) = (0, 0);
        let look = || {
            looked += 1;
            Ok(looks[(looked - 1).min(looks.len() - 1)])
        };
        let stop = || {
            told += 1;
            Ok(())
        };
        settle(Duration::from_millis(50), stop, look).map(|()| told)
    }

    #[test]
    fn who_never_stands_still_is_named() {
        let runs = Some(Thread { pid: 7, state: 'R' });
        assert_eq!(settled(&[None]).unwrap(), 1);
        assert_eq!(settled(&[runs, runs, None]).unwrap(), 3);
        assert_eq!(settled(&[None, runs, None]).unwrap(), 2, "woken by another");
        let error = settled(&[None, runs]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the sandbox does not stand still: process 7 had not stopped 5 s after it was told to (state R)"
        );
        let unseen = settle(PATIENCE, || Ok(()), || Err(io::ErrorKind::OutOfMemory.into())).unwrap_err();
        assert!(matches!(unseen, StopError::Look(_)), "{unseen}");
    }

    #[test]
    fn a_sleep_that_no_stop_ends_is_only_that_of_making_a_process() {
        let line = |call: i64| format!("{call} 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffd 0x7f01\n");
        assert!(MAKING_PROCESSES.iter().all(|call| is_making_process(&line(*call))));
        for other in [&line(libc::SYS_write), &line(libc::SYS_fsync), "running\n", "-1 0x7ffd 0x7f01\n", ""] {
            assert!(!is_making_process(other), "{other}");
        }
    }

    /// A real process, seen from here as init sees one.
    #[test]
    fn threads_are_looked_at_one_by_one() {
        let seen = restless().unwrap().unwrap();
        assert!(seen.pid != 1 && !matches!(seen.state, 'T' | 't' | 'Z' | 'X'), "{seen:?}");
        assert!(!waits_for_newborn("/proc/self/task/0").unwrap(), "who is gone waits for nobody");
    }

    #[test]
    fn who_waits_for_a_newborn_is_told_from_who_waits_for_a_disk() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let path = CString::new(fifo.as_os_str().as_encoded_bytes()).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let spawning = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            spawn_reading(&path)
        });
        let task = format!("/proc/self/task/{}", told.recv().unwrap());
        // Its child opens the pipe before it becomes a program, and waits for a writer.
        let deadline = Instant::now() + Duration::from_secs(60);
        while state(&fs::read(format!("{task}/stat")).unwrap()) != Some('D') {
            assert!(Instant::now() < deadline, "it never waited");
            std::thread::yield_now();
        }
        assert!(waits_for_newborn(&task).unwrap());
        drop(fs::File::options().write(true).open(&fifo).unwrap());
        let child = spawning.join().unwrap();
        rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).unwrap();
    }

    /// Starts `true` with its input from this file, by `vfork`.
    fn spawn_reading(path: &CStr) -> Pid {
        let mut actions = std::mem::MaybeUninit::uninit();
        // SAFETY: it writes `actions`, and reads nothing of it.
        assert_eq!(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) }, 0);
        // SAFETY: the call above has made it.
        let mut actions = unsafe { actions.assume_init() };
        // SAFETY: `actions` is valid, and the path ends with a null; it is copied.
        let added = unsafe {
            libc::posix_spawn_file_actions_addopen(&raw mut actions, 0, path.as_ptr(), libc::O_RDONLY, 0)
        };
        assert_eq!(added, 0);
        let (program, mut pid) = (c"/bin/true", 0);
        let argv = [program.as_ptr().cast_mut(), std::ptr::null_mut()];
        let env = [std::ptr::null_mut()];
        // SAFETY: all pointers are to values that outlive the call, and both arrays end with a null pointer.
        let done = unsafe {
            libc::posix_spawn(
                &raw mut pid,
                program.as_ptr(),
                &raw const actions,
                std::ptr::null(),
                argv.as_ptr(),
                env.as_ptr(),
            )
        };
        assert_eq!(done, 0);
        // SAFETY: it is valid, and nobody uses it any more.
        assert_eq!(unsafe { libc::posix_spawn_file_actions_destroy(&raw mut actions) }, 0);
        Pid::from_raw(pid).unwrap()
    }
}
