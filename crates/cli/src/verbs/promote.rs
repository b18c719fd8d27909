//! `zeno promote`.

use model::promotion::{Commits, PromoteRequest, Resolutions, Unjudged};

use super::walk::{self, Start};
use crate::args::promote::{Promote, resolutions};
use crate::caller::Caller;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::render::walk as render;

pub(crate) async fn promote(typed: &Promote, invocation: &Invocation) -> Result<u8, Failure> {
    let request = request_of(typed, &Caller::read(invocation)?);
    let start = match typed.sandbox.promotion() {
        Some(id) if is_plain(&request) => Start::Promotion(id),
        Some(_) => return Err(Failure::PromotedAlready),
        None => Start::Sandbox(&typed.sandbox),
    };
    let api = invocation.api().await?;
    let Some(walked) = walk::walk(&api, start, request, invocation).await? else { return Ok(walk::left()) };
    invocation.answer(&walked, |paint| render::walked(&walked, &typed.sandbox, typed.to.as_ref(), paint))?;
    Ok(walk::exit(&walked))
}

fn request_of(typed: &Promote, caller: &Caller) -> PromoteRequest {
    PromoteRequest {
        paths: typed.paths.iter().map(|path| caller.absolute(path).into()).collect(),
        resolutions: resolutions(&typed.on_conflict),
        commits: if typed.no_commits { Commits::Leave } else { Commits::Bring },
        allow_executes: typed.allow_executes,
        dry_run: typed.dry_run,
        commands: typed.commands.clone(),
        unjudged: Unjudged::Refuse,
        force: typed.force,
        actor: typed.actor.unwrap_or(caller.actor),
        to: typed.to.clone(),
        approved: Default::default(),
        context: caller.whole_context(),
        agreed: None,
    }
}

/// Nothing is said of what is to be promoted, only how far.
fn is_plain(request: &PromoteRequest) -> bool {
    let PromoteRequest { paths, resolutions, allow_executes, dry_run: _, commands, force, .. } = request;
    paths.is_empty()
        && *resolutions == Resolutions::default()
        && !allow_executes
        && commands.is_empty()
        && !force
}
