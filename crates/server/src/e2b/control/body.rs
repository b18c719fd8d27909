//! A JSON body, refused in E2B's form. An empty one is an object without fields.

use std::time::Duration;

use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;

use crate::e2b::failure::Failure;

#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &S) -> Result<Self, Failure> {
        let limited = Limited::new(request.into_body(), LIMIT);
        let bytes = match tokio::time::timeout(PATIENCE, limited.collect()).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())),
            Err(_late) => {
                return Err(Failure::new(StatusCode::REQUEST_TIMEOUT, "the body did not come to its end"));
            }
        };
        let bytes = if bytes.is_empty() { b"{}".as_slice() } else { &bytes };
        if !bytes.trim_ascii_start().starts_with(b"{") {
            // A list would be read as the fields of an object in their order.
            return Err(Failure::bad_request("the body is not a JSON object"));
        }
        let read = serde_json::from_slice(bytes);
        read.map(Self)
            .map_err(|error| Failure::bad_request(format!("the body is not what is expected here: {error}")))
    }
}

const LIMIT: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(60);
