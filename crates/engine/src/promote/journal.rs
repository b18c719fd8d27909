//! What a promotion is about to do, on disk before it is done: one line of JSON for each turn.
//!
//! Read by later versions of zeno, so the records only grow.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use model::exec::Text;
use model::promotion::{CommitRef, Counts};
use serde::{Deserialize, Serialize};

use super::commits::Refs;
use super::finish::Left;
use super::garb::Dress;
use super::moves::{End, Move};
use super::stage::Place;
use super::{Observe, PromoteError, Step};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "turn", rename_all = "kebab-case")]
pub(super) enum Record {
    /// The stages are about to be made and filled.
    Begun { format: u32, roots: Vec<Text>, places: Vec<Place> },
    /// They are filled. Everything is about to be moved, and then the refs.
    Ready {
        moves: Vec<Move>,
        dresses: Vec<Dress>,
        /// Of the first repository, mostly the workspace's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refs: Option<Refs>,
        /// Of the others.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        more_refs: Vec<Refs>,
        /// For the record, should whoever wanted to write it be gone.
        #[serde(default)]
        counts: Counts,
    },
    /// All is moved and was as it should be: from here on there is only forward.
    Applied,
    /// What was displaced is put away: nothing is left to do.
    Kept,
    /// All is as it was, but for these.
    TakenBack { left: Vec<Left> },
    /// These are about to be moved back.
    Undoing { moves: Vec<Move>, dresses: Vec<Dress> },
    /// The undoing was given up: all is as after the promotion.
    Redone,
    /// All but these moves, by number, is moved back: from here on there is only forward.
    Undone { leave: Vec<usize> },
    /// What is not needed any more is removed: nothing is left to do.
    Closed,
}

/// What a promotion does, for its record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub counts: Counts,
    pub commits: Vec<CommitRef>,
}

/// What the promotion in this folder is about, if it came as far as to say so.
pub fn summary(folder: &Path) -> Result<Option<Summary>, PromoteError> {
    let Some(journal) = Journal::open(folder)? else { return Ok(None) };
    let commits: Vec<CommitRef> = journal.refs().flat_map(Refs::told).collect();
    Ok(journal.records.iter().find_map(|record| match record {
        Record::Ready { counts, .. } => Some(Summary { counts: *counts, commits: commits.clone() }),
        _ => None,
    }))
}

/// An open journal, and what it says so far.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    pub(super) records: Vec<Record>,
}

impl Journal {
    /// Starts one in a folder, which is made if it is not there.
    pub(super) fn create(folder: &Path, first: Record) -> Result<Self, PromoteError> {
        let path = folder.join(NAME);
        let failed = |source| PromoteError::WriteJournal { path: path.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = File::options().append(true).create_new(true).open(&path).map_err(failed)?;
        // The file's name, and that of the folder, must outlive a crash too.
        for folder in [Some(folder), folder.parent()].into_iter().flatten() {
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        }
        let mut journal = Self { path, file, records: Vec::new() };
        journal.write(first)?;
        Ok(journal)
    }

    /// Opens the one in a folder; `None` if it says nothing yet.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, PromoteError> {
        let path = folder.join(NAME);
        let failed = |source| PromoteError::ReadJournal { path: path.clone(), source };
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed)?,
        };
        // A line without its end was being written when the crash came; what it announced was not begun.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let lines = text[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let records = lines.map(|line| {
            serde_json::from_slice(line)
                .map_err(|source| PromoteError::DecodeJournal { path: path.clone(), source })
        });
        let records: Vec<Record> = records.collect::<Result<_, _>>()?;
        match records.first() {
            None => return Ok(None),
            Some(Record::Begun { format, .. }) if *format > FORMAT => {
                return Err(PromoteError::NewerJournal { path, format: *format });
            }
            Some(_) => {}
        }
        let file = File::options().append(true).open(&path).map_err(failed)?;
        file.set_len(end as u64).map_err(failed)?;
        Ok(Some(Self { path, file, records }))
    }

    /// Writes a record, and returns when it is on disk.
    pub(super) fn write(&mut self, record: Record) -> Result<(), PromoteError> {
        let failed = |source| PromoteError::WriteJournal { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&record).map_err(io::Error::from).map_err(failed)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        self.records.push(record);
        Ok(())
    }

    pub(super) fn last(&self) -> &Record {
        self.records.last().expect("a journal has a first record")
    }

    pub(super) fn roots(&self) -> Vec<PathBuf> {
        match self.records.first() {
            Some(Record::Begun { roots, .. }) => roots.iter().map(|root| root.as_os_str().into()).collect(),
            Some(_) | None => Vec::new(),
        }
    }

    pub(super) fn places(&self) -> &[Place] {
        match self.records.first() {
            Some(Record::Begun { places, .. }) => places,
            Some(_) | None => &[],
        }
    }

    pub(super) fn moves(&self) -> (&[Move], &[Dress]) {
        let ready = self.records.iter().find_map(|record| match record {
            Record::Ready { moves, dresses, .. } => Some((moves.as_slice(), dresses.as_slice())),
            _ => None,
        });
        ready.unwrap_or_default()
    }

    pub(super) fn refs(&self) -> impl Iterator<Item = &Refs> {
        let ready = self.records.iter().filter_map(|record| match record {
            Record::Ready { refs, more_refs, .. } => Some(refs.iter().chain(more_refs)),
            _ => None,
        });
        ready.flatten()
    }

    /// Brings the refs to one end, if there are any: those of one repository together.
    pub(super) fn drive_refs(&self, end: End, observe: &mut Observe<'_>) -> Result<(), PromoteError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        for refs in self.refs() {
            observe(Step::Referring);
            refs.drive(end, folder).map_err(PromoteError::Commits)?;
        }
        Ok(())
    }
}

/// 2: there are refs. 3: of several repositories.
pub(super) const FORMAT: u32 = 3;
const NAME: &str = "journal";
