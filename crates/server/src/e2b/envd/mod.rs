//! The daemon that E2B runs inside its sandboxes, answered from outside: commands, files, health, metrics.

mod files;
mod filesystem;
mod inside;
mod process;
mod surroundings;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::E2b;
use super::connect::{self, Error, ErrorCode};
use super::failure::Failure;
use super::meant::Inside;

pub(super) use process::Sessions;

/// What this answers as: the newest whose every feature is here.
pub(super) const VERSION: &str = "0.6.3";

pub(super) fn routes() -> Router<E2b> {
    let guarded = Router::new()
        .route("/process.Process/Start", post(process::start))
        .route("/process.Process/Connect", post(process::connect))
        .route("/process.Process/List", post(process::list))
        .route("/process.Process/SendInput", post(process::send_input))
        .route("/process.Process/StreamInput", post(process::stream_input))
        .route("/process.Process/SendSignal", post(process::send_signal))
        .route("/process.Process/CloseStdin", post(process::close_stdin))
        .route("/process.Process/Update", post(process::update))
        .route("/filesystem.Filesystem/Stat", post(filesystem::stat))
        .route("/filesystem.Filesystem/ListDir", post(filesystem::list_dir))
        .route("/filesystem.Filesystem/MakeDir", post(filesystem::make_dir))
        .route("/filesystem.Filesystem/Move", post(filesystem::rename))
        .route("/filesystem.Filesystem/Remove", post(filesystem::remove))
        .route("/filesystem.Filesystem/WatchDir", post(filesystem::watch_dir))
        .route("/filesystem.Filesystem/CreateWatcher", post(filesystem::create_watcher))
        .route("/filesystem.Filesystem/GetWatcherEvents", post(filesystem::watcher_events))
        .route("/filesystem.Filesystem/RemoveWatcher", post(filesystem::remove_watcher))
        .layer(Extension(filesystem::Watchers::default()))
        .layer(middleware::from_fn(guard));
    let told = Router::new()
        .route("/metrics", get(surroundings::metrics))
        .route("/envs", get(surroundings::variables))
        .layer(middleware::from_fn(guard_plainly));
    Router::new()
        .route("/health", get(health))
        // These let in whoever has a signed URL, too.
        .route("/files", get(files::download).post(files::upload))
        .merge(guarded)
        .merge(told)
        .fallback(no_such_route)
}

/// Everything but the health of a sandbox asks for its token.
async fn guard(request: Request, next: Next) -> Response {
    if has_token(&request) {
        return next.run(request).await;
    }
    Error::new(ErrorCode::Unauthenticated, NO_TOKEN).into_response()
}

/// The same for what does not speak the Connect protocol.
async fn guard_plainly(request: Request, next: Next) -> Response {
    if has_token(&request) {
        next.run(request).await
    } else {
        Failure::unauthorized(NO_TOKEN).into_response()
    }
}

fn has_token(request: &Request) -> bool {
    request.extensions().get::<Inside>().is_some_and(|inside| inside.has_token)
}

async fn health(State(_door): State<E2b>, Extension(_running): Extension<Inside>) -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn no_such_route(request: Request) -> Error {
    Error::new(ErrorCode::Unimplemented, format!("zeno's envd has no `{}`", request.uri().path()))
}

/// Whom a call is to be made as: the sandbox's own user where nobody is named.
fn user(headers: &HeaderMap) -> Result<Option<String>, Error> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    let Some(coded) = value.as_bytes().strip_prefix(b"Basic ") else { return Ok(None) };
    let unreadable = || Error::new(ErrorCode::Unauthenticated, "the Authorization header names no user");
    let plain =
        STANDARD.decode(coded).ok().and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(unreadable)?;
    let (name, _) = plain.split_once(':').ok_or_else(unreadable)?;
    Ok((!name.is_empty()).then(|| name.to_owned()))
}

/// A call that answers with one message.
fn one<T: serde::Serialize>(answer: Result<T, Error>) -> Response {
    match answer {
        Ok(message) => axum::Json(message).into_response(),
        Err(error) => error.into_response(),
    }
}

/// A call that answers with a stream, or with a stream that says why there is none.
fn streamed<S, T>(answer: Result<S, Error>) -> Response
where
    S: futures_util::Stream<Item = Result<T, Error>> + Send + 'static,
    T: serde::Serialize + 'static,
{
    match answer {
        Ok(messages) => connect::answer(messages),
        Err(error) => connect::refused(error),
    }
}

const NO_TOKEN: &str = "missing or wrong access token of the sandbox";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_a_basic_login_without_a_password() {
        let mut headers = HeaderMap::new();
        assert_eq!(user(&headers).unwrap(), None);
        for (text, name) in [("root:", Some("root")), ("user:x", Some("user")), (":", None)] {
            headers.insert(AUTHORIZATION, format!("Basic {}", STANDARD.encode(text)).parse().unwrap());
            assert_eq!(user(&headers).unwrap().as_deref(), name);
        }
        for bad in ["Basic ?", "Basic cm9vdA=="] {
            headers.insert(AUTHORIZATION, bad.parse().unwrap());
            assert!(user(&headers).is_err(), "{bad}");
        }
    }
}
