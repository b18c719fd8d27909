//! MCP over a connection that was upgraded: what `zeno mcp` passes on from its standard input, a message a line.

use std::io::Cursor;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use model::exec::Context;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

use super::Mcp;
use crate::MCP_PROTOCOL;
use crate::api::{App, Input, NoPeer, Refusal, Stop, Through, ToMcp, taken};

/// For whom the tools are to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "McpOpening")]
pub struct Opening {
    /// Where commands find themselves, and which folder is frozen, if nothing else is said.
    pub context: Context,
    /// A person agreed beforehand to whatever is promoted.
    #[serde(default)]
    pub allow_promote: bool,
}

/// Only over the Unix socket: it says where the caller stands, and whether a person agreed.
pub(crate) async fn speak(
    State(app): State<App>,
    Extension(through): Extension<Through>,
    ToMcp(upgrade): ToMcp,
    Input(opening): Input<Opening>,
) -> Result<Response, Refusal> {
    through.must_be_unix()?;
    let stop = app.stop.clone();
    let mcp = Mcp::local(app, opening);
    tokio::spawn(async move { crate::best_effort("speak MCP", converse(upgrade, mcp, &stop).await) });
    let headers = [(CONNECTION, "upgrade"), (UPGRADE, MCP_PROTOCOL)];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

/// Until the client leaves, or the daemon ends.
async fn converse(upgrade: OnUpgrade, mcp: Mcp, stop: &Stop) -> Result<(), NotSpoken> {
    let (wire, read) = taken(upgrade).await.map_err(NotSpoken::Peer)?;
    let (reader, writer) = tokio::io::split(wire);
    let reader = Cursor::new(read).chain(reader);
    // What is too long is dropped; `zeno mcp` has said so to the client before.
    let lines = AsyncRwTransport::new_server(reader, writer).with_max_line_length(crate::MCP_LONGEST + 1);
    let spoken = async {
        let running = mcp.serve(lines).await.map_err(|error| NotSpoken::Begin(Box::new(error)))?;
        running.waiting().await.map_err(NotSpoken::Task)
    };
    tokio::select! {
        spoken = spoken => spoken.map(drop),
        () = stop.requested() => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
enum NotSpoken {
    #[error("the caller could not be reached")]
    Peer(#[source] NoPeer),
    #[error("the first message is none to begin with")]
    Begin(#[source] Box<ServerInitializeError>),
    #[error("the conversation's task ended early")]
    Task(#[source] tokio::task::JoinError),
}
