//! From what differs to 32 bytes that stand for it.
//!
//! The same state has the same digest however it came about and however it lies on disk, and one changed byte gives
//! another: every path that is not as it was goes in with its type, mode, owner, target, attributes and contents. Times do
//! not, and of git's own folders only what says where branches stand.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

use model::Digest;
use model::diff::Entry;
use model::exec::Text;
use model::files::FileKind;
use sha2::{Digest as _, Sha256};

use super::compare::attributes;
use super::part::PartDiff;
use super::report::git_folder;
use super::walk::{Found, Kind};
use super::{Comparison, DiffError};

/// A state's digest, and what it does not cover although it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDigest {
    pub digest: Digest,
    /// Absolute paths that we had no right to read.
    pub unread: Vec<Text>,
}

pub(super) fn digest(comparison: &Comparison, base: &[u8]) -> Result<StateDigest, DiffError> {
    let mut paths = BTreeMap::new();
    let mut unread = Vec::new();
    for part in &comparison.parts {
        unread.extend(part.unread.iter().map(|path| absolute(part, path)));
        for found in part.found.iter().filter(|found| is_covered(part, &found.path)) {
            let path = absolute(part, &found.path);
            let is = match state(part, found) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    unread.push(path.clone());
                    vec![UNREAD]
                }
                other => {
                    let failed =
                        |source| DiffError::Read { path: part.absolute(part.shown(&found.path)), source };
                    other.map_err(failed)?
                }
            };
            if let (Kind::Renamed, Some(before)) = (found.kind, &found.before) {
                // Something else may stand there now.
                paths.entry(absolute(part, &before.origin)).or_insert_with(|| vec![GONE]);
            }
            match found.kind {
                Kind::Deleted => drop(paths.entry(path).or_insert(is)),
                Kind::Added | Kind::Modified | Kind::Renamed | Kind::TypeChanged => {
                    drop(paths.insert(path, is));
                }
            }
        }
    }
    unread.sort();
    unread.dedup();
    let mut whole = Sha256::new();
    feed(&mut whole, VERSION);
    feed(&mut whole, base);
    for path in &unread {
        feed(&mut whole, &path.0);
    }
    for (path, is) in &paths {
        feed(&mut whole, &path.0);
        feed(&mut whole, is);
    }
    Ok(StateDigest { digest: Digest(whole.finalize().into()), unread })
}

/// What stands at a path now, in a form that nothing else has.
fn state(part: &PartDiff, found: &Found) -> io::Result<Vec<u8>> {
    let Some(after) = &found.after else { return Ok(vec![GONE]) };
    let Entry { kind, size: _, mode, uid, gid, target } = &after.entry;
    let mut hasher = Sha256::new();
    hasher.update([letter(*kind)]);
    for number in [mode, uid, gid] {
        hasher.update(number.to_le_bytes());
    }
    feed(&mut hasher, target.as_ref().map_or(b"", |target| &target.0));
    if matches!(kind, FileKind::File | FileKind::Directory) {
        for (name, value) in attributes(&part.open_after(found)?)? {
            feed(&mut hasher, name.as_bytes());
            feed(&mut hasher, &value);
        }
        // So that an attribute cannot be taken for contents.
        feed(&mut hasher, b"");
    }
    if *kind == FileKind::File {
        hasher.update(contents(part.read_after(found)?)?);
    }
    if let (Kind::Renamed, FileKind::Directory, Some(before)) = (found.kind, kind, &found.before) {
        // What came along is as it was there.
        feed(&mut hasher, &absolute(part, &before.origin).0);
    }
    Ok([&[THERE][..], &hasher.finalize()].concat())
}

fn contents(mut file: impl Read) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(got) => hasher.update(&piece[..got]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Git rewrites its own folders whenever it is asked something. Where branches stand is all that matters of them.
fn is_covered(part: &PartDiff, path: &[u8]) -> bool {
    let Some(git) = git_folder(part, path) else { return true };
    let path = part.absolute(part.shown(path));
    let Ok(inside) = path.strip_prefix(&git) else { return false };
    let names: Vec<_> = inside.iter().map(OsStrExt::as_bytes).collect();
    let is_log = names.first().is_some_and(|first| matches!(*first, b"logs" | b"objects"));
    let is_name = names.last().is_some_and(|last| matches!(*last, b"HEAD" | b"packed-refs"));
    !is_log && (is_name || names.contains(&&b"refs"[..]))
}

fn absolute(part: &PartDiff, path: &[u8]) -> Text {
    Text(part.absolute(part.shown(path)).as_os_str().as_bytes().to_vec())
}

/// With its length, so that two neighbours cannot be taken for one.
fn feed(hasher: &mut Sha256, bytes: &[u8]) {
    hasher.update((bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

fn letter(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => b'f',
        FileKind::Directory => b'd',
        FileKind::Symlink => b'l',
        FileKind::Fifo => b'p',
        FileKind::Socket => b's',
        FileKind::Device => b'b',
    }
}

/// Changes with whatever goes in.
const VERSION: &[u8] = b"zeno state 1";
const GONE: u8 = 0;
const THERE: u8 = 1;
const UNREAD: u8 = 2;
const PIECE: usize = 128 * 1024;
