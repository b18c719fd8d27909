//! A file as git sees it, before or after.

use std::io::{self, Read};

use gix_index::hash::{Kind, ObjectId, hasher};
use model::diff::Entry;
use model::files::FileKind;

use super::super::both::Version;
use super::super::lowers::Node;
use super::super::part::PartDiff;
use super::super::walk::Found;

#[derive(Clone, Debug)]
pub(in super::super) struct Side {
    /// From the workspace's root.
    pub(super) path: Vec<u8>,
    /// `100644`, `100755` or `120000`.
    pub(super) mode: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Side {
    /// `None`: git would not know of it.
    pub(super) fn before(part: &PartDiff, node: &Node) -> io::Result<Option<Self>> {
        Self::new(part.shown(&node.origin), &node.look.entry, || part.read_node(node))
    }

    pub(super) fn after(part: &PartDiff, found: &Found) -> io::Result<Option<Self>> {
        match &found.after {
            Some(look) => Self::new(part.shown(&found.path), &look.entry, || part.read_after(found)),
            None => Ok(None),
        }
    }

    /// What git would see of this version at this path from the workspace's root.
    pub(in super::super) fn of(path: &[u8], version: &Version<'_>) -> io::Result<Option<Self>> {
        Self::new(path, &version.entry, || version.read())
    }

    fn new(
        path: &[u8],
        entry: &Entry,
        read: impl FnOnce() -> io::Result<Box<dyn Read>>,
    ) -> io::Result<Option<Self>> {
        let (mode, bytes) = match entry.kind {
            FileKind::File => {
                if entry.size > LARGEST {
                    return Err(io::ErrorKind::FileTooLarge.into());
                }
                let mut bytes = Vec::new();
                read()?.read_to_end(&mut bytes)?;
                (if entry.mode & 0o100 == 0 { "100644" } else { "100755" }, bytes)
            }
            FileKind::Symlink => ("120000", entry.target.clone().unwrap_or_default().0),
            FileKind::Directory | FileKind::Fifo | FileKind::Socket | FileKind::Device => return Ok(None),
        };
        Ok(Some(Self { path: path.to_vec(), mode, bytes }))
    }

    pub(super) fn is_link(&self) -> bool {
        self.mode == "120000"
    }
}

pub(super) fn bytes(side: Option<&Side>) -> &[u8] {
    side.map_or(b"", |side| &side.bytes)
}

/// What git calls the contents; all zeroes where there is nothing.
pub(super) fn id(side: Option<&Side>) -> io::Result<ObjectId> {
    let Some(side) = side else { return Ok(ObjectId::null(Kind::Sha1)) };
    let mut hasher = hasher(Kind::Sha1);
    hasher.update(format!("blob {}\0", side.bytes.len()).as_bytes());
    hasher.update(&side.bytes);
    hasher.try_finalize().map_err(io::Error::other)
}

/// As git judges.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|byte| *byte == 0)
}

/// A patch holds its file whole, so does our memory.
const LARGEST: u64 = 256 << 20;
