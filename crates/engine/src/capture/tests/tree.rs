//! A whole tree as a value: of the real workspace, and of layers merged by the overlay's rules.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use super::super::files::{DIRECTORY, Stat, join, list, look, look_at, open_beneath};
use super::super::layer::{Flavour, Kind, kind_of};
use super::super::{FROZEN_ROOT, Frozen};

/// Everything about an entry that a copy has to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) mtime: (i64, u32),
    /// What is in a file, or where a symlink points.
    pub(crate) text: Vec<u8>,
    /// `user.*` attributes, names and values.
    pub(crate) attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

pub(crate) type Tree = BTreeMap<Vec<u8>, Node>;

pub(crate) fn reality(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let root = rustix::fs::open(root, DIRECTORY, Mode::empty()).unwrap();
    tree.insert(Vec::new(), node_of_dir(&root));
    walk(&root, |path, dir, name, seen| {
        tree.insert(path.to_vec(), node(dir, name, seen));
        true
    });
    tree
}

/// What a mount of the frozen workspace would show.
pub(super) fn merged(frozen: &Frozen) -> Tree {
    merge(&frozen.parts[0].layers)
}

pub(super) fn merge(layers: &[std::path::PathBuf]) -> Tree {
    let mut tree = Tree::new();
    for layer in layers.iter().rev() {
        let root = rustix::fs::open(layer.join(FROZEN_ROOT), DIRECTORY, Mode::empty()).unwrap();
        tree.insert(Vec::new(), node_of_dir(&root));
        walk(&root, |path, dir, name, seen| {
            let is_lead = seen.file_type() == FileType::Directory
                && kind_of(open_beneath(dir, name).unwrap(), Flavour::of(super::live_here())).unwrap()
                    == Kind::Lead;
            if !is_lead {
                let below = join(path, b"");
                tree.remove(path);
                let gone: Vec<_> = tree
                    .range(below.clone()..)
                    .map(|(path, _)| path.clone())
                    .take_while(|path| path.starts_with(&below))
                    .collect();
                gone.iter().for_each(|path| drop(tree.remove(path)));
            }
            if seen.file_type() != FileType::CharacterDevice {
                tree.insert(path.to_vec(), node(dir, name, seen));
            }
            true
        });
    }
    tree
}

/// Parents before children.
fn walk(root: &OwnedFd, mut visit: impl FnMut(&[u8], &OwnedFd, &[u8], &Stat) -> bool) {
    let mut pending = vec![Vec::new()];
    while let Some(path) = pending.pop() {
        let dir = open_beneath(root, &path).unwrap();
        for (name, _) in list(&dir).unwrap() {
            let stat = look(&dir, &name).unwrap().unwrap().stat;
            let path = join(&path, &name);
            if visit(&path, &dir, &name, &stat) && stat.file_type() == FileType::Directory {
                pending.push(path);
            }
        }
    }
}

fn node_of_dir(dir: &OwnedFd) -> Node {
    let stat = look_at(dir).unwrap().stat;
    Node {
        mode: stat.mode,
        owner: (stat.uid, stat.gid),
        mtime: stat.mtime,
        text: Vec::new(),
        attributes: attributes(dir),
    }
}

fn node(dir: &OwnedFd, name: &[u8], stat: &Stat) -> Node {
    let (text, attributes) = match stat.file_type() {
        FileType::RegularFile => {
            let file = rustix::fs::openat(dir, name, OFlags::RDONLY, Mode::empty()).unwrap();
            let attributes = attributes(&file);
            let mut text = Vec::new();
            std::fs::File::from(file).read_to_end(&mut text).unwrap();
            (text, attributes)
        }
        FileType::Symlink => {
            (rustix::fs::readlinkat(dir, name, Vec::new()).unwrap().into_bytes(), Vec::new())
        }
        FileType::Directory => (Vec::new(), attributes(&open_beneath(dir, name).unwrap())),
        _ => (Vec::new(), Vec::new()),
    };
    Node { mode: stat.mode, owner: (stat.uid, stat.gid), mtime: stat.mtime, text, attributes }
}

fn attributes(file: &OwnedFd) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let length = rustix::fs::flistxattr(file, &mut names).unwrap();
    let names = names[..length].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let names = names.filter(|name| !name.starts_with(b"user.overlay."));
    names
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = rustix::fs::fgetxattr(file, name, &mut value).unwrap();
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect()
}

/// Fails with the paths that differ, not with two whole trees.
#[track_caller]
pub(crate) fn assert_same(left: &Tree, right: &Tree) {
    let paths: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let differing: Vec<_> = paths
        .into_iter()
        .filter(|path| left.get(*path) != right.get(*path))
        .map(|path| (String::from_utf8_lossy(path), left.get(path), right.get(path)))
        .collect();
    assert!(
        differing.is_empty(),
        "{} paths differ, first {:#?}",
        differing.len(),
        &differing[..differing.len().min(3)]
    );
}

#[track_caller]
pub(super) fn assert_current(frozen: &Frozen, work: &Path) {
    assert_same(&merged(frozen), &reality(work));
}
