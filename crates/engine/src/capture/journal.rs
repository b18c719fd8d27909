//! What is kept on disk besides the layers, so that a crash at any moment leads to a slower freeze, never a wrong one.
//!
//! The index is saved now and then. Whatever is about to change in a layer is noted in a journal *before* it is
//! touched, so index and journal together always say what can be trusted.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::mask::NameMask;
use serde::{Deserialize, Serialize};

use super::CaptureError;
use super::Live;
use super::index::Index;

pub(super) type LayerId = u64;

/// The saved state of one frozen root.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) key: SavedKey,
    /// Counts the saves; the journal of the same number goes on from here.
    pub(super) epoch: u64,
    pub(super) generation: u64,
    /// The oldest layer first.
    pub(super) stack: Vec<LayerId>,
    pub(super) index: Index,
}

/// If any of this differs, what was saved is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedKey {
    pub(super) format: u32,
    /// After a reboot files may be shorter than they were: nothing here is synced.
    pub(super) boot: String,
    pub(super) path: PathBuf,
    pub(super) live: Live,
    pub(super) masks: Vec<NameMask>,
}

impl SavedKey {
    pub(super) fn new(path: &Path, live: Live, masks: &[NameMask]) -> io::Result<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(Self { format: FORMAT, boot, path: path.to_owned(), live, masks: masks.to_vec() })
    }
}

/// A note of what is about to change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Note {
    /// The entry at this path, and the times of the folder it stands in.
    Entry(Vec<u8>),
    /// Only the metadata of the folder at this path.
    Metadata(Vec<u8>),
    /// The layers, oldest first, from now on.
    Stack(Vec<LayerId>),
}

#[derive(Debug)]
pub(super) struct Journal {
    dir: PathBuf,
    epoch: u64,
    file: File,
    notes: usize,
}

impl Journal {
    /// What was saved in `dir`, if it is still of use, with the journal's notes worked in.
    pub(super) fn load(dir: &Path, key: &SavedKey) -> Option<Saved> {
        let bytes = std::fs::read(dir.join(INDEX)).ok()?;
        let mut saved: Saved = match postcard::from_bytes(&bytes) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::warn!(dir = %dir.display(), %error, "an index that cannot be read; capturing again");
                return None;
            }
        };
        if saved.key != *key {
            return None;
        }
        let journal = std::fs::read(journal_path(dir, saved.epoch)).ok()?;
        let mut rest = &*journal;
        // A note cut short by a crash is the last one, and what it announced was never begun.
        while let Ok((note, after)) = postcard::take_from_bytes::<Note>(rest) {
            rest = after;
            match note {
                Note::Entry(path) => saved.index.distrust(&path),
                Note::Metadata(path) => saved.index.distrust_metadata(&path),
                Note::Stack(stack) => saved.stack = stack,
            }
        }
        saved.index.complete();
        Some(saved)
    }

    /// Saves everything and starts an empty journal.
    pub(super) fn save(dir: &Path, saved: &Saved) -> Result<Self, CaptureError> {
        let path = dir.join(INDEX);
        let failed = |source| CaptureError::SaveIndex { path: path.clone(), source };
        let bytes = postcard::to_stdvec(saved)
            .map_err(|source| CaptureError::EncodeIndex { path: path.clone(), source })?;
        // The new journal first: an index without its journal would be thrown away.
        let file = File::create(journal_path(dir, saved.epoch)).map_err(failed)?;
        let draft = dir.join(DRAFT);
        std::fs::write(&draft, bytes).map_err(failed)?;
        std::fs::rename(&draft, &path).map_err(failed)?;
        if let Some(last) = saved.epoch.checked_sub(1) {
            match std::fs::remove_file(journal_path(dir, last)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(Self { dir: dir.to_owned(), epoch: saved.epoch, file, notes: 0 })
    }

    pub(super) fn note(&mut self, note: &Note) -> io::Result<()> {
        self.file.write_all(&postcard::to_stdvec(note).map_err(io::Error::other)?)?;
        self.notes += 1;
        Ok(())
    }

    pub(super) fn path(&self) -> PathBuf {
        journal_path(&self.dir, self.epoch)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notes == 0
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Is it so long that saving the index is cheaper than doing all of it again after a crash?
    pub(super) fn is_long(&self) -> bool {
        self.notes > 2000
    }
}

fn journal_path(dir: &Path, epoch: u64) -> PathBuf {
    dir.join(format!("journal.{epoch}"))
}

const FORMAT: u32 = 2;
const INDEX: &str = "index";
const DRAFT: &str = "index.draft";
