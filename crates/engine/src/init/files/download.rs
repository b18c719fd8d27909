//! The contents of a file, or a part of them, with how much it will be said first.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use model::exec::FrameKind;
use model::files::{Contents, Part};

use super::Wire;
use super::fault::Fault;

pub(super) fn download(wire: &mut Wire, path: &Path, part: Option<Part>) -> Result<(), Fault> {
    // A fifo that nobody writes would be waited for.
    let mut file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(Fault::Folder);
    }
    if !found.is_file() {
        return Err(Fault::Special);
    }
    let size = found.size();
    if size == 0 {
        return of_unknown_size(wire, &mut file);
    }
    let (first, length) = within(part, size);
    file.seek(SeekFrom::Start(first))?;
    wire.send(FrameKind::Answer, &Contents { size: Some(size), first, length })?;
    let mut promised = file.take(length);
    wire.send_all(&mut promised)?;
    if promised.limit() > 0 {
        // It became shorter meanwhile. Nothing may follow that could be taken for its end.
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(wire.send(FrameKind::Answer, &())?)
}

/// An empty one, or one that is only made as it is read.
fn of_unknown_size(wire: &mut Wire, file: &mut fs::File) -> Result<(), Fault> {
    let mut beginning = [0; 4096];
    let length = file.read(&mut beginning)?;
    let size = if length == 0 { Some(0) } else { None };
    wire.send(FrameKind::Answer, &Contents { size, first: 0, length: 0 })?;
    if length > 0 {
        wire.send_bytes(FrameKind::Stdout, &beginning[..length])?;
        wire.send_all(file)?;
    }
    Ok(wire.send(FrameKind::Answer, &())?)
}

/// Where a part begins, and how long it is.
fn within(part: Option<Part>, size: u64) -> (u64, u64) {
    match part {
        None => (0, size),
        Some(Part::From { first, last }) => {
            let first = first.min(size);
            let end = last.map_or(size, |last| last.saturating_add(1).min(size));
            (first, end.saturating_sub(first))
        }
        Some(Part::Last { length }) => {
            let length = length.min(size);
            (size - length, length)
        }
    }
}
