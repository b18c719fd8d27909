//! Refs that are written together or not at all, and taken back.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::exec::Text;
use model::promotion::CommitRef;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::CommitsError;
use super::git::{Call, Git, PATIENCE};
use crate::promote::moves::End;

/// What is to become of refs of a repository. Stands in journals, so it only grows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::promote) struct Refs {
    /// Its git folder.
    repository: Text,
    moves: Vec<RefMove>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RefMove {
    told: CommitRef,
    /// Where it stood; absent if it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    was: Option<String>,
}

impl RefMove {
    fn at(&self, end: End) -> Option<&str> {
        match end {
            End::Old => self.was.as_deref(),
            End::New => Some(&self.told.tip),
        }
    }

    /// What git is told to do, if anything.
    fn line(&self, now: Option<&String>, from: End, to: End) -> String {
        let name = &self.told.outside;
        let now = now.map(String::as_str);
        if now == self.at(to) {
            return String::new();
        }
        if now != self.at(from) {
            tracing::info!(name, "moved on, and stays");
            return String::new();
        }
        match (now, self.at(to)) {
            (None, Some(to)) => format!("create {name} {to}\n"),
            (Some(now), Some(to)) => format!("update {name} {to} {now}\n"),
            (Some(now), None) => format!("delete {name} {now}\n"),
            (None, None) => String::new(),
        }
    }
}

impl Refs {
    pub(super) fn new(repository: &Path, told: &[CommitRef], known: &BTreeMap<String, String>) -> Self {
        let moves =
            told.iter().map(|told| RefMove { told: told.clone(), was: known.get(&told.outside).cloned() });
        Self { repository: Text::from(repository.to_owned()), moves: moves.collect() }
    }

    pub(in crate::promote) fn told(&self) -> Vec<CommitRef> {
        self.moves.iter().map(|moved| moved.told.clone()).collect()
    }

    /// Brings all of them to one end, in one transaction. One that stands at neither end is somebody else's by now, and
    /// stays. So do all where there is no repository any more. May be done again. `folder` is the promotion's.
    pub(in crate::promote) fn drive(&self, end: End, folder: &Path) -> Result<(), CommitsError> {
        let repository = PathBuf::from(self.repository.as_os_str());
        let Some(git) = Git::find().filter(|_| repository.is_dir()) else {
            tracing::warn!(repository = %repository.display(), "without git, its refs stay as they are");
            return Ok(());
        };
        let what = "write the refs";
        let path = folder.join("refs");
        let turn = take_turn(&path).map_err(|source| CommitsError::Turn { path, source })?;
        let known = current(&git, &repository, self.moves.iter().map(|moved| moved.told.outside.as_str()))?;
        let from = match end {
            End::Old => End::New,
            End::New => End::Old,
        };
        let moves = self.moves.iter().map(|moved| moved.line(known.get(&moved.told.outside), from, end));
        let input: String = moves.collect();
        if input.is_empty() {
            return Ok(());
        }
        let arguments = ["update-ref", "--no-deref", "--stdin"];
        let call = Call { what, folder: &repository, arguments: &arguments };
        let stdin = said(turn, &input).map_err(|source| CommitsError::Start { what, source })?;
        git.run_with(call, stdin)?.ok(what).map(drop)
    }
}

/// A git that outlives a daemon still writes. It holds the file it reads from, and with it this lock, to its end.
fn take_turn(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != Errno::WOULDBLOCK || Instant::now() > deadline {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(file)
}

/// The file, with this in it, to be read from its beginning.
fn said(mut file: File, text: &str) -> io::Result<File> {
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Where these refs of a repository stand.
pub(super) fn current<'a>(
    git: &Git,
    repository: &Path,
    names: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, String>, CommitsError> {
    let what = "read refs of the real repository";
    let mut arguments = vec!["for-each-ref", "--format=%(objectname) %(refname)"];
    arguments.extend(names);
    let said = git.ask(Call { what, folder: repository, arguments: &arguments }, b"")?;
    let said = String::from_utf8_lossy(&said);
    let refs = said.lines().filter_map(|line| line.split_once(' '));
    Ok(refs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect())
}
