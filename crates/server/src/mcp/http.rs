//! MCP over HTTP, at `/mcp` of the daemon's TCP listener. The door before it has asked for the token and looked at Host and Origin.
//!
//! Without sessions: each request stands for itself, also those of the older protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, any};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::{Code, Problem};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Mcp;
use crate::api::{App, refused};

/// What answers at [`PATH`].
pub(crate) fn service<S: Clone + Send + Sync + 'static>(app: App, address: SocketAddr) -> MethodRouter<S> {
    let mcp = Mcp::remote(app);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(LARGEST)
        .with_allowed_origins(origins(address.port()))
        .enforce_origin_validation();
    let make = move || Ok(mcp.clone());
    let service = StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config);
    any(move |request: Request| {
        let service = service.clone();
        async move {
            match whole(request).await {
                Ok(request) => service.handle(request).await.into_response(),
                Err(problem) => refused(problem),
            }
        }
    })
}

/// Of a request that is there in time, and not too large.
async fn whole(request: Request) -> Result<Request, Problem> {
    let (parts, body) = request.into_parts();
    let limited = Limited::new(body, LARGEST);
    match tokio::time::timeout(PATIENCE, limited.collect()).await {
        Ok(Ok(body)) => Ok(Request::from_parts(parts, Body::from(body.to_bytes()))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::new(Code::TooLarge, format!("the body is larger than {LARGEST} bytes")))
        }
        Ok(Err(error)) => Err(Problem::from_error(Code::BadRequest, &*error)),
        Err(late) => Err(Problem::from_error(Code::BadRequest, &late)),
    }
}

/// Pages of the daemon's own, and nobody else's.
fn origins(port: u16) -> Vec<String> {
    ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}")).to_vec()
}

pub(crate) const PATH: &str = "/mcp";
/// Of a body; files are written in one piece.
const LARGEST: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(30);
