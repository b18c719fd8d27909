//! How promotions went out, stage by stage: written down, and found again.

use model::promotion::{Promotion, Walk};
use model::{Problem, PromotionId};

use crate::control::Control;
use crate::names::{self, Known, Noun};
use crate::refusal;

impl Control {
    /// Writes down how a promotion went out so far.
    pub async fn write_walk(&self, walk: &Walk) -> Result<(), Problem> {
        self.inner.store.write_walk(walk).await.map_err(|error| refusal::store(&error))
    }

    pub async fn walk(&self, promotion: PromotionId) -> Result<Option<Walk>, Problem> {
        self.inner.store.walk(promotion).await.map_err(|error| refusal::store(&error))
    }

    /// Nothing came of the promotion.
    pub async fn remove_walk(&self, promotion: PromotionId) -> Result<(), Problem> {
        self.inner.store.remove_walk(promotion).await.map_err(|error| refusal::store(&error))
    }

    pub async fn walks(&self) -> Result<Vec<Walk>, Problem> {
        self.inner.store.walks().await.map_err(|error| refusal::store(&error))
    }

    /// The promotion that somebody means, whatever became of it.
    pub async fn find_promotion(&self, which: &str) -> Result<Promotion, Problem> {
        let known = self.promotions().await?;
        let ids: Vec<_> = known.iter().map(|known| Known { id: known.id, name: None }).collect();
        let id = names::resolve(Noun::Promotion, which, &ids)?;
        let found = known.into_iter().find(|known| known.id == id);
        found.ok_or_else(|| refusal::not_found(Noun::Promotion, which, &[]))
    }
}
