//! Moving from one file system to another: a sandbox shows the machine's mounts one by one, and its overlays do not rename
//! folders of the machine either.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::capture::copy::copy_bytes;
use crate::capture::files::look_at;
use crate::layers::copy;

use super::fault::Fault;

/// Copies beside the target, puts the copy in its place, and removes what was copied.
pub(super) fn carry(from: &Path, to: &Path) -> Result<(), Fault> {
    let copied = beside(to);
    if let Err(fault) = duplicate(from, &copied).and_then(|()| Ok(fs::rename(&copied, to)?)) {
        // It may not have been made at all; why nothing came of it is what is told.
        crate::remove::tree(&copied).or_else(|_| fs::remove_file(&copied)).unwrap_or_default();
        return Err(fault);
    }
    remove(from)?;
    Ok(())
}

/// Whatever it is.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn duplicate(from: &Path, to: &Path) -> Result<(), Fault> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_dir() {
        copy::tree(from, to)?;
    } else if kind.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        let source = OwnedFd::from(fs::File::open(from)?);
        let target = OwnedFd::from(fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?);
        let seen = look_at(&source)?;
        copy_bytes(&source, &target, &seen)?;
        copy::dress(&source, &target, &seen.stat, |_| true)?;
    } else {
        return Err(Fault::Special);
    }
    Ok(())
}

/// A name that nobody else uses, which is short enough whatever the other is.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".zeno-moving-");
    name.push(std::process::id().to_string());
    path.with_file_name(name)
}
