//! The one raw call of this module.

use std::io;

use libc::sock_filter;

/// Puts the filter on the calling thread and on everything it starts, for good.
///
/// The caller has set `no_new_privs` (EACCES otherwise). Allocates nothing and takes no lock, so it may be
/// called between fork and exec.
///
/// # Errors
///
/// What the kernel says: EACCES, or EINVAL where it has no filters.
pub fn install(program: &[sock_filter]) -> io::Result<()> {
    let length =
        u16::try_from(program.len()).map_err(|_too_long| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel only reads `program` and, through it, `len` instructions, which the borrowed slice
    // holds for the duration of the call; it keeps a copy of its own.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
