//! Fingerprints of what was promoted: a file that was saved again without a change is another file to the kernel, and the
//! same to its owner.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};

use gix_index::hash::{Kind, hasher};
use model::exec::Text;
use rustix::fs::{FileType, Mode, OFlags};

use super::moves::Tree;
use crate::capture::files::{Stat, join, open_beneath, split};

/// The fingerprints of all files in a tree, by their paths in it, but for large ones: reading those twice takes longer than
/// they are worth.
pub(super) fn prints(folder: &OwnedFd, name: &[u8], tree: &Tree) -> io::Result<Vec<(Text, String)>> {
    let top = [(Text::default(), tree.top)];
    let mut prints = Vec::new();
    for (below, stat) in top.iter().chain(&tree.below) {
        if stat.file_type() != FileType::RegularFile || stat.size > LARGEST {
            continue;
        }
        match print(folder, name, below) {
            // Not even its owner may read it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            print => prints.push((below.clone(), print?)),
        }
    }
    Ok(prints)
}

/// Are these the same but for the inode and the times?
pub(super) fn looks_alike(one: &Stat, other: &Stat) -> bool {
    let said = |stat: &Stat| (stat.mode, stat.uid, stat.gid, stat.size);
    said(one) == said(other)
}

/// The fingerprint of one file of a tree.
pub(super) fn print(folder: impl AsFd, name: &[u8], below: &Text) -> io::Result<String> {
    let path = if below.0.is_empty() { name.to_vec() } else { join(name, &below.0) };
    let (parent, name) = split(&path);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(open_beneath(folder, parent)?, name, flags, Mode::empty())?);
    let mut hasher = hasher(Kind::Sha1);
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            got => hasher.update(&piece[..got]),
        }
    }
    Ok(hasher.try_finalize().map_err(io::Error::other)?.to_string())
}

const LARGEST: u64 = 16 << 20;
const PIECE: usize = 128 * 1024;
