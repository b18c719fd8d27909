//! The contents of a file, or a part of them.

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use model::files::{Contents, FileOp};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::coding::{Coding, gzipped};
use super::{admit, range, user};
use crate::api::files::{answer, contents_of};
use crate::e2b::E2b;
use crate::e2b::envd::inside::{self, Files, patiently};
use crate::e2b::failure::Failure;
use crate::e2b::meant::Inside;
use crate::frames::FrameReader;

pub(in crate::e2b::envd) async fn download(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Result<Response, Failure> {
    let (head, _body) = request.into_parts();
    let query = admit(&door, &inside, &head)?;
    let coding = Coding::wanted(&head.headers)?;
    let part = match coding {
        Coding::Plain => range::asked(&head.headers),
        Coding::Gzip => None,
    };
    let path = query.path.as_deref().unwrap_or("");
    let files = Files { door: &door, sandbox: inside.sandbox.id, user: user(&query) };
    let init = files.open(&FileOp::Download { path: inside::path(path)?, part }).await?;
    let mut reader = FrameReader::new(init);
    let Contents { size, first, length } = patiently(answer(&mut reader)).await?;
    let contents = contents_of(reader);
    let mut response = match coding {
        Coding::Plain => Body::from_stream(contents),
        Coding::Gzip => Body::from_stream(gzipped(contents)),
    }
    .into_response();
    let headers = response.headers_mut();
    // Whatever it is, it is not for a browser to show: it would do so with the rights of a page of this daemon.
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.insert(CONTENT_DISPOSITION, disposition(path));
    match (coding, size) {
        (Coding::Gzip, _) => {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        (Coding::Plain, None) => {}
        (Coding::Plain, Some(size)) => {
            headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            headers.insert(CONTENT_LENGTH, length.into());
            // Of an empty file there are no parts.
            if part.is_some() && size > 0 {
                if length == 0 {
                    return Ok(range::nothing_there(size));
                }
                headers.insert(CONTENT_RANGE, range::told(first, length, size));
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            }
        }
    }
    Ok(response)
}

/// What a browser that saves it calls it.
fn disposition(path: &str) -> HeaderValue {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or("");
    let coded = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let text = format!("inline; filename*=UTF-8''{coded}");
    HeaderValue::try_from(text).expect("it is letters, digits and percent signs")
}
