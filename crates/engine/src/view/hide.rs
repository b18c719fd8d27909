//! Hiding layers: which entries make a path absent, a folder empty, or a file appear.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use super::plan::{Hidden, HiddenKind, Meta};

/// Collects entries by absolute path; parents come by themselves.
///
/// A tree by names: hundreds of paths are asked about for every sandbox, and to compare whole paths for each was a tenth of all
/// that a short command costs.
#[derive(Debug, Default)]
pub(super) struct Hiding {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    kind: Option<HiddenKind>,
    below: BTreeMap<OsString, Self>,
}

impl Hiding {
    /// Makes `path` absent, also if it appears on the host later. A parent that does not exist is made
    /// absent in its stead, for the same reason.
    pub(super) fn absent(&mut self, path: &Path) {
        let mut so_far = PathBuf::from("/");
        let mut node = &mut self.root;
        let mut names = names(path).peekable();
        while let Some(name) = names.next() {
            so_far.push(name);
            node = node.child(name);
            if names.peek().is_none() {
                node.kind = Some(HiddenKind::Absent);
                return;
            }
            match &node.kind {
                Some(HiddenKind::Absent) => return,
                Some(HiddenKind::Through(_) | HiddenKind::Empty(_) | HiddenKind::File { .. }) => {}
                None => match std::fs::symlink_metadata(&so_far) {
                    Ok(stat) if stat.is_dir() => node.kind = Some(through(&stat)),
                    // A link or a file on the way: the real path is hidden by its own entry.
                    Ok(_) => return,
                    Err(_) => {
                        node.kind = Some(HiddenKind::Absent);
                        return;
                    }
                },
            }
        }
    }

    /// Makes a folder start empty, if there is one.
    pub(super) fn empty(&mut self, path: &Path) {
        if let Ok(stat) = std::fs::symlink_metadata(path)
            && stat.is_dir()
        {
            self.set(path, HiddenKind::Empty(Meta::of(&stat).timeless()));
        }
    }

    /// Keeps the folders down to `path`, because something is mounted there, though one above starts empty.
    pub(super) fn way_to(&mut self, path: &Path) {
        if self.way(path).any(|(_, kind)| matches!(kind, HiddenKind::Empty(_))) {
            self.pass_to(path);
        }
    }

    /// Keeps the folders down to `path`.
    fn pass_to(&mut self, path: &Path) {
        let mut so_far = PathBuf::from("/");
        let mut node = &mut self.root;
        node.pass(&so_far);
        for name in names(path) {
            so_far.push(name);
            node = node.child(name);
            node.pass(&so_far);
        }
    }

    /// Puts a file in place of one there is, or beside those there are.
    pub(super) fn replace(&mut self, path: &Path, bytes: Vec<u8>, meta: Meta) {
        if let Some(parent) = path.parent() {
            self.pass_to(parent);
        }
        self.set(path, HiddenKind::File { bytes, meta: meta.timeless() });
    }

    /// Puts a folder in where there is none, and those above it. These look like `above`.
    pub(super) fn add_folder(&mut self, path: &Path, meta: Meta, above: Meta) {
        for folder in path.ancestors().collect::<Vec<_>>().into_iter().rev() {
            let meta = if folder == path { meta } else { above };
            if folder.is_dir() && !self.covers(folder) {
                self.pass_to(folder);
            } else if !self.is_put(folder) {
                self.set(folder, HiddenKind::Empty(meta.timeless()));
            }
        }
    }

    /// What stands in a file that is put in.
    pub(super) fn file(&self, path: &Path) -> Option<&[u8]> {
        match self.node(path)?.kind.as_ref()? {
            HiddenKind::File { bytes, .. } => Some(bytes),
            HiddenKind::Absent | HiddenKind::Through(_) | HiddenKind::Empty(_) => None,
        }
    }

    /// Is something said of exactly this folder that leaves one there?
    fn is_put(&self, folder: &Path) -> bool {
        let kind = self.node(folder).and_then(|node| node.kind.as_ref());
        matches!(kind, Some(HiddenKind::Through(_) | HiddenKind::Empty(_)))
    }

    /// Puts a file in, below a folder that starts empty.
    pub(super) fn put(&mut self, path: &Path, bytes: Vec<u8>, meta: Meta) {
        if let Some(parent) = path.parent() {
            self.way_to(parent);
        }
        self.set(path, HiddenKind::File { bytes, meta: meta.timeless() });
    }

    /// The entries below `mountpoint` that belong to it and not to one of the deeper `mountpoints`, relative to it.
    pub(super) fn below(&self, mountpoint: &Path, mountpoints: &[PathBuf]) -> Vec<Hidden> {
        let deeper: Vec<&Path> = mountpoints
            .iter()
            .filter(|other| *other != mountpoint)
            .filter_map(|other| other.strip_prefix(mountpoint).ok())
            .collect();
        let mut entries = Vec::new();
        if let Some(node) = self.node(mountpoint) {
            node.gather(&mut PathBuf::new(), &deeper, &mut entries);
        }
        entries
    }

