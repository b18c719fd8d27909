//! Stacks of layers that have become too deep, made shallow in the background.

use model::{Code, LayerId, Problem};

use crate::control::Control;
use crate::recovery::logged;
use crate::refusal;

impl Control {
    /// Makes one stack shallower, and everyone who stands on the same layers with it. `false`: none was too deep.
    pub(crate) async fn squash_one(&self) -> Result<bool, Problem> {
        let layers = self.inner.layers.read().await;
        let records = self.snapshot_records().await?;
        let bits = getrandom::u64().map_err(|error| Problem::from_error(Code::Internal, &error))?;
        let saved = records.iter().map(|record| record.saved.clone()).collect();
        let Some(change) = self.inner.native.squash(saved, LayerId::from_bits(bits)).await? else {
            return Ok(false);
        };
        let changed =
            records.iter().filter_map(|record| Some((record.snapshot.id, record.saved.changed(&change)?)));
        let written = self.inner.store.set_saved(changed.collect()).await;
        written.map_err(|error| refusal::store(&error))?;
        drop(layers);
        for slot in self.inner.slots.all() {
            // One that is busy changes over at its next start.
            let Ok(_turn) = slot.turn.try_lock() else { continue };
            if slot.seat().is_none() && self.inner.slots.by_id(slot.id).is_some() {
                logged(
                    slot.id,
                    "put a sandbox on fewer layers",
                    self.inner.native.change_over(slot.id).await,
                );
            }
        }
        Ok(true)
    }
}
