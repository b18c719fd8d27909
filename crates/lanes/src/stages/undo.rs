//! Undoing a promotion that went out: its stages first, the last one first, then what is applied here.

use model::config::Stage;
use model::promotion::{Journey, UndoRequest, VisitState};
use model::{Code, Problem};
use tokio::sync::mpsc;

use super::visit::Walking;
use super::{Onward, way};
use crate::Lanes;

impl Lanes {
    /// Takes a promotion back, or the last one that was not. Where a stage cannot be taken back, nothing here is undone:
    /// the promotion is then still applied, and its stages say why.
    pub async fn undo(&self, which: Option<&str>, request: UndoRequest) -> Result<Journey, Problem> {
        let onward = Onward::of(None, Default::default(), &request.context, request.actor)?;
        let promotion = self.control.undoable(which).await?;
        let _turn = self.turn_of(promotion.root.as_ref()).lock_owned().await;
        // Others may have had their turn meanwhile.
        let id = promotion.id.to_string();
        let promotion = self.control.undoable(Some(&id)).await?;
        let Some(walk) = self.control.walk(promotion.id).await? else {
            let promotion = self.control.undo(Some(&id), request).await?;
            return Ok(Journey { promotion, stages: Vec::new() });
        };
        let stages = way::to_take_back(&walk, &request.leave_stages).map_err(|error| {
            let leave: String = error.stages.iter().map(|stage| format!(" --leave-stage {stage}")).collect();
            Problem::from_error(Code::Refused, &error)
                .hint(format!("take it back there yourself, then: `zeno undo {id}{leave}`"))
                .hint("declare a `rollback` in zeno.yaml for the next time")
        })?;
        let (steps, _nobody_listens) = mpsc::channel(1);
        let mut walking = Walking { lanes: self, promotion, walk, onward: &onward, steps: &steps };
        for stage in stages {
            if walking.take_back(&stage).await? != VisitState::RolledBack {
                let Walking { promotion, walk, .. } = walking;
                return Ok(Journey { promotion, stages: walk.visits });
            }
        }
        let promotion = self.control.undo(Some(&id), request).await?;
        let mut walk = walking.walk;
        if let Some(local) = walk.visits.iter_mut().rfind(|visit| visit.stage.as_str() == Stage::LOCAL) {
            local.state = VisitState::RolledBack;
            self.control.write_walk(&walk).await?;
        }
        Ok(Journey { promotion, stages: walk.visits })
    }
}
