//! Work on files, in a child of init: it has the user's rights, and if it hangs (a fifo, a slow disk) init does not.

mod across;
mod download;
mod entry;
mod fault;
mod home;
mod list;
mod watch;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use model::Problem;
use model::exec::{FrameHead, FrameKind, Text};
use model::files::{FileOp, Listing};

use super::conversation::frame;
use super::spawn;
use super::user::Identity;
use crate::sys;
use entry::stat;
use fault::Fault;

/// Whose files they are.
#[derive(Debug)]
pub(super) struct Whose {
    /// Absent: the sandbox's own user's.
    pub(super) identity: Option<Identity>,
    /// Of the sandbox's own user.
    pub(super) home: Option<Text>,
}

/// The child's whole life: one operation on one conversation. `early` are bytes already read from it.
pub(super) fn serve(socket: OwnedFd, early: Vec<u8>, whose: Whose, op: &FileOp) -> ! {
    let mut wire = Wire { stream: UnixStream::from(socket), early };
    // A link inside may name a descriptor of ours (`/proc/self/fd/N`): init's log is a file of the host.
    let done = sys::close_all_but(&[wire.stream.as_fd()])
        .and_then(|()| wire.stream.set_nonblocking(false))
        .map_err(Fault::from)
        .and_then(|()| {
            if op.is_at_home() { home::work(&mut wire, whose, op) } else { work(&mut wire, &whose, op) }
        });
    let told = match done {
        Ok(()) => Ok(()),
        Err(fault) => wire.send(FrameKind::Problem, &problem(op, &fault)),
    };
    sys::leave(i32::from(told.is_err()))
}

fn work(wire: &mut Wire, whose: &Whose, op: &FileOp) -> Result<(), Fault> {
    whose.identity.as_ref().map_or(Ok(()), spawn::assume)?;
    match op {
        FileOp::Read { path } => {
            let mut file = fs::File::open(path.as_os_str())?;
            if file.metadata()?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
            }
            wire.send_all(&mut file)?;
            wire.send(FrameKind::Answer, &())?;
        }
        FileOp::Write { path, mode } => {
            let mut options = fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(mode.unwrap_or(0o644))
                .open(path.as_os_str())?;
            while let Some(bytes) = wire.next_input()? {
                file.write_all(&bytes)?;
            }
            if let Some(mode) = mode {
                file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
            }
            wire.send(FrameKind::Answer, &stat(Path::new(path.as_os_str()))?)?;
        }
        FileOp::List { path } => {
            let mut listing = Listing::default();
            for entry in fs::read_dir(path.as_os_str())? {
                listing.entries.push(stat(&entry?.path())?);
            }
            listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
            // A frame has a largest size, and a folder has none.
            for entries in listing.entries.chunks(500) {
                wire.send(FrameKind::Answer, &Listing { entries: entries.to_vec() })?;
            }
            if listing.entries.is_empty() {
                wire.send(FrameKind::Answer, &listing)?;
            }
        }
        FileOp::Stat { path } => wire.send(FrameKind::Answer, &stat(Path::new(path.as_os_str()))?)?,
        FileOp::Remove { path, recursive } => {
            let path = Path::new(path.as_os_str());
            let is_folder = fs::symlink_metadata(path)?.is_dir();
            match (is_folder, recursive) {
                (true, true) => fs::remove_dir_all(path)?,
                (true, false) => fs::remove_dir(path)?,
                (false, _) => fs::remove_file(path)?,
            }
            wire.send(FrameKind::Answer, &())?;
        }
        FileOp::MakeDir { path, mode } => {
            fs::create_dir_all(path.as_os_str())?;
            if let Some(mode) = mode {
                fs::set_permissions(path.as_os_str(), fs::Permissions::from_mode(mode & 0o7777))?;
            }
            wire.send(FrameKind::Answer, &stat(Path::new(path.as_os_str()))?)?;
        }
        FileOp::Download { .. }
        | FileOp::Upload { .. }
        | FileOp::Entry { .. }
        | FileOp::Entries { .. }
        | FileOp::NewDir { .. }
        | FileOp::Move { .. }
        | FileOp::Clear { .. }
        | FileOp::Watch { .. } => unreachable!("these are done at home"),
    }
    Ok(())
}

fn problem(op: &FileOp, fault: &Fault) -> Problem {
    let (verb, path) = match op {
        FileOp::Read { path } | FileOp::Download { path, .. } => ("read", path),
        FileOp::Write { path, .. } | FileOp::Upload { path, .. } => ("write", path),
        FileOp::List { path } | FileOp::Entries { path, .. } => ("list", path),
        FileOp::Stat { path } | FileOp::Entry { path } => ("look at", path),
        FileOp::Remove { path, .. } | FileOp::Clear { path } => ("remove", path),
        FileOp::MakeDir { path, .. } | FileOp::NewDir { path } => ("make", path),
        FileOp::Move { from, .. } => ("move", from),
        FileOp::Watch { path, .. } => ("watch", path),
    };
    let mut problem =
        Problem::new(fault.code(op), format!("could not {verb} `{}` in the sandbox", path.display()));
    problem.causes.push(fault.to_string());
    problem
}

/// The conversation, blocking.
struct Wire {
    stream: UnixStream,
    early: Vec<u8>,
}

impl Wire {
    fn send(&mut self, kind: FrameKind, value: &impl serde::Serialize) -> io::Result<()> {
        self.stream.write_all(&frame(kind, value)?)
    }

    /// The rest of a file, in pieces.
    fn send_all(&mut self, file: &mut impl Read) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                length => self.send_bytes(FrameKind::Stdout, &buffer[..length])?,
            }
        }
    }

    fn send_bytes(&mut self, kind: FrameKind, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(&FrameHead { kind, length: bytes.len() as u32 }.encode())?;
        self.stream.write_all(bytes)
    }

    /// The next piece of input; `None` at its end.
    fn next_input(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; FrameHead::SIZE];
        self.read_exact(&mut head)?;
        let head = FrameHead::decode(head).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        if head.kind != FrameKind::Stdin {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "only input is expected here"));
        }
        let mut bytes = vec![0; head.length as usize];
        self.read_exact(&mut bytes)?;
        Ok((!bytes.is_empty()).then_some(bytes))
    }

    fn read_exact(&mut self, to: &mut [u8]) -> io::Result<()> {
        let early = self.early.len().min(to.len());
        to[..early].copy_from_slice(&self.early[..early]);
        self.early.drain(..early);
        self.stream.read_exact(&mut to[early..])
    }
}

const PIECE: usize = 64 << 10;

#[cfg(test)]
mod tests;
