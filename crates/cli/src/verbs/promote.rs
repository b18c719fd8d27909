//! `zeno promote`.

use model::problem::Exit;
use model::promotion::{Assessment, Commits, PromoteRequest, Promoted};

use crate::args::promote::{Promote, resolutions};
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::promotion;

pub(crate) async fn promote(typed: &Promote, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read()?;
    let request = PromoteRequest {
        paths: typed.paths.iter().map(|path| caller.absolute(path).into()).collect(),
        resolutions: resolutions(&typed.on_conflict),
        commits: if typed.no_commits { Commits::Leave } else { Commits::Bring },
        allow_executes: typed.allow_executes,
        dry_run: typed.dry_run,
        commands: typed.commands.clone(),
        force: typed.force,
        ..PromoteRequest::default()
    };
    let api = invocation.api().await?;
    let promoted = Waiting::begin("promoting").watch(api.promote(&typed.sandbox, &request)).await?;
    invocation.answer(&promoted, |paint| promotion::promoted(&promoted, &typed.sandbox, paint))?;
    Ok(exit(&promoted))
}

/// The exit code that tells it.
pub(super) fn exit(promoted: &Promoted) -> u8 {
    match promoted {
        Promoted::Done { .. } => DONE,
        Promoted::Planned { assessment } | Promoted::Blocked { assessment } => exit_of(assessment),
    }
}

/// The same of what was only looked at.
pub(super) fn exit_of(assessment: &Assessment) -> u8 {
    if !assessment.conflicts.is_empty() {
        Exit::Conflict as u8
    } else if !assessment.is_clear() {
        Exit::Refused as u8
    } else {
        DONE
    }
}
