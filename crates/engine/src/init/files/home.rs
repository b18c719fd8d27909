//! Operations at a user's home, as E2B's daemon does them: paths are relative to it, what is made is the user's, and all rights
//! that there are in the sandbox are used.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, fchown, lchown};
use std::path::{Component, Path, PathBuf};

use model::exec::{FrameKind, Text};
use model::files::FileOp;
use rustix::fs::Mode;

use super::across::{carry, remove};
use super::download::download;
use super::entry::{look, note};
use super::fault::{Fault, is_absent};
use super::list::entries;
use super::watch::{self, Watched};
use super::{Whose, Wire};
use crate::init::user::{self, Names};

pub(super) fn work(wire: &mut Wire, whose: Whose, op: &FileOp) -> Result<(), Fault> {
    let home = Home::of(whose);
    // Whatever the daemon was started with: others may enter the folders that are made, and read the files.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    match op {
        FileOp::Download { path, part } => download(wire, &home.resolve(path)?, *part)?,
        FileOp::Upload { path, metadata } => home.upload(wire, &home.resolve(path)?, metadata)?,
        FileOp::Entry { path } => {
            wire.send(FrameKind::Answer, &look(&home.resolve(path)?, &Names::read())?)?
        }
        FileOp::Entries { path, depth } => entries(wire, &home.resolve(path)?, *depth)?,
        FileOp::NewDir { path } => {
            let path = home.resolve(path)?;
            match fs::metadata(&path) {
                Ok(found) if found.is_dir() => return Err(Fault::Exists),
                Ok(_) => return Err(Fault::NotFolder),
                Err(_) => home.make_folders(&path)?,
            }
            wire.send(FrameKind::Answer, &look(&path, &Names::read())?)?;
        }
        FileOp::Move { from, to } => {
            let (from, to) = (home.resolve(given(from)?)?, home.resolve(given(to)?)?);
            fs::symlink_metadata(&from)?;
            home.make_folders(to.parent().unwrap_or(&to))?;
            match fs::rename(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => carry(&from, &to)?,
                other => other?,
            }
            wire.send(FrameKind::Answer, &look(&to, &Names::read())?)?;
        }
        FileOp::Clear { path } => {
            match remove(&home.resolve(given(path)?)?) {
                Err(error) if is_absent(&error) => {}
                other => other?,
            }
            wire.send(FrameKind::Answer, &())?;
        }
        FileOp::Watch { path, recursive, entries } => {
            let root = home.resolve(path)?;
            watch::watch(wire, &Watched { root: &root, recursive: *recursive, entries: *entries })?;
        }
        FileOp::Read { .. }
        | FileOp::Write { .. }
        | FileOp::List { .. }
        | FileOp::Stat { .. }
        | FileOp::Remove { .. }
        | FileOp::MakeDir { .. } => unreachable!("these are not done at home"),
    }
    Ok(())
}

/// Whose, and where that is.
struct Home {
    folder: PathBuf,
    /// Who is given what is made, if that is not us.
    owner: Option<(u32, u32)>,
}

impl Home {
    fn of(whose: Whose) -> Self {
        let ours = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let owner = whose
            .identity
            .as_ref()
            .map(|identity| (identity.uid, identity.gid))
            .filter(|owner| *owner != ours);
        let known = match whose.identity {
            Some(identity) => identity.home.map(PathBuf::from),
            None => whose.home.map(|home| PathBuf::from(home.as_os_str())),
        };
        let folder = known.filter(|folder| folder.is_absolute()).unwrap_or_else(|| {
            let found =
                user::find(&owner.unwrap_or(ours).0.to_string()).ok().and_then(|identity| identity.home);
            found.map_or_else(|| PathBuf::from("/"), PathBuf::from)
        });
        Self { folder, owner }
    }

    /// An absolute path of what is written relative to the home or with `~`.
    fn resolve(&self, path: &Text) -> Result<PathBuf, Fault> {
        let path = Path::new(path.as_os_str());
        let relative = match path.as_os_str().as_bytes() {
            [b'/', ..] => return Ok(path.components().collect()),
            [b'~'] => Path::new(""),
            [b'~', b'/', rest @ ..] => Path::new(std::ffi::OsStr::from_bytes(rest)),
            [b'~', ..] => return Err(Fault::Home),
            _ => path,
        };
        let mut whole = self.folder.clone();
        for part in relative.components() {
            match part {
                Component::Normal(name) => whole.push(name),
                // As a shell at home would understand it, and not where a link leads.
                Component::ParentDir => drop(whole.pop()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(whole)
    }

    /// Makes those that are missing.
    fn make_folders(&self, path: &Path) -> Result<(), Fault> {
        let mut missing = Vec::new();
        for folder in path.ancestors() {
            match fs::metadata(folder) {
                Ok(found) if found.is_dir() => break,
                Ok(_) => return Err(Fault::NotFolder),
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(folder),
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(Fault::NotFolder),
                Err(error) => return Err(error.into()),
            }
        }
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                // Somebody was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => {
                    other?;
                    self.give(|uid, gid| lchown(folder, uid, gid))?;
                }
            }
        }
        Ok(())
    }

    fn upload(&self, wire: &mut Wire, path: &Path, metadata: &BTreeMap<String, String>) -> Result<(), Fault> {
        self.make_folders(path.parent().unwrap_or(path))?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o644);
        // A fifo that nobody reads would be waited for.
        let mut file = match options.custom_flags(libc::O_NONBLOCK).open(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Err(Fault::Folder),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(Fault::Special),
            other => other?,
        };
        if !file.metadata()?.is_file() {
            return Err(Fault::Special);
        }
        self.give(|uid, gid| fchown(&file, uid, gid))?;
        wire.send(FrameKind::Answer, &())?;
        while let Some(bytes) = wire.next_input()? {
            file.write_all(&bytes)?;
        }
        note(&file, metadata)?;
        wire.send(FrameKind::Answer, &look(path, &Names::read())?)?;
        Ok(())
    }

    fn give(&self, change: impl FnOnce(Option<u32>, Option<u32>) -> io::Result<()>) -> io::Result<()> {
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        match change(Some(uid), Some(gid)) {
            // Some files belong to nobody in here, as those of `/proc`. What is written counts.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            other => other,
        }
    }
}

/// Emptiness would mean the home itself, which nobody wants moved or removed.
fn given(path: &Text) -> Result<&Text, Fault> {
    if path.0.is_empty() { Err(Fault::Empty) } else { Ok(path) }
}
