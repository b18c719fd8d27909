//! Files from a client: one as the body, or several in a form.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use model::Problem;
use model::files::Entry;
use serde::Serialize;

use super::coding::{Coding, unzipped};
use super::{admit, form, user};
use crate::api::files::pieces;
use crate::e2b::E2b;
use crate::e2b::envd::inside::{self, Files};
use crate::e2b::failure::Failure;
use crate::e2b::meant::Inside;

/// A file that was made.
#[derive(Debug, Serialize)]
pub(in crate::e2b::envd) struct Made {
    path: String,
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

/// What goes for all files of a request.
#[derive(Debug)]
pub(super) struct Upload<'a> {
    pub(super) files: Files<'a>,
    /// Where the file goes, whatever the form calls it.
    pub(super) path: Option<&'a str>,
    pub(super) metadata: BTreeMap<String, String>,
}

pub(super) type Incoming<'a> = Pin<Box<dyn Stream<Item = Result<Bytes, Problem>> + Send + 'a>>;

pub(in crate::e2b::envd) async fn upload(
    State(door): State<E2b>,
    Extension(inside): Extension<Inside>,
    request: Request,
) -> Result<Json<Vec<Made>>, Failure> {
    let (head, body) = request.into_parts();
    let query = admit(&door, &inside, &head)?;
    let mut incoming = incoming(body);
    let files = Files { door: &door, sandbox: inside.sandbox.id, user: user(&query) };
    let upload = Upload { files, path: query.path.as_deref(), metadata: metadata(&head.headers)? };
    let stored = store(upload, &head.headers, &mut incoming).await;
    if stored.is_err() {
        // Whoever is still sending may not look for an answer before it has sent all.
        drain(&mut incoming).await;
    }
    Ok(Json(stored?.into_iter().map(Made::of).collect()))
}

/// It may be asked again after its end, where what came was not all that was expected.
fn incoming(body: Body) -> Incoming<'static> {
    Box::pin(pieces(body).fuse())
}

async fn store(
    upload: Upload<'_>,
    headers: &HeaderMap,
    incoming: &mut Incoming<'static>,
) -> Result<Vec<Entry>, Failure> {
    let contents: Incoming<'_> = match Coding::sent(headers)? {
        Coding::Plain => Box::pin(incoming),
        Coding::Gzip => Box::pin(unzipped(incoming)),
    };
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if is_bytes(kind) {
        let Upload { files, path, metadata } = upload;
        let path =
            path.ok_or_else(|| Failure::bad_request("`path` is missing: a body without a form has no name"))?;
        return Ok(vec![files.store(inside::path(path)?, metadata, contents).await?]);
    }
    match multer::parse_boundary(kind) {
        Ok(boundary) => form::store(upload, contents, boundary).await,
        Err(error) => Err(Failure::bad_request(format!(
            "the body is neither multipart/form-data nor application/octet-stream: {error}"
        ))),
    }
}

fn is_bytes(kind: &str) -> bool {
    let bare = kind.split(';').next().unwrap_or("");
    bare.trim().eq_ignore_ascii_case("application/octet-stream")
}

/// `X-Metadata-NAME: VALUE`. The first of several counts.
fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Failure> {
    let mut metadata = BTreeMap::new();
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(METADATA).filter(|key| !key.is_empty()) else { continue };
        if key.len() > LONGEST_KEY {
            return Err(Failure::bad_request(format!("a name of metadata has at most {LONGEST_KEY} bytes")));
        }
        let value = headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
        let value = value.ok_or_else(|| Failure::bad_request(format!("the metadata `{key}` is not text")))?;
        metadata.insert(key.to_owned(), value.to_owned());
    }
    Ok(metadata)
}

/// Takes what still comes, within reason.
async fn drain(incoming: &mut Incoming<'static>) {
    let mut room = DRAINED;
    let rest = async {
        while let Some(Ok(piece)) = incoming.next().await {
            match room.checked_sub(piece.len()) {
                Some(left) => room = left,
                None => return,
            }
        }
    };
    if tokio::time::timeout(DRAINING, rest).await.is_err() {
        tracing::debug!("a client goes on sending what is not taken");
    }
}

impl Made {
    fn of(entry: Entry) -> Self {
        Self {
            path: entry.path.display().into_owned(),
            name: entry.stat.name.display().into_owned(),
            kind: "file",
            metadata: entry.metadata,
        }
    }
}

const METADATA: &str = "x-metadata-";
/// With what is put before it, the kernel's longest name of an attribute.
const LONGEST_KEY: usize = 255 - "user.e2b.".len();
const DRAINED: usize = 256 << 20;
const DRAINING: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_in_headers() {
        let mut headers = HeaderMap::new();
        headers.insert("X-Access-Token", "t".parse().unwrap());
        headers.append("X-Metadata-Author", "first".parse().unwrap());
        headers.append("x-metadata-author", "second".parse().unwrap());
        headers.insert("X-Metadata-", "nobody".parse().unwrap());
        let expected = BTreeMap::from([("author".to_owned(), "first".to_owned())]);
        assert_eq!(metadata(&headers).unwrap(), expected);
        headers.insert("x-metadata-bad", axum::http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(metadata(&headers).is_err());
    }

    #[tokio::test]
    async fn what_has_ended_is_drained_all_the_same() {
        let mut incoming = incoming(Body::from("all there is"));
        while let Some(piece) = incoming.next().await {
            assert_eq!(piece.unwrap(), "all there is");
        }
        drain(&mut incoming).await;
    }

    #[test]
    fn a_body_of_bytes_says_so() {
        assert!(is_bytes("application/octet-stream") && is_bytes("Application/Octet-Stream ; x=y"));
        assert!(!is_bytes("multipart/form-data; boundary=x") && !is_bytes(""));
    }
}
