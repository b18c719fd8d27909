//! `zeno refresh`.

use model::refresh::{RefreshRequest, Refreshed};

use super::walk::exit_of;
use crate::args::promote::{Refresh, resolutions};
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::progress::Waiting;
use crate::render::refresh;

pub(crate) async fn refresh(typed: &Refresh, invocation: &Invocation) -> Result<u8, Failure> {
    let resolutions = resolutions(&typed.on_conflict);
    let request = RefreshRequest { resolutions, dry_run: typed.dry_run, actor: invocation.actor()? };
    let api = invocation.api().await?;
    let refreshed =
        Waiting::begin("bringing it up to date").watch(api.refresh(&typed.sandbox, &request)).await?;
    invocation.answer(&refreshed, |paint| {
        refresh::refreshed(&refreshed, &typed.sandbox, jiff::Timestamp::now(), paint)
    })?;
    Ok(match &refreshed {
        Refreshed::Done { .. } | Refreshed::Current { .. } => DONE,
        Refreshed::Planned { assessment } | Refreshed::Blocked { assessment } => exit_of(assessment),
    })
}
