//! One overlay of a sandbox, compared.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::diff::Entry;
use model::files::FileKind;

use super::lowers::{Lowers, Node};
use super::tree::{Look, Opaque};
use super::upper::Upper;
use super::walk::{Failed, Found, Walk};
use super::{Ask, DiffError, compare, ignored, rename};
use crate::capture::files::{join, split};
use crate::capture::git::{common_dir, git_dir};
use crate::capture::layer::Flavour;
use crate::launcher::Rights;
use crate::view::Part;

#[derive(Debug)]
pub(super) struct PartDiff {
    pub(super) mountpoint: PathBuf,
    pub(super) role: Role,
    /// The folder of the overlay that is shown.
    pub(super) inner: Vec<u8>,
    pub(super) upper: Upper,
    pub(super) lowers: Lowers,
    pub(super) flavour: Flavour,
    pub(super) found: Vec<Found>,
    pub(super) unread: Vec<Vec<u8>>,
    moved: HashSet<Vec<u8>>,
    /// The names of each file of the upper, by inode, where there is more than one.
    pub(super) linked: HashMap<u64, Vec<Vec<u8>>>,
    ignored: HashSet<Vec<u8>>,
    /// Git's own folders of the workspace, as shown, where they have a name of their own choosing.
    pub(super) git: Vec<Vec<u8>>,
}

/// What a walk came back with.
struct Walked {
    found: Vec<Found>,
    unread: Vec<Vec<u8>>,
    moved: HashSet<Vec<u8>>,
    linked: HashMap<u64, Vec<Vec<u8>>>,
}

/// What a part is to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Workspace,
    /// The git folder of a linked worktree, which lies elsewhere.
    Git,
    Machine,
}

impl PartDiff {
    /// Compares a part. `None`: nothing was ever written there.
    pub(super) fn of(part: &Part, ask: &Ask<'_>) -> Result<Option<Self>, DiffError> {
        let flavour = flavour(ask.rights);
        let layers = ask.upper.into_iter().chain(ask.layers.iter().map(PathBuf::as_path));
        let mut written = layers.map(|layer| layer.join(&part.name)).filter(|path| path.is_dir());
        let Some(path) = written.next() else { return Ok(None) };
        let opened = |source| DiffError::Layer { path: path.clone(), source };
        let upper = Upper::open(&path, written, flavour).map_err(opened)?;
        let inner = part.inner.clone().unwrap_or_default().into_bytes();
        let Some(top) = upper.look(&inner).map_err(opened)? else { return Ok(None) };
        let was = top_look(part, ask.rights, &top);
        if part.inner.is_none() && top == was && upper.names(b"").map_err(opened)?.is_empty() {
            return Ok(None);
        }
        let mut whole = Self::over(upper, part, ask)?;
        let was = part.inner.is_none().then_some(was);
        let mut walk = whole.walk(top, was).map_err(|(path, source)| DiffError::Compare {
            path: whole.absolute(whole.shown(&path)),
            source,
        })?;
        walk.found.retain(|found| whole.is_asked(&found.path, found.before.as_ref(), ask.paths));
        walk.unread.retain(|path| whole.is_asked(path, None, ask.paths));
        Walked { found: whole.found, unread: whole.unread, moved: whole.moved, linked: whole.linked } = walk;
        if whole.role == Role::Workspace {
            whole.ignored = ignored::among(&whole);
        }
        Ok(Some(whole))
    }

    /// A part in which nothing was written, for looking at what it shows.
    pub(super) fn unwritten(part: &Part, ask: &Ask<'_>) -> Result<Self, DiffError> {
        Self::over(Upper::nothing(flavour(ask.rights)), part, ask)
    }

    /// Not compared yet.
    fn over(upper: Upper, part: &Part, ask: &Ask<'_>) -> Result<Self, DiffError> {
        let flavour = flavour(ask.rights);
        let role = match (&part.inner, ask.workspace) {
            (Some(_), Some(workspace)) if part.mountpoint == workspace => Role::Workspace,
            (Some(_), _) => Role::Git,
            (None, _) => Role::Machine,
        };
        let git = if role == Role::Workspace { own_git(&part.mountpoint) } else { Vec::new() };
        Ok(Self {
            mountpoint: part.mountpoint.clone(),
            role,
            inner: part.inner.clone().unwrap_or_default().into_bytes(),
            upper,
            lowers: Lowers::open(part, ask.home, ask.rights, flavour)?,
            flavour,
            found: Vec::new(),
            unread: Vec::new(),
            moved: HashSet::new(),
            linked: HashMap::new(),
            ignored: HashSet::new(),
            git,
        })
    }

    /// `was` is what the top folder looked like, where the lowers do not say.
    fn walk(&self, top: Look, was: Option<Look>) -> Result<Walked, Failed> {
        let failed = |error| (self.inner.clone(), error);
        let mut walk = Walk::new(&self.upper, &self.lowers, self.flavour);
        let mut before = self.lowers.resolve(&self.inner).map_err(failed)?;
        if let (Some(node), Some(was)) = (&mut before, was) {
            // An overlay's own root looks like its upper, which was made to look like this.
            node.look = was;
        }
        walk.top(&self.inner, before.clone(), top).map_err(failed)?;
        walk.run(&self.inner, before)?;
        let Walk { mut found, unread, moved, linked, .. } = walk;
        let put_in = self.lowers.put_in();
        found.retain(|found| !put_in.contains(&found.path));
        rename::pair(self, &mut found).map_err(failed)?;
        Ok(Walked { found, unread, moved, linked })
    }

