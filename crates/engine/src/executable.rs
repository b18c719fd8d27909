//! Running the daemon from a sealed copy of its executable.
//!
//! Inits are forks of the daemon's launcher. Were they to run from the file on disk, a workload that gets hold of
//! `/proc/1/exe` could write to it (CVE-2019-5736); a sealed memfd cannot be written by anyone.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::SealFlags;

use crate::sys;

/// Replaces this process by a sealed copy of itself with the same arguments and environment, unless it is one already.
/// Call it before any thread starts.
pub fn run_sealed(argv: &[&OsStr], env: &[(&OsStr, &OsStr)]) -> io::Result<()> {
    let mut own = File::open("/proc/self/exe")?;
    if rustix::fs::fcntl_get_seals(&own).is_ok_and(|seals| seals.contains(SealFlags::WRITE)) {
        return Ok(());
    }
    let copy = File::from(sys::memory_file(c"zeno")?);
    io::copy(&mut own, &mut &copy)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    rustix::fs::fcntl_add_seals(&copy, seals)?;
    let text = |text: &OsStr| CString::new(text.as_bytes());
    let argv = argv.iter().map(|arg| text(arg)).collect::<Result<Vec<_>, _>>()?;
    let env = env
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect::<Result<Vec<_>, _>>()?;
    let program = CString::new(format!("/proc/self/fd/{}", copy.as_fd().as_raw_fd()))?;
    Err(sys::exec(&program, &argv, &env))
}
