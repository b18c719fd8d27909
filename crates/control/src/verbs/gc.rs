//! `gc`: what nobody refers to any more.

use std::collections::BTreeSet;

use model::snapshot::Garbage;
use model::{LayerId, Problem};

use crate::control::Control;

impl Control {
    /// Removes layers, frozen workspaces and leftovers that nobody refers to, or only says which they are. Waits until
    /// nobody is making a layer.
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
        self.inner.native.collect_garbage(used, dry_run).await
    }
}
