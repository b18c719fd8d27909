//! A bare repository of our own, with the objects of the sandbox's that are new.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::files::FileKind;

use super::git::{Call, Git};
use super::host::Host;
use super::names::is_object;
use super::tips::Changed;
use super::{AskCommits, CommitsError};
use crate::capture::FROZEN_ROOT;

/// Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// `number` tells it from those of other repositories, and `id` is the name of any object: its length tells which hash
    /// the repository uses.
    pub(super) fn make(
        ask: &AskCommits<'_>,
        number: usize,
        git: &Git,
        host: &Host,
        both: &Changed<'_>,
        id: &str,
    ) -> Result<Self, CommitsError> {
        let folder = ask.scratch.join(number.to_string());
        crate::remove::tree(&folder)
            .map_err(|source| CommitsError::Scratch { path: folder.clone(), source })?;
        let scratch = Self { folder };
        let failed = |source| CommitsError::Scratch { path: scratch.folder.clone(), source };
        scratch.lay_out(ask, host, id).map_err(failed)?;
        let packs = scratch.fill(host, both)?;
        for pack in packs {
            // Named by its own bytes: what its index inside said is not believed.
            let what = "read a pack made inside";
            let arguments = ["index-pack", &pack];
            git.ask(Call { what, folder: &scratch.folder, arguments: &arguments }, b"")?;
        }
        Ok(scratch)
    }

    fn lay_out(&self, ask: &AskCommits<'_>, host: &Host, id: &str) -> io::Result<()> {
        for folder in ["objects/pack", "objects/info", "refs"] {
            fs::create_dir_all(self.folder.join(folder))?;
        }
        let settings = if id.len() == 40 { SHA1 } else { SHA256 };
        fs::write(self.folder.join("config"), settings)?;
        fs::write(self.folder.join("HEAD"), "ref: refs/heads/none\n")?;
        let mut alternates = Vec::new();
        for folder in std::iter::once(host.common.join("objects")).chain(frozen(ask, host)) {
            let path = folder.as_os_str().as_bytes();
            if path.contains(&b'\n') {
                // A list of lines cannot hold it.
                return Err(io::ErrorKind::InvalidFilename.into());
            }
            alternates.extend_from_slice(path);
            alternates.push(b'\n');
        }
        fs::write(self.folder.join("objects/info/alternates"), alternates)?;
        match fs::read(host.common.join("shallow")) {
            // The real one's history ends somewhere.
            Ok(ends) => fs::write(self.folder.join("shallow"), ends),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Copies what is new, and returns the packs among it.
    fn fill(&self, host: &Host, both: &Changed<'_>) -> Result<Vec<String>, CommitsError> {
        let mut packs = Vec::new();
        for (path, both) in both {
            let Some(name) = path.strip_prefix(host.common.join("objects")).ok().and_then(Path::to_str)
            else {
                continue;
            };
            let version = both.after.as_ref().filter(|version| version.entry.kind == FileKind::File);
            let Some(version) = version.filter(|_| is_object(name)) else { continue };
            let copied = || -> io::Result<PathBuf> {
                let target = self.folder.join("objects").join(name);
                target.parent().map_or(Ok(()), fs::create_dir_all)?;
                let mut file = File::options().write(true).create_new(true).open(&target)?;
                io::copy(&mut version.contents()?.reader(), &mut file)?;
                Ok(target)
            };
            let target = copied().map_err(|source| CommitsError::Copy { path: path.clone(), source })?;
            if name.starts_with("pack/") {
                packs.push(target.to_string_lossy().into_owned());
            }
        }
        Ok(packs)
    }

    /// How many commits lead to this one that none of the others has.
    pub(super) fn count(&self, git: &Git, tip: &str, haves: &[String]) -> Result<u64, CommitsError> {
        let what = "count the commits made inside";
        let arguments = ["rev-list", "--count", "--stdin"];
        let said =
            git.ask(Call { what, folder: &self.folder, arguments: &arguments }, &without([tip], haves))?;
        let number = String::from_utf8_lossy(&said).trim().parse();
        number.map_err(|_not_a_number| CommitsError::Answer { what })
    }

    /// Packs all that these need and none of the others has.
    pub(super) fn pack<'a>(
        &self,
        git: &Git,
        tips: impl Iterator<Item = &'a str>,
        haves: &[String],
    ) -> Result<(), CommitsError> {
        let what = "pack the commits made inside";
        let arguments = ["pack-objects", "--revs", "--thin", "--delta-base-offset", "--stdout", "-q"];
        let failed = |source| CommitsError::Scratch { path: self.folder.clone(), source };
        let path = self.folder.join("list");
        fs::write(&path, without(tips, haves)).map_err(failed)?;
        let stdin = File::open(&path).map_err(failed)?;
        let stdout = File::create(self.folder.join(PACK)).map_err(failed)?;
        git.pipe(Call { what, folder: &self.folder, arguments: &arguments }, stdin, stdout)?
            .ok(what)
            .map(drop)
    }

    /// The pack, if anything is in it.
    pub(super) fn packed(&self) -> Result<Option<File>, CommitsError> {
        let failed = |source| CommitsError::Scratch { path: self.folder.clone(), source };
        let path = self.folder.join(PACK);
        // `PACK`, the version, and how many objects it holds.
        let mut head = [0; 12];
        File::open(&path).and_then(|mut pack| pack.read_exact(&mut head)).map_err(failed)?;
        if head[8..] == [0; 4] {
            return Ok(None);
        }
        File::open(&path).map(Some).map_err(failed)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = crate::remove::tree(&self.folder) {
            tracing::debug!(path = %self.folder.display(), error = &error as &dyn std::error::Error, "stays behind");
        }
        // The last one takes the folder of all of them along.
        if let Some(all) = self.folder.parent()
            && let Err(error) = fs::remove_dir(all)
            && error.kind() != io::ErrorKind::DirectoryNotEmpty
        {
            tracing::debug!(path = %all.display(), error = &error as &dyn std::error::Error, "stays behind");
        }
    }
}

/// Where the objects are that the sandbox started from.
fn frozen(ask: &AskCommits<'_>, host: &Host) -> impl Iterator<Item = PathBuf> {
    let parts = ask.frozen.iter().flat_map(|frozen| &frozen.parts);
    let layers = parts.filter_map(|part| {
        let inside = host.common.strip_prefix(&part.mountpoint).ok()?.join("objects");
        Some(part.layers.iter().map(move |layer| layer.join(FROZEN_ROOT).join(&inside)))
    });
    layers.flatten().filter(|folder| folder.is_dir())
}

/// A list of revisions: these, without the others.
fn without<'a>(tips: impl IntoIterator<Item = &'a str>, haves: &[String]) -> Vec<u8> {
    let mut list = Vec::new();
    let mut line = |parts: [&str; 3]| parts.iter().for_each(|part| list.extend_from_slice(part.as_bytes()));
    tips.into_iter().for_each(|tip| line(["", tip, "\n"]));
    haves.iter().for_each(|have| line(["^", have, "\n"]));
    list
}

const SHA1: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
const SHA256: &str =
    "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n";
const PACK: &str = "new.pack";
