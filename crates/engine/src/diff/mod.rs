//! What a sandbox changed: its upper folders and the layers sealed below them, compared with what lies below them.
//!
//! Looks only at what the upper folders hold and, for each path there, at the same path below: in the frozen layers for
//! the workspace, on the live machine for the rest. So the work is in proportion to the change, not to the tree.
//!
//! A sandbox may go on running meanwhile. Then each path is told as it was when it was looked at, and a path that changes
//! under our eyes may be told half old and half new; nothing worse can happen. What is read live may have moved on since
//! the sandbox was made: such a path is compared with what is there now.
//!
//! Never writes, never mounts, never follows a symlink, never leaves a layer.

mod both;
mod compare;
mod digest;
mod error;
mod ignored;
mod lowers;
mod pair;
mod part;
mod patch;
mod rename;
mod report;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;
pub(crate) mod upper;
mod walk;

use std::io::Write;
use std::path::{Path, PathBuf};

use model::diff::{Detail, Diff};

use crate::launcher::Rights;
use crate::view::Plan;

pub(crate) use both::{Area, Both, Contents, Shared, Version};
pub(crate) use compare::same;
pub use digest::StateDigest;
pub use error::DiffError;
pub use pair::{Base, Pair};
use part::PartDiff;

/// What is to be compared.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// `$ZENO_HOME`.
    pub home: &'a Path,
    /// The sandbox's folder of uppers, one for each part of the plan; or a sealed layer, in which parts may be missing.
    /// None: nothing was ever written.
    pub upper: Option<&'a Path>,
    /// Sealed layers that count as its changes, too, top first: folders like `upper`, in which parts may be missing.
    pub layers: &'a [PathBuf],
    pub plan: &'a Plan,
    /// The frozen folder, if there is one.
    pub workspace: Option<&'a Path>,
    /// With whose rights the sandbox was made.
    pub rights: Rights,
    /// Absolute; only what is at or below one of these is told. None: everything.
    pub paths: &'a [PathBuf],
}

/// Everything that differs, with the layers still open: what was and what is can be read.
#[derive(Debug)]
pub struct Comparison {
    workspace: Option<PathBuf>,
    parts: Vec<PartDiff>,
    /// The workspace where nothing was written in it: what it shows all the same.
    unwritten: Option<PartDiff>,
}

/// Compares.
pub fn compare(ask: &Ask<'_>) -> Result<Comparison, DiffError> {
    if let Some(upper) = ask.upper {
        std::fs::symlink_metadata(upper)
            .map_err(|source| DiffError::Layer { path: upper.to_owned(), source })?;
    }
    let (mut parts, mut unwritten) = (Vec::new(), None);
    for part in &ask.plan.parts {
        match PartDiff::of(part, ask)? {
            Some(part) => parts.push(part),
            None if part.inner.is_some() && ask.workspace == Some(&part.mountpoint) => {
                unwritten = Some(PartDiff::unwritten(part, ask)?);
            }
            None => {}
        }
    }
    Ok(Comparison { workspace: ask.workspace.map(Path::to_owned), parts, unwritten })
}

impl Comparison {
    /// What differs, for people and programs.
    pub fn diff(&self, detail: Detail) -> Result<Diff, DiffError> {
        report::diff(self, detail)
    }

    /// Stands for all that differs, and for the base it differs from, which the caller names.
    pub fn digest(&self, base: &[u8]) -> Result<StateDigest, DiffError> {
        digest::digest(self, base)
    }

    /// Writes what differs in the workspace as a patch for `git apply`, with paths relative to the workspace's root.
    ///
    /// A patch knows files and links, their contents and whether they can be executed. Everything else, what git ignores,
    /// and git's own folders are left out.
    pub fn patch(&self, out: &mut dyn Write) -> Result<(), DiffError> {
        patch::write(self, out)
    }
}
