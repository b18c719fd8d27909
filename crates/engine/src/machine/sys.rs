//! The raw calls of this module that `rustix` does not have.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::io::Errno;
use rustix::process::Pid;

/// The child's pid in the parent, `None` in the child.
pub(super) fn fork() -> Result<Option<Pid>, Errno> {
    // SAFETY: the callers in `child` make only system calls in the child and leave it with `exit_now`.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(last_errno()) } else { Ok(Pid::from_raw(pid)) }
}

/// Ends a forked child without running anything of the parent's.
pub(super) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes any number and does not return.
    unsafe { libc::_exit(code) }
}

/// Moves the calling process, which has one thread, into new namespaces.
pub(super) fn unshare(flags: libc::c_int) -> Result<(), Errno> {
    // SAFETY: takes a number; called in forked children only, so no other thread shares what is unshared.
    check(i64::from(unsafe { libc::unshare(flags) }))
}

/// Maps the owners of everything below a detached mount through a user namespace.
pub(super) fn idmap(mount: BorrowedFd<'_>, namespace: impl AsFd) -> Result<(), Errno> {
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: namespace.as_fd().as_raw_fd() as u64,
    };
    // SAFETY: the path is a string constant, `attributes` outlives the call and its size is given.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    })
}

pub(super) fn has_mount_api() -> bool {
    // SAFETY: a null name is an answer the kernel refuses (EFAULT, or EPERM) if it has the call at all.
    let result = check(unsafe { libc::syscall(libc::SYS_fsopen, std::ptr::null::<libc::c_char>(), 0) });
    result != Err(Errno::NOSYS)
}

pub(super) fn has_seccomp() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one 32-bit number, which outlives the call.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) })
        .is_ok()
}

pub(super) fn landlock_abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes a null pointer and size 0, and answers a number.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION)
    };
    // Negative where Landlock is not built in or not turned on.
    u32::try_from(abi).unwrap_or(0)
}

fn check(result: i64) -> Result<(), Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).expect("a failed call has set errno")
}
