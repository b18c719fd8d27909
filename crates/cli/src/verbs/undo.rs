//! `zeno undo` and `zeno promotions`.

use jiff::Timestamp;
use model::promotion::UndoRequest;

use crate::args::promote::Undo;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::promotion;

pub(crate) async fn undo(typed: &Undo, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read()?;
    let leave = typed.leave.iter().map(|path| caller.absolute(path).into()).collect();
    let request = UndoRequest { leave, ..UndoRequest::default() };
    let api = invocation.api().await?;
    let undone = Waiting::begin("undoing").watch(api.undo(typed.promotion.as_ref(), &request)).await?;
    invocation.answer(&undone, |_| promotion::undone(&undone))?;
    Ok(DONE)
}

pub(crate) async fn promotions(invocation: &Invocation) -> Result<u8, Failure> {
    let promotions = invocation.api().await?.promotions().await?;
    invocation.answer(&promotions, |paint| promotion::list(&promotions, Timestamp::now(), paint))?;
    Ok(DONE)
}
