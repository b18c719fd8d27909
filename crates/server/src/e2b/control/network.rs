//! What a sandbox may reach, changed while it runs.

use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::body::Body;
use super::life::find;
use super::wire::NetworkUpdate;
use crate::e2b::E2b;
use crate::e2b::failure::Failure;

/// All of it is replaced: what is not said holds no longer.
pub(super) async fn replace(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(update): Body<NetworkUpdate>,
) -> Result<StatusCode, Failure> {
    update.network.refuse_unsupported()?;
    let policy = update.network.policy(update.internet)?;
    find(&door, &id).await?;
    door.app.control.replace_net(&id, policy).await?;
    Ok(StatusCode::NO_CONTENT)
}