    /// Is it, or the place it came from, at or below one of the paths?
    fn is_asked(&self, path: &[u8], before: Option<&Node>, paths: &[PathBuf]) -> bool {
        let is_below = |path: &[u8]| {
            let path = self.absolute(self.shown(path));
            paths.iter().any(|asked| path.starts_with(asked))
        };
        paths.is_empty() || is_below(path) || before.is_some_and(|before| is_below(&before.origin))
    }

    /// Does what differs stand, or did it stand, in this folder?
    pub(super) fn touches(&self, found: &Found, folder: &Path) -> bool {
        let is_in = |path: &[u8]| self.absolute(self.shown(path)).starts_with(folder);
        is_in(&found.path) || found.before.as_ref().is_some_and(|before| is_in(&before.origin))
    }

    /// The path of something in the overlay as the sandbox sees it, relative to the mount point.
    pub(super) fn shown<'a>(&self, path: &'a [u8]) -> &'a [u8] {
        let path = path.strip_prefix(&*self.inner).unwrap_or(path);
        path.strip_prefix(b"/").unwrap_or(path)
    }

    /// The path in the overlay of something at or below the mount point.
    pub(super) fn inside(&self, absolute: &Path) -> Vec<u8> {
        let shown = absolute.strip_prefix(&self.mountpoint).unwrap_or(absolute);
        let path = join(&self.inner, shown.as_os_str().as_bytes());
        path.strip_suffix(b"/").map_or(path.as_slice(), |path| path).to_vec()
    }

    pub(super) fn absolute(&self, shown: &[u8]) -> PathBuf {
        if shown.is_empty() {
            self.mountpoint.clone()
        } else {
            self.mountpoint.join(OsStr::from_bytes(shown))
        }
    }

    /// The contents of a file as it is now.
    pub(super) fn read_after(&self, found: &Found) -> io::Result<Box<dyn Read>> {
        compare::read_upper(&self.upper, &self.lowers, self.flavour, &found.path)
    }

    /// Opens a file or folder as it is now, for its attributes.
    pub(super) fn open_after(&self, found: &Found) -> io::Result<OwnedFd> {
        self.upper.open_entry(&found.path)
    }

    /// The contents of a file as it was.
    pub(super) fn read_before(&self, found: &Found) -> io::Result<Box<dyn Read>> {
        self.read_node(found.before.as_ref().ok_or(io::ErrorKind::NotFound)?)
    }

    pub(super) fn read_node(&self, node: &Node) -> io::Result<Box<dyn Read>> {
        self.lowers.read(node)
    }

    /// All that stood in a folder, but for folders that were moved out of it.
    pub(super) fn children_before(&self, folder: &Node) -> io::Result<Vec<Node>> {
        let mut children = self.lowers.children(folder)?;
        children.retain(|child| !self.moved.contains(&child.origin));
        Ok(children)
    }

    /// Does a folder of the upper show what the folder below it holds? Not if it was made anew, or came from elsewhere.
    pub(super) fn is_merged(&self, path: &[u8]) -> io::Result<bool> {
        let is_folder = self.upper.look(path)?.is_some_and(|look| look.entry.kind == FileKind::Directory);
        let marks = self.upper.marks(path)?;
        Ok(is_folder && marks.opaque != Opaque::Yes && marks.redirect.is_none())
    }

    /// What the sandbox shows at a path relative to the mount point, read whole; `None` if it is no file.
    pub(super) fn read_now(&self, shown: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let path = join(&self.inner, shown);
        let mut bytes = Vec::new();
        match self.upper.look(&path)? {
            Some(look) if look.entry.kind == FileKind::File => {
                let mut file = compare::read_upper(&self.upper, &self.lowers, self.flavour, &path)?;
                file.read_to_end(&mut bytes)?;
            }
            Some(_) => return Ok(None),
            None => match self.lowers.resolve(&path)? {
                Some(node) if node.look.entry.kind == FileKind::File => {
                    self.lowers.read(&node)?.read_to_end(&mut bytes)?;
                }
                Some(_) | None => return Ok(None),
            },
        }
        Ok(Some(bytes))
    }

    pub(super) fn is_ignored(&self, found: &Found) -> bool {
        self.ignored.contains(&found.path)
    }

    /// Does git ignore this path, or a folder it is in?
    pub(super) fn ignores(&self, path: &[u8]) -> bool {
        let mut path = path;
        while !path.is_empty() {
            if self.ignored.contains(path) {
                return true;
            }
            path = split(path).0;
        }
        false
    }
}

/// Where the repository of a worktree keeps its files, as far as that is in the worktree.
fn own_git(worktree: &Path) -> Vec<Vec<u8>> {
    let Some(git_dir) = git_dir(worktree) else { return Vec::new() };
    let folders = [common_dir(&git_dir), git_dir];
    let inside = folders.iter().filter_map(|folder| folder.strip_prefix(worktree).ok());
    inside.map(|folder| folder.as_os_str().as_bytes().to_vec()).filter(|folder| !folder.is_empty()).collect()
}

fn flavour(rights: Rights) -> Flavour {
    match rights {
        Rights::Root => Flavour::Trusted,
        Rights::User { .. } => Flavour::User,
    }
}

fn top_look(part: &Part, rights: Rights, now: &Look) -> Look {
    let (uid, gid) = match rights {
        Rights::Root => (part.top.uid, part.top.gid),
        // Not even the folder's owner could be copied, let alone changed.
        Rights::User { .. } => (now.entry.uid, now.entry.gid),
    };
    let entry = Entry { kind: FileKind::Directory, size: 0, mode: part.top.mode, uid, gid, target: None };
    Look { entry, is_whiteout: false, shared: None }
}