    /// What is absent in a frozen folder, as entries of a layer in which that folder is `inner`. What else is hidden there
    /// does not concern it: nothing is emptied in it and nothing put in.
    pub(super) fn absent_in(&self, folder: &Path, inner: &Path) -> Vec<Hidden> {
        let mut entries = BTreeMap::new();
        for Hidden { path: inside, kind } in self.below(folder, &[]) {
            if kind != HiddenKind::Absent {
                continue;
            }
            let path = folder.join(&inside);
            for (up, real) in inner.join(&inside).ancestors().zip(path.ancestors()).skip(1) {
                if !real.starts_with(folder) {
                    break;
                }
                let Ok(stat) = std::fs::symlink_metadata(real) else { continue };
                entries.entry(up.to_owned()).or_insert_with(|| through(&stat));
            }
            entries.insert(inner.join(&inside), HiddenKind::Absent);
        }
        entries.into_iter().map(|(path, kind)| Hidden { path, kind }).collect()
    }

    /// Is `path`, or a folder above it, absent? Then which.
    pub(super) fn absence<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let depth = self.way(path).find(|(_, kind)| matches!(kind, HiddenKind::Absent))?.0;
        path.ancestors().find(|up| names(up).count() == depth)
    }

    /// Is `path`, or a folder above it, absent or emptied?
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.way(path).any(|(_, kind)| matches!(kind, HiddenKind::Absent | HiddenKind::Empty(_)))
    }

    /// What is said of `path` and the folders above it, from the top, with how many names lead there.
    fn way<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (usize, &'a HiddenKind)> {
        let down = names(path).scan(&self.root, |node, name| {
            *node = node.below.get(name)?;
            Some(*node)
        });
        let nodes = std::iter::once(&self.root).chain(down).enumerate();
        nodes.filter_map(|(depth, node)| Some((depth, node.kind.as_ref()?)))
    }

    fn node(&self, path: &Path) -> Option<&Node> {
        names(path).try_fold(&self.root, |node, name| node.below.get(name))
    }

    fn set(&mut self, path: &Path, kind: HiddenKind) {
        names(path).fold(&mut self.root, Node::child).kind = Some(kind);
    }
}

impl Node {
    fn child(&mut self, name: &OsStr) -> &mut Self {
        // Most are there already, and a name to look one up by need not be copied.
        if !self.below.contains_key(name) {
            self.below.insert(name.to_owned(), Self::default());
        }
        self.below.get_mut(name).expect("it was there or has just been put there")
    }

    /// Keeps this folder, which is at `path`, unless something else is said of it.
    fn pass(&mut self, path: &Path) {
        if self.kind.is_none()
            && let Ok(stat) = std::fs::symlink_metadata(path)
        {
            self.kind = Some(through(&stat));
        }
    }

    /// The entries below this folder, which is at `path`, but not those below one of `apart`.
    fn gather(&self, path: &mut PathBuf, apart: &[&Path], entries: &mut Vec<Hidden>) {
        for (name, node) in &self.below {
            path.push(name);
            entries.extend(node.kind.clone().map(|kind| Hidden { path: path.clone(), kind }));
            if !apart.contains(&path.as_path()) {
                node.gather(path, apart, entries);
            }
            path.pop();
        }
    }
}

fn through(stat: &std::fs::Metadata) -> HiddenKind {
    HiddenKind::Through(Meta::of(stat).timeless())
}

fn names(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_parent_is_hidden_in_its_childs_stead() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        std::fs::create_dir(home.join(".config")).unwrap();
        let mut hiding = Hiding::default();
        hiding.absent(&home.join(".config/gh"));
        hiding.absent(&home.join(".docker/config.json"));
        let seen: Vec<_> = hiding
            .below(home, &[home.to_owned()])
            .into_iter()
            .map(|hidden| (hidden.path.display().to_string(), matches!(hidden.kind, HiddenKind::Absent)))
            .collect();
        assert_eq!(seen, [(".config".into(), false), (".config/gh".into(), true), (".docker".into(), true)]);
    }

    #[test]
    fn what_lies_in_a_deeper_mount_is_said_there() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        std::fs::create_dir_all(top.join("data/home")).unwrap();
        let mut hiding = Hiding::default();
        hiding.empty(&top.join("data"));
        hiding.way_to(&top.join("data/home"));
        hiding.absent(&top.join("data/home/.ssh"));
        let points = [top.to_owned(), top.join("data/home")];
        let said = |point: &Path| -> Vec<_> {
            let kind = |kind| match kind {
                HiddenKind::Absent => "absent",
                HiddenKind::Through(_) => "through",
                HiddenKind::Empty(_) => "empty",
                HiddenKind::File { .. } => "file",
            };
            let below = hiding.below(point, &points).into_iter();
            below.map(|hidden| (hidden.path.display().to_string(), kind(hidden.kind))).collect()
        };
        assert_eq!(said(top), [("data".to_owned(), "empty"), ("data/home".to_owned(), "through")]);
        assert_eq!(said(&points[1]), [(".ssh".to_owned(), "absent")]);
        let key = top.join("data/home/.ssh/id_rsa");
        assert_eq!(hiding.absence(&key), key.parent());
        assert!(hiding.covers(&key) && !hiding.covers(top) && hiding.absence(&points[1]).is_none());
    }
}
