//! Raw calls that no safe wrapper has: one small function each, returning `io::Result` and owned descriptors.

mod loops;
mod net;
mod process;
mod send;

pub(crate) use loops::{configure_loop, free_loop};
pub(crate) use net::loopback_up;
pub(crate) use process::{
    Clone3, Cloned, clone3, close_all_but, default_signals, exec, fork, largest_child, leave,
    signal_descriptor, signal_everyone, take_signal, wait_any,
};
pub(crate) use send::{receive, receive_at_most, send};

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Gives the detached mount `mount` the id mapping of the user namespace `namespace`.
pub(crate) fn idmap_mount(mount: BorrowedFd<'_>, namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: mount_attr is plain data for which all zeroes is valid.
    let mut attr: libc::mount_attr = unsafe { std::mem::zeroed() };
    attr.attr_set = libc::MOUNT_ATTR_IDMAP;
    attr.userns_fd = namespace.as_raw_fd() as u64;
    set_mount_attr(mount, &attr, 0)
}

/// Sets mount attributes (`MOUNT_ATTR_RDONLY` and the like) on a mount and, if asked, on all below it.
pub(crate) fn add_mount_flags(mount: BorrowedFd<'_>, flags: u64, below_too: bool) -> io::Result<()> {
    // SAFETY: mount_attr is plain data for which all zeroes is valid.
    let mut attr: libc::mount_attr = unsafe { std::mem::zeroed() };
    attr.attr_set = flags;
    set_mount_attr(mount, &attr, if below_too { libc::AT_RECURSIVE } else { 0 })
}

fn set_mount_attr(mount: BorrowedFd<'_>, attr: &libc::mount_attr, flags: i32) -> io::Result<()> {
    // SAFETY: the empty path is a valid C string, `attr` outlives the call and its size is its type's size.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags | libc::AT_EMPTY_PATH,
            std::ptr::from_ref(attr),
            size_of::<libc::mount_attr>(),
        )
    };
    check(done)?;
    Ok(())
}

/// Makes an anonymous file, sealable.
pub(crate) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    let flags = rustix::fs::MemfdFlags::ALLOW_SEALING | rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create(name, flags)?)
}

/// Turns a system call's answer into a result.
fn check(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

fn descriptor(answer: libc::c_long) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    let raw = check(answer)? as RawFd;
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
