//! `zeno undo` and `zeno promotions`.

use jiff::Timestamp;
use model::problem::Exit;
use model::promotion::{PromotionState, UndoRequest};

use crate::args::promote::Undo;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::walk;

pub(crate) async fn undo(typed: &Undo, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read(invocation)?;
    let request = UndoRequest {
        leave: typed.leave.iter().map(|path| caller.absolute(path).into()).collect(),
        leave_stages: typed.leave_stages.iter().cloned().collect(),
        context: caller.whole_context(),
        actor: typed.actor.unwrap_or(caller.actor),
    };
    let api = invocation.api().await?;
    let undone = Waiting::begin("undoing").watch(api.undo(typed.promotion.as_ref(), &request)).await?;
    invocation.answer(&undone, |paint| walk::undone(&undone, paint))?;
    Ok(match undone.promotion.state {
        PromotionState::Undone => DONE,
        PromotionState::Applying | PromotionState::Applied | PromotionState::Failed => Exit::Failed as u8,
    })
}

pub(crate) async fn promotions(invocation: &Invocation) -> Result<u8, Failure> {
    let promotions = invocation.api().await?.promotions().await?;
    invocation.answer(&promotions, |paint| walk::list(&promotions, Timestamp::now(), paint))?;
    Ok(DONE)
}
