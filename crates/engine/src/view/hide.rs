//! Hiding layers: which entries make a path absent, a folder empty, or a file appear.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::plan::{Hidden, HiddenKind, Meta};

/// Collects entries by absolute path; parents come by themselves.
#[derive(Debug, Default)]
pub(super) struct Hiding {
    entries: BTreeMap<PathBuf, HiddenKind>,
}

impl Hiding {
    /// Makes `path` absent, also if it appears on the host later. A parent that does not exist is made
    /// absent in its stead, for the same reason.
    pub(super) fn absent(&mut self, path: &Path) {
        let mut so_far = PathBuf::from("/");
        let parts: Vec<_> = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        for (at, part) in parts.iter().enumerate() {
            so_far.push(part);
            if at + 1 == parts.len() {
                self.entries.insert(so_far.clone(), HiddenKind::Absent);
                return;
            }
            match self.entries.get(&so_far) {
                Some(HiddenKind::Absent) => return,
                Some(HiddenKind::Through(_) | HiddenKind::Empty(_) | HiddenKind::File { .. }) => {}
                None => match std::fs::symlink_metadata(&so_far) {
                    Ok(stat) if stat.is_dir() => {
                        self.entries.insert(so_far.clone(), HiddenKind::Through(Meta::of(&stat).timeless()));
                    }
                    // A link or a file on the way: the real path is hidden by its own entry.
                    Ok(_) => return,
                    Err(_) => {
                        self.entries.insert(so_far, HiddenKind::Absent);
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
            self.entries.insert(path.to_owned(), HiddenKind::Empty(Meta::of(&stat).timeless()));
        }
    }

    /// Keeps the folders down to `path`, because something is mounted there, though one above starts empty.
    pub(super) fn way_to(&mut self, path: &Path) {
        let emptied = path.ancestors().any(|up| matches!(self.entries.get(up), Some(HiddenKind::Empty(_))));
        if !emptied {
            return;
        }
        for up in path.ancestors() {
            if let Ok(stat) = std::fs::symlink_metadata(up) {
                self.entries.entry(up.to_owned()).or_insert(HiddenKind::Through(Meta::of(&stat).timeless()));
            }
        }
    }

    /// Puts a file in, below a folder that starts empty.
    pub(super) fn put(&mut self, path: &Path, bytes: Vec<u8>, meta: Meta) {
        if let Some(parent) = path.parent() {
            self.way_to(parent);
        }
        self.entries.insert(path.to_owned(), HiddenKind::File { bytes, meta: meta.timeless() });
    }

    /// The entries below `mountpoint` that belong to it and not to one of the deeper `mountpoints`, relative to it.
    pub(super) fn below(&self, mountpoint: &Path, mountpoints: &[PathBuf]) -> Vec<Hidden> {
        let deeper = |path: &Path| {
            mountpoints.iter().any(|other| {
                other != mountpoint
                    && other.starts_with(mountpoint)
                    && path.starts_with(other)
                    && path != other
            })
        };
        self.entries
            .iter()
            .filter(|(path, _)| path.starts_with(mountpoint) && *path != mountpoint && !deeper(path))
            .filter_map(|(path, kind)| {
                let path = path.strip_prefix(mountpoint).ok()?.to_owned();
                Some(Hidden { path, kind: kind.clone() })
            })
            .collect()
    }

    /// What is absent in a frozen folder, as entries of a layer in which that folder is `inner`. What else is hidden there
    /// does not concern it: nothing is emptied in it and nothing put in.
    pub(super) fn absent_in(&self, folder: &Path, inner: &Path) -> Vec<Hidden> {
        let absent = self.entries.range(folder.to_owned()..).take_while(|(path, _)| path.starts_with(folder));
        let absent = absent.filter(|(path, kind)| *path != folder && matches!(kind, HiddenKind::Absent));
        let mut entries = BTreeMap::new();
        for path in absent.map(|(path, _)| path) {
            let Ok(inside) = path.strip_prefix(folder) else { continue };
            for (up, real) in inner.join(inside).ancestors().zip(path.ancestors()).skip(1) {
                if !real.starts_with(folder) {
                    break;
                }
                let Ok(stat) = std::fs::symlink_metadata(real) else { continue };
                entries
                    .entry(up.to_owned())
                    .or_insert_with(|| HiddenKind::Through(Meta::of(&stat).timeless()));
            }
            entries.insert(inner.join(inside), HiddenKind::Absent);
        }
        entries.into_iter().map(|(path, kind)| Hidden { path, kind }).collect()
    }

    /// Is `path`, or a folder above it, absent? Then which.
    pub(super) fn absence<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.ancestors().find(|up| matches!(self.entries.get(*up), Some(HiddenKind::Absent)))
    }

    /// Is `path`, or a folder above it, absent or emptied?
    pub(super) fn covers(&self, path: &Path) -> bool {
        path.ancestors()
            .any(|up| matches!(self.entries.get(up), Some(HiddenKind::Absent | HiddenKind::Empty(_))))
    }
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
}
