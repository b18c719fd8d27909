//! Refs that are written together or not at all, and taken back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::exec::Text;
use model::promotion::CommitRef;
use serde::{Deserialize, Serialize};

use super::CommitsError;
use super::git::{Call, Git};
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
    /// stays. So do all where there is no repository any more. May be done again.
    pub(in crate::promote) fn drive(&self, end: End) -> Result<(), CommitsError> {
        let repository = PathBuf::from(self.repository.as_os_str());
        let Some(git) = Git::find().filter(|_| repository.is_dir()) else {
            tracing::warn!(repository = %repository.display(), "without git, its refs stay as they are");
            return Ok(());
        };
        let known = current(&git, &repository, self.moves.iter().map(|moved| moved.told.outside.as_str()))?;
        let from = match end {
            End::Old => End::New,
            End::New => End::Old,
        };
        let mut input = String::new();
        for moved in &self.moves {
            let name = &moved.told.outside;
            let now = known.get(name).map(String::as_str);
            if now == moved.at(end) {
                continue;
            }
            if now != moved.at(from) {
                tracing::info!(name, "moved on, and stays");
                continue;
            }
            input += &match (now, moved.at(end)) {
                (None, Some(to)) => format!("create {name} {to}\n"),
                (Some(now), Some(to)) => format!("update {name} {to} {now}\n"),
                (Some(now), None) => format!("delete {name} {now}\n"),
                (None, None) => continue,
            };
        }
        if input.is_empty() {
            return Ok(());
        }
        let what = "write the refs";
        let arguments = ["update-ref", "--no-deref", "--stdin"];
        git.ask(Call { what, folder: &repository, arguments: &arguments }, input.as_bytes()).map(drop)
    }
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
