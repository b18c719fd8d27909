//! The plan's types. They are stored with the sandbox, so they only grow.

use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use model::net::Wiring;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// Everything launcher and init need to make a sandbox. Two sandboxes may have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub hostname: String,
    pub root: Root,
    /// Shallow first, so that each finds its mount point in place.
    pub parts: Vec<Part>,
    pub net: Wiring,
    pub nested: bool,
    /// Processes of one user inside.
    pub pids: u64,
    /// What it writes goes to a file system of its own with this many bytes, instead of to the store.
    #[serde(default)]
    pub disk: Option<u64>,
    /// Where that file system is.
    #[serde(default)]
    pub disk_kind: DiskKind,
}

impl Plan {
    /// The size of the sandbox's disk image, if it has one.
    #[must_use]
    pub fn image(&self) -> Option<u64> {
        self.disk.filter(|_| self.disk_kind == DiskKind::Image)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DiskKind {
    /// A tmpfs, lost with the sandbox's processes.
    #[default]
    Memory,
    /// A file in the sandbox's folder ([`crate::image`]).
    Image,
}

impl Plan {
    /// Would both show the same? The times of the top folders may differ: those of the machine's busy ones always do.
    #[must_use]
    pub fn shows_the_same_as(&self, other: &Self) -> bool {
        // Named one by one, so that whoever adds one is asked whether it shows.
        let Self { hostname, root, parts, net, nested, pids, disk, disk_kind } = self;
        (hostname, root, net, nested, pids, disk, disk_kind)
            == (
                &other.hostname,
                &other.root,
                &other.net,
                &other.nested,
                &other.pids,
                &other.disk,
                &other.disk_kind,
            )
            && parts.len() == other.parts.len()
            && parts.iter().zip(&other.parts).all(|(part, other)| part.shows_the_same_as(other))
    }
}

/// What stands at `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// The first part.
    FirstPart,
    /// A small read-only tree that holds the parts. An ordinary user cannot overlay `/` itself.
    Skeleton(Vec<Bone>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bone {
    pub path: PathBuf,
    pub kind: BoneKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoneKind {
    Folder { mode: u32 },
    Link { target: PathBuf },
    File { mode: u32, bytes: Vec<u8> },
}

/// One overlay of the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Names its folder below the sandbox's `upper` and `work`.
    pub name: String,
    pub mountpoint: PathBuf,
    /// Top first.
    pub lowers: Vec<Lower>,
    /// A lower that is reached only through stubs in the others.
    pub data: Option<Lower>,
    /// Mount this folder of the overlay instead of its root.
    pub inner: Option<String>,
    /// What the top folder looks like.
    pub top: Meta,
    /// May be left out, with a caveat, if it cannot be mounted: a mount of the machine beside the root.
    pub optional: bool,
}

impl Part {
    fn shows_the_same_as(&self, other: &Self) -> bool {
        let Self { name, mountpoint, lowers, data, inner, top, optional } = self;
        (name, mountpoint, lowers, data, inner, optional)
            == (&other.name, &other.mountpoint, &other.lowers, &other.data, &other.inner, &other.optional)
            && top.timeless() == other.top.timeless()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lower {
    /// A folder of the real machine: the mount it lies on, and where in it.
    Machine { mount: PathBuf, inside: PathBuf },
    /// A folder of the store, relative to `$ZENO_HOME`.
    Store(PathBuf),
    /// A small layer that hides and puts in.
    Hide(Hides),
}

/// The entries of a hiding layer, as text: there are hundreds, and each is stored, compared and passed on with every sandbox
/// but read only when a layer is made or compared with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hides(Arc<RawValue>);

impl Hides {
    /// Fails where a name is not UTF-8.
    pub fn new(entries: &[Hidden]) -> serde_json::Result<Self> {
        Ok(Self(Arc::from(to_raw_value(entries)?)))
    }

    pub fn entries(&self) -> serde_json::Result<Vec<Hidden>> {
        serde_json::from_str(self.0.get())
    }
}

impl PartialEq for Hides {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Hides {}

impl Hash for Hides {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.get().hash(state);
    }
}

/// One entry of a hiding layer, parents before children.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hidden {
    /// Relative to the part.
    pub path: PathBuf,
    pub kind: HiddenKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HiddenKind {
    /// As if it did not exist.
    Absent,
    /// A folder on the way to another entry; what is below shines through.
    Through(Meta),
    /// A folder that starts empty.
    Empty(Meta),
    /// A file put in.
    File { bytes: Vec<u8>, meta: Meta },
}

/// What a folder or file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Meta {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Seconds and nanoseconds.
    pub modified: (i64, u32),
}

impl Meta {
    #[must_use]
    pub fn of(stat: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            mode: stat.mode() & 0o7777,
            uid: stat.uid(),
            gid: stat.gid(),
            modified: (stat.mtime(), stat.mtime_nsec() as u32),
        }
    }

    /// Without its time. Hiding layers are shared by all sandboxes that hide the same; the time of a busy folder would
    /// make every one of them different.
    #[must_use]
    pub(super) fn timeless(self) -> Self {
        Self { modified: (0, 0), ..self }
    }

    /// Without write permission for anyone: for a folder that the real one's owner would not let us write to.
    #[must_use]
    pub fn unwritable(self) -> Self {
        Self { mode: self.mode & !0o222, ..self }
    }
}
