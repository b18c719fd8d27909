//! `zeno mcp`.

mod bridge;
mod install;
mod lines;

pub(crate) use install::Unfit;

use crate::args::mcp::{Mcp, McpAction};
use crate::failure::Failure;
use crate::invocation::Invocation;

pub(crate) async fn mcp(typed: &Mcp, invocation: &Invocation) -> Result<u8, Failure> {
    match &typed.action {
        None => bridge::serve(typed.allow_promote, invocation).await,
        Some(McpAction::Install(install)) => install::install(install, invocation).await,
    }
}
