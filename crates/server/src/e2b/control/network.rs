//! What a sandbox may reach, changed while it runs.

use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::body::Body;
use super::life::find;
use super::wire::NetworkUpdate;
use crate::e2b::E2b;
use crate::e2b::failure::Failure;
use crate::e2b::labels::{LABEL, Noted};

/// All of it is replaced: what is not said holds no longer.
pub(super) async fn replace(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Body(update): Body<NetworkUpdate>,
) -> Result<StatusCode, Failure> {
    update.network.refuse_unsupported()?;
    let policy = update.network.policy(update.internet)?;
    let sandbox = find(&door, &id).await?;
    let noted = Noted::of(&sandbox.labels);
    let is_public = noted.as_ref().is_none_or(Noted::is_public);
    if update.network.allow_public_traffic.is_some_and(|wanted| wanted != is_public) {
        return Err(Failure::unsupported("another `allowPublicTraffic` for a sandbox that is made"));
    }
    let mut network = update.network;
    network.allow_public_traffic = (!is_public).then_some(false);
    // Only what was made through this door is told of by it.
    let label = noted.map(|noted| {
        let noted = Noted { internet: update.internet, network: network.noted(), ..noted };
        (LABEL.to_owned(), noted.text())
    });
    door.app.gateway.replace(&id, policy, label).await?;
    Ok(StatusCode::NO_CONTENT)
}
