//! `/files`: contents of files, to a client and from it.

mod coding;
mod download;
mod form;
mod range;
mod upload;

use axum::http::request::Parts;
use jiff::Timestamp;

use super::NO_TOKEN;
use crate::e2b::E2b;
use crate::e2b::failure::Failure;
use crate::e2b::meant::{FileQuery, Inside};

pub(super) use download::download;
pub(super) use upload::upload;

/// Lets in whoever shows the sandbox's token, or a signature that was made with it.
fn admit(door: &E2b, inside: &Inside, head: &Parts) -> Result<FileQuery, Failure> {
    let query =
        FileQuery::of(head).ok_or_else(|| Failure::bad_request("the query is not what is expected here"))?;
    if inside.has_token {
        return Ok(query);
    }
    let signature = query.signature.as_deref().ok_or_else(|| Failure::unauthorized(NO_TOKEN))?;
    let signed = query.signed(&head.method, signature);
    if signed.is_some_and(|signed| door.keys.is_signed(inside.sandbox.id, signed, Timestamp::now())) {
        return Ok(query);
    }
    Err(Failure::unauthorized("the signature is not for this, or its time is over"))
}

/// The user that a query names.
fn user(query: &FileQuery) -> Option<&str> {
    query.username.as_deref().filter(|name| !name.is_empty())
}
