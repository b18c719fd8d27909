//! Making processes and hearing of their end.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::process::{Pid, WaitOptions, WaitStatus};

/// What a new process does not share with us: `CLONE_NEW*` flags.
pub(crate) struct Clone3 {
    pub(crate) namespaces: u64,
}

pub(crate) enum Cloned {
    Child,
    Parent { pid: Pid, descriptor: OwnedFd },
}

/// Forks, with namespaces. The caller must be single-threaded, since only the calling thread lives on in the child.
pub(crate) fn clone3(request: &Clone3) -> io::Result<Cloned> {
    let mut descriptor: RawFd = -1;
    // SAFETY: clone_args is plain data for which all zeroes is valid.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = request.namespaces | libc::CLONE_PIDFD as u64;
    args.pidfd = std::ptr::from_mut(&mut descriptor) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: no memory is shared (no CLONE_VM), so this behaves as fork does; launcher and init, the only
    // callers, have one thread, so no lock can be held by a thread that does not exist in the child.
    let answer = unsafe {
        libc::syscall(libc::SYS_clone3, std::ptr::from_mut(&mut args), size_of::<libc::clone_args>())
    };
    match super::check(answer)? {
        0 => Ok(Cloned::Child),
        pid => {
            let pid = Pid::from_raw(pid as i32).ok_or_else(|| io::Error::other("clone3 answered no pid"))?;
            Ok(Cloned::Parent { pid, descriptor: super::descriptor(descriptor.into())? })
        }
    }
}

/// Replaces this process by `program`. Returns only on failure.
pub(crate) fn exec(program: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| {
        strings.iter().map(|text| text.as_ptr()).chain(std::iter::once(std::ptr::null())).collect::<Vec<_>>()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer, and every string in them outlives the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// A descriptor that becomes readable when one of `signals` arrives; they are blocked from now on.
pub(crate) fn signal_descriptor(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: sigset_t is plain data, and sigemptyset makes it valid whatever it held.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in signals {
        // SAFETY: `set` is a valid sigset_t.
        super::check(unsafe { libc::sigaddset(&raw mut set, *signal) }.into())?;
    }
    // SAFETY: `set` is valid; the old mask is not asked for.
    let done = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
    super::check(done.into())?;
    // SAFETY: `set` is valid; -1 asks for a new descriptor.
    super::descriptor(
        unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) }.into(),
    )
}

/// Takes one pending signal from a signal descriptor, if there is one.
pub(crate) fn take_signal(descriptor: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(descriptor, &mut bytes) {
        // The signal's number is the first field of signalfd_siginfo.
        Ok(_) => Ok(Some(i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))),
        Err(rustix::io::Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reaps one child that has ended, if there is one.
pub(crate) fn wait_any() -> Option<(Pid, WaitStatus)> {
    // The only errors are "no child" and "interrupted", and both mean: nothing to reap now.
    rustix::process::wait(WaitOptions::NOHANG).unwrap_or_default()
}

/// Closes every descriptor except these.
pub(crate) fn close_all_but(keep: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().map(|fd| fd.as_raw_fd() as u32).collect();
    keep.sort_unstable();
    let mut from = 0;
    for fd in keep.into_iter().map(Some).chain([None]) {
        match fd {
            Some(fd) if fd > from => close_range(from, fd - 1)?,
            None => close_range(from, u32::MAX)?,
            Some(_) => {}
        }
        from = fd.map_or(from, |fd| fd + 1);
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: the caller gives up every descriptor in the range; owned values for them must not be dropped later,
    // which holds because both callers diverge (init's loop, exec) without dropping what they inherited.
    super::check(unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) })?;
    Ok(())
}

/// Ends this process at once: no destructors, no buffers, which after a fork belong to the parent.
pub(crate) fn leave(code: i32) -> ! {
    // SAFETY: _exit has no conditions.
    unsafe { libc::_exit(code) }
}

/// Puts signals that are ignored back to their default and unblocks all: what a new program expects to find. Handlers need
/// no care, exec forgets them.
pub(crate) fn default_signals() -> io::Result<()> {
    // Rust ignores SIGPIPE, the launcher SIGCHLD, nohup SIGHUP; whoever started the daemon may have ignored any other.
    for signal in 1..=libc::SIGSYS {
        // The kernel refuses it for SIGKILL and SIGSTOP; that is as it should be.
        // SAFETY: SIG_DFL is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: sigset_t is plain data for which all zeroes is the empty set on Linux.
    let none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `none` is valid; the old mask is not asked for.
    let done = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
    super::check(done.into())?;
    Ok(())
}

/// Forks. The caller must be single-threaded.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: init, the only caller, has one thread, so the child can go on using everything it inherits.
    let answer = super::check(unsafe { libc::fork() }.into())?;
    Ok(Pid::from_raw(answer as i32))
}

/// The most bytes of memory that one process had, of our children that we have waited for and of theirs.
pub(crate) fn largest_child() -> io::Result<u64> {
    // SAFETY: all zeroes is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid and ours.
    super::check(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) }.into())?;
    Ok(usage.ru_maxrss.unsigned_abs() * 1024)
}

/// Signals every process we may signal except ourselves. For pid 1 of a namespace: all the others in it.
/// `false`: there is nobody.
pub(crate) fn signal_everyone(signal: i32) -> io::Result<bool> {
    // SAFETY: kill has no memory conditions.
    let answer = super::check(unsafe { libc::kill(-1, signal) }.into());
    match answer {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        other => other.map(|_| true),
    }
}
