//! Request bodies and path parameters, with refusals in the one form.

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use model::{Code, ExecId, Problem};
use serde::de::DeserializeOwned;

use super::refusal::Refusal;

/// A JSON body of bounded size. Any content type will do: curl's default is not JSON's.
#[derive(Debug)]
pub(crate) struct Input<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Input<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refusal> {
        let bytes = whole(request).await?;
        match serde_json::from_slice(&bytes) {
            Ok(value) => Ok(Self(value)),
            Err(error) => Err(Refusal::because("the body is not what is expected here", &error)),
        }
    }
}

async fn whole(request: Request) -> Result<Bytes, Refusal> {
    let limited = Limited::new(request.into_body(), LIMIT);
    match tokio::time::timeout(PATIENCE, limited.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Problem::new(Code::TooLarge, format!("the body is larger than {LIMIT} bytes")).into())
        }
        Ok(Err(error)) => Err(Problem::from_error(Code::BadRequest, &*error).into()),
        Err(late) => Err(Problem::from_error(Code::BadRequest, &late).into()),
    }
}

/// The sandbox a path names: id, name or the beginning of an id.
#[derive(Debug)]
pub(super) struct Which(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Which {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        // Every parameter is taken as text, so that a path with more than one fits too.
        match Path::<Vec<(String, String)>>::from_request_parts(parts, state).await {
            Ok(Path(parameters)) => match parameters.into_iter().find(|(name, _)| name == "which") {
                Some((_, which)) => Ok(Self(which)),
                None => Err(Problem::new(Code::Internal, "the route names no sandbox").into()),
            },
            Err(rejection) => Err(Refusal::bad_request(rejection.body_text())),
        }
    }
}

/// A sandbox and one of its commands.
#[derive(Debug)]
pub(super) struct WhichExec(pub(super) String, pub(super) ExecId);

impl<S: Send + Sync> FromRequestParts<S> for WhichExec {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::<(String, ExecId)>::from_request_parts(parts, state).await {
            Ok(Path((which, exec))) => Ok(Self(which, exec)),
            Err(rejection) => Err(Refusal::bad_request(rejection.body_text())),
        }
    }
}

const LIMIT: usize = 1 << 20;
/// How long a body of at most [`LIMIT`] may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
