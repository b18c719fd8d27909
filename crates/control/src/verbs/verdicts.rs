//! `verdicts` and `races`: what was said of which state, and what came of comparing several.

use model::race::Race;
use model::{Problem, RaceId, Verdict, VerdictId};

use crate::control::Control;
use crate::names::Noun;
use crate::refusal;
use crate::store::Verdicts;

impl Control {
    /// Writes down what checks said. Returns those that are forgotten in its place.
    pub async fn record_verdict(&self, verdict: Verdict, kept: usize) -> Result<Vec<VerdictId>, Problem> {
        let store = self.inner.store.clone();
        self.to_the_end(async move {
            let written = async {
                store.insert_verdict(verdict).await?;
                store.prune_verdicts(kept).await
            };
            written.await.map_err(|error| refusal::store(&error))
        })
        .await
    }

    /// Writes down what came of a race. Returns those that are forgotten in its place.
    pub async fn record_race(&self, race: Race, kept: usize) -> Result<Vec<RaceId>, Problem> {
        let store = self.inner.store.clone();
        self.to_the_end(
            async move { store.insert_race(race, kept).await.map_err(|error| refusal::store(&error)) },
        )
        .await
    }

    /// Oldest first.
    pub async fn races(&self) -> Result<Vec<Race>, Problem> {
        self.inner.store.races().await.map_err(|error| refusal::store(&error))
    }

    /// Oldest first.
    pub async fn verdicts(&self, which: Verdicts) -> Result<Vec<Verdict>, Problem> {
        self.inner.store.verdicts(which).await.map_err(|error| refusal::store(&error))
    }

    /// Of one sandbox, which may be gone: then its whole id or the name it had has to be given.
    pub async fn verdicts_of(&self, which: &str) -> Result<Vec<Verdict>, Problem> {
        let which = Noun::Sandbox.bare(which);
        match self.inner.slots.find(which) {
            Ok(slot) => self.verdicts(Verdicts::Of(slot.id)).await,
            Err(problem) => {
                let mut all = self.verdicts(Verdicts::All).await?;
                all.retain(|verdict| {
                    let name = verdict.sandbox_name.as_ref();
                    verdict.sandbox.to_string() == which || name.is_some_and(|name| name.as_str() == which)
                });
                if all.is_empty() { Err(problem) } else { Ok(all) }
            }
        }
    }
}
