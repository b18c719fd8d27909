//! Comparing one thing with what was there before: bytes, targets, attributes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use model::exec::Text;
use model::files::FileKind;

use super::both::Contents;
use super::lowers::{Lowers, beside};
use super::upper::Upper;
use super::walk::{Found, Walk};
use crate::capture::layer::{Flavour, attribute};
use crate::capture::metadata::attribute_names;

/// Finds out whether the contents differ, and which attributes.
pub(super) fn differences(walk: &Walk<'_>, found: &mut Found) -> io::Result<()> {
    let (Some(before), Some(after)) = (&found.before, &found.after) else { return Ok(()) };
    let (was, is) = (&before.look.entry, &after.entry);
    found.contents = match is.kind {
        FileKind::File if was.size != is.size => true,
        FileKind::File => false,
        FileKind::Symlink => was.target != is.target,
        FileKind::Directory | FileKind::Fifo | FileKind::Socket | FileKind::Device => false,
    };
    if !matches!(is.kind, FileKind::File | FileKind::Directory) {
        return Ok(());
    }
    let opened = walk.upper.open_entry(&found.path)?;
    let old = walk.lowers.open_entry(before)?;
    found.xattrs = differing(old.as_ref(), &opened)?;
    if is.kind == FileKind::File && !found.contents {
        let is = read_upper(walk.upper, walk.lowers, walk.flavour, &found.path)?;
        found.contents = !same(walk.lowers.read(before)?, is)?;
    }
    Ok(())
}

/// Reads a file of the upper.
pub(super) fn read_upper(
    upper: &Upper,
    lowers: &Lowers,
    flavour: Flavour,
    path: &[u8],
) -> io::Result<Box<dyn Read>> {
    open_upper(upper, lowers, flavour, path).map(Contents::reader)
}

/// The contents of a file of the upper. Where only its metadata was copied up, they are still below.
pub(super) fn open_upper(
    upper: &Upper,
    lowers: &Lowers,
    flavour: Flavour,
    path: &[u8],
) -> io::Result<Contents> {
    let opened = upper.open_entry(path)?;
    if attribute(&opened, flavour.metacopy())?.is_none() {
        return Ok(Contents::File(opened.into()));
    }
    let path = match attribute(&opened, flavour.redirect())? {
        Some(redirect) => beside(path, &redirect),
        None => path.to_vec(),
    };
    match lowers.resolve(&path)? {
        Some(node) => lowers.open_contents(&node),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Do both hold the same, byte for byte?
pub(crate) fn same(mut one: impl Read, mut other: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let (got, other_got) = (fill(&mut one, &mut left)?, fill(&mut other, &mut right)?);
        if left[..got] != right[..other_got] {
            return Ok(false);
        }
        if got == 0 {
            return Ok(true);
        }
    }
}

/// Is it what git takes for binary: a zero byte near the beginning?
pub(super) fn is_binary(mut file: impl Read) -> io::Result<bool> {
    let mut start = vec![0; BINARY_WINDOW];
    let got = fill(&mut file, &mut start)?;
    Ok(start[..got].contains(&0))
}

/// Reads until the buffer is full or the end is met.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// The names of the attributes that are not the same on both.
fn differing(old: Option<&OwnedFd>, new: &OwnedFd) -> io::Result<Vec<Text>> {
    let old = old.map_or_else(|| Ok(BTreeMap::new()), attributes)?;
    Ok(differing_names(&old, &attributes(new)?))
}

pub(super) fn differing_names(
    old: &BTreeMap<CString, Vec<u8>>,
    new: &BTreeMap<CString, Vec<u8>>,
) -> Vec<Text> {
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    let differing = names.filter(|name| old.get(*name) != new.get(*name));
    differing.map(|name| Text(name.to_bytes().to_vec())).collect()
}

/// All that are not overlayfs's own.
pub(super) fn attributes(file: &OwnedFd) -> io::Result<BTreeMap<CString, Vec<u8>>> {
    let mut attributes = BTreeMap::new();
    for name in attribute_names(file.as_fd())? {
        if let Some(value) = attribute(file.as_fd(), &name)? {
            attributes.insert(name, value);
        }
    }
    Ok(attributes)
}

/// What git looks at.
const BINARY_WINDOW: usize = 8000;
const PIECE: usize = 128 * 1024;
