//! `gc`: what nobody refers to any more.

use std::collections::BTreeSet;

use model::promotion::{Promotion, PromotionState};
use model::sandbox::Actor;
use model::snapshot::{Garbage, GarbageItem, GarbageKind};
use model::units::Size;
use model::{LayerId, Problem};

use crate::control::Control;
use crate::{refusal, store};

impl Control {
    /// Removes layers, frozen workspaces and leftovers that nobody refers to, and what promotions displaced that cannot be
    /// taken back any more; or only says which they are. Waits until nobody is making a layer.
    pub async fn collect_garbage(&self, dry_run: bool) -> Result<Garbage, Problem> {
        let control = self.clone();
        self.to_the_end(async move {
            let _alone = control.inner.layers.write().await;
            control.collect(dry_run).await
        })
        .await
    }

    /// Needs the layers, alone.
    pub(crate) async fn collect(&self, dry_run: bool) -> Result<Garbage, Problem> {
        let records = self.snapshot_records().await?;
        let used: BTreeSet<LayerId> =
            records.iter().flat_map(|record| record.saved.layers().iter().copied()).collect();
        let mut garbage = self.inner.native.collect_garbage(used, dry_run).await?;
        for item in self.forget_promotions(dry_run).await? {
            garbage.size = Size(garbage.size.0 + item.size.0);
            garbage.items.push(item);
        }
        Ok(garbage)
    }

    /// Of promotions that were taken back, or are too old to be. Their records stay.
    async fn forget_promotions(&self, dry_run: bool) -> Result<Vec<GarbageItem>, Problem> {
        let _turn = self.inner.undoing.lock().await;
        let all = self.inner.store.promotions().await.map_err(|error| refusal::store(&error))?;
        let now = store::now();
        let mut items = Vec::new();
        for promotion in all.into_iter().filter(|promotion| !promotion.keeps(now)) {
            let id = promotion.id;
            let Some(size) = self.inner.native.kept_by(id).await? else { continue };
            items.push(GarbageItem { kind: GarbageKind::Promotion, name: id.to_string(), size });
            if dry_run {
                continue;
            }
            // First written down: without its journal, an unforgotten one would look as if it had never happened.
            if promotion.state == PromotionState::Applied && !promotion.forgotten {
                self.write_promotion(&Promotion { forgotten: true, ..promotion }, Actor::Atm).await?;
            }
            self.inner.native.forget_promotion(id).await?;
        }
        Ok(items)
    }
}
