//! Where what commands wrote is kept: a folder for each verdict, race and promotion, which goes with its record.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use control::Verdicts;
use model::Problem;

use crate::Lanes;

/// The folders of one kind of record.
#[derive(Clone, Debug)]
pub(crate) struct Shelf(PathBuf);

impl Shelf {
    pub(crate) fn new(home: &Path, name: &str) -> Self {
        Self(home.join(name))
    }

    pub(crate) fn folder(&self, id: impl Display) -> PathBuf {
        self.0.join(id.to_string())
    }

    /// Removes what was written for records that are forgotten. A log too many is no reason to fail.
    pub(crate) async fn clear(&self, forgotten: impl IntoIterator<Item = impl Display>) {
        for id in forgotten {
            let removed = tokio::fs::remove_dir_all(self.folder(id)).await;
            if let Err(error) = removed
                && error.kind() != ErrorKind::NotFound
            {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to remove old logs");
            }
        }
    }

    /// Of everything that is on it.
    fn names(&self) -> io::Result<BTreeSet<String>> {
        let entries = match fs::read_dir(&self.0) {
            // It is made with the first folder on it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        // Whatever has a name that is no text is not ours.
        entries
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect()
    }
}

impl Lanes {
    /// Removes what has no record, in the background: of checks and races that the daemon before this one did not bring to
    /// their end, and of what was forgotten. Called before anything new begins.
    pub(crate) fn clear_shelves(&self) {
        let [logs, races, stages] = [&self.logs, &self.races, &self.stages].map(|shelf| {
            shelf.names().unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "failed to look for old logs");
                BTreeSet::new()
            })
        });
        if logs.is_empty() && races.is_empty() && stages.is_empty() {
            return;
        }
        let lanes = self.clone();
        tokio::spawn(async move {
            if let Err(problem) = lanes.clear_unknown(logs, races, stages).await {
                tracing::warn!(error = %problem, causes = ?problem.causes, "failed to look for old logs");
            }
        });
    }

    async fn clear_unknown(
        &self,
        mut verdicts: BTreeSet<String>,
        mut races: BTreeSet<String>,
        mut stages: BTreeSet<String>,
    ) -> Result<(), Problem> {
        for verdict in self.control.verdicts(Verdicts::All).await? {
            verdicts.remove(&verdict.id.to_string());
        }
        for race in self.control.races().await? {
            races.remove(&race.id.to_string());
        }
        for walk in self.control.walks().await? {
            stages.remove(&walk.promotion.to_string());
        }
        self.logs.clear(verdicts).await;
        self.races.clear(races).await;
        self.stages.clear(stages).await;
        Ok(())
    }
}
