//! A sealed state: what stands for it, and what it changed.

use std::path::PathBuf;

use engine::diff::{Ask, Comparison, compare};
use engine::launcher::Rights;
use model::diff::{Detail, Diff};
use model::exec::Text;
use model::{Digest, Problem};
use sha2::{Digest as _, Sha256};

use super::problem::NativeError;
use super::store::Stored;
use super::{Inner, Native, Saved};

/// What is known of a sealed state.
#[derive(Clone, Debug)]
pub struct SealedState {
    /// Stands for what it changed and what it started from. Sealed again, the same state has the same.
    pub digest: Digest,
    /// Absolute paths that the digest does not cover, because they may not be read.
    pub unread: Vec<Text>,
    /// Against what it started from.
    pub diff: Diff,
}

impl Native {
    /// Looks at what was saved, in proportion to what it changed.
    pub async fn sealed_state(&self, saved: &Saved, detail: Detail) -> Result<SealedState, Problem> {
        let (native, saved) = (self.clone(), saved.clone());
        let work = tokio::task::spawn_blocking(move || {
            let comparison = native.0.sealed_comparison(&saved.0)?;
            let stated = comparison.digest(&base(&saved.0))?;
            let diff = comparison.diff(detail)?;
            Ok::<_, NativeError>(SealedState { digest: stated.digest, unread: stated.unread, diff })
        });
        Ok(work.await.map_err(NativeError::from)??)
    }
}

impl Inner {
    pub(super) fn sealed_comparison(&self, stored: &Stored) -> Result<Comparison, NativeError> {
        let workspace = stored.frozen.as_ref().map(|frozen| frozen.workspace.as_path());
        let mut stack = stored.layers.clone();
        self.squashed.apply(&mut stack, &self.layers);
        let layers: Vec<PathBuf> = stack.iter().map(|layer| self.layers.path(*layer)).collect();
        Ok(compare(&Ask {
            home: &self.home,
            upper: layers.first().map(PathBuf::as_path),
            layers: layers.get(1..).unwrap_or_default(),
            plan: &stored.plan,
            workspace,
            rights: Rights::of_this_process(),
            paths: &[],
        })?)
    }
}

/// Names what a state started from. A generation alone would not: they are counted anew when a capture is lost.
fn base(stored: &Stored) -> Vec<u8> {
    let Some(frozen) = &stored.frozen else { return Vec::new() };
    let mut hasher = Sha256::new();
    hasher.update(frozen.workspace.as_os_str().as_encoded_bytes());
    hasher.update([0]);
    hasher.update(frozen.generation.to_le_bytes());
    hasher.update(frozen.taken.as_nanosecond().to_le_bytes());
    hasher.finalize().to_vec()
}
