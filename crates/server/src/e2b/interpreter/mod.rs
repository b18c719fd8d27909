//! The code interpreter, answered from outside as port 49999: code runs in Jupyter kernels inside the sandbox, of the sandbox's own
//! Python.
//!
//! A context is a kernel with a script of ours before it ([`bridge`]), which is a command of the sandbox like any other. To run code
//! takes the sandbox's token; the clients do not send it with what they ask of contexts.

mod bridge;
mod context;
mod contexts;
mod failure;
mod wire;

use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use axum::{Json, Router};
use futures_util::stream;
use tokio::sync::mpsc;

use super::E2b;
use super::connect;
use super::meant::Inside;
use bridge::Settings;
use context::{Job, Told};
use failure::Refused;
use wire::{Execution, Listed, NewContext};

pub(crate) use contexts::Interpreters;

pub(super) fn routes() -> Router<E2b> {
    Router::new()
        .route("/health", get(health))
        .route("/execute", post(execute))
        .route("/contexts", post(open).get(list))
        .route("/contexts/{id}", delete(close))
        .route("/contexts/{id}/restart", post(restart))
        .fallback(no_such_route)
}

async fn health(Extension(_running): Extension<Inside>) -> Json<&'static str> {
    Json("OK")
}

async fn execute(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Result<Response, Refused> {
    if !inside.has_token {
        return Err(Refused::NoToken);
    }
    let Execution { code, context_id, language, env_vars } = connect::message(request).await?;
    let id = context_id.as_deref().filter(|id| !id.is_empty());
    match (id, language.as_deref().unwrap_or_default()) {
        (Some(_), language) if !language.is_empty() => return Err(Refused::TwoContexts),
        (_, language) => python(language)?,
    }
    let context = door.interpreters.of(inside.sandbox.id).find(&door.app.control, id).await?;
    let (out, told) = mpsc::channel(QUEUE);
    context.execute(Job { code, env: env_vars.unwrap_or_default(), out })?;
    Ok(lines(told))
}

async fn open(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Result<Json<Listed>, Refused> {
    let NewContext { language, cwd, env_vars } = connect::message(request).await?;
    python(language.as_deref().unwrap_or_default())?;
    let env = env_vars.unwrap_or_default();
    // SDKs show no token here, and say no variables. With which a Python begins can be code, and running code takes a token.
    if !inside.has_token && !env.is_empty() {
        return Err(Refused::NoToken);
    }
    let settings = Settings { cwd, env };
    let interpreter = door.interpreters.of(inside.sandbox.id);
    Ok(Json(interpreter.open(&door.app.control, settings).await?))
}

async fn list(State(door): State<E2b>, Extension(inside): Extension<Inside>) -> Json<Vec<Listed>> {
    Json(door.interpreters.of(inside.sandbox.id).list())
}

async fn close(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    Path(id): Path<String>,
) -> Result<Json<()>, Refused> {
    Ok(Json(door.interpreters.of(inside.sandbox.id).close(&id).await?))
}

async fn restart(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    Path(id): Path<String>,
) -> Result<Json<()>, Refused> {
    Ok(Json(door.interpreters.of(inside.sandbox.id).restart(&door.app.control, &id).await?))
}

async fn no_such_route(request: Request) -> Refused {
    Refused::NoRoute { path: request.uri().path().to_owned() }
}

/// Kernels of other languages are not looked for.
fn python(language: &str) -> Result<(), Refused> {
    match language.trim().to_ascii_lowercase().as_str() {
        "" | "python" | "python3" => Ok(()),
        other => Err(Refused::Language { language: other.to_owned() }),
    }
}

/// A response of lines. Who no longer reads it drops the receiver, which interrupts what runs.
fn lines(told: mpsc::Receiver<Told>) -> Response {
    let lines = stream::unfold(told, async |mut told| {
        let line = told.recv().await?;
        Some((line, told))
    });
    ([(CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(lines)).into_response()
}

/// Lines that wait for a slow reader.
const QUEUE: usize = 4;
