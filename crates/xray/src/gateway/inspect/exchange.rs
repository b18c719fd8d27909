//! One request and its answer, as they go on record.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Version};
use model::net::Ask;
use model::request::{End, Header, Message, Request};

use super::super::outlet::Outlet;
use super::body::{Half, KEPT, Kept};
use crate::redact::Redactor;

/// Ends once; what comes later is not told any more. One that is dropped before was cut off.
#[derive(Debug)]
pub(super) struct Exchange {
    outlet: Arc<Outlet>,
    redactor: Redactor,
    began: Instant,
    request: Mutex<Option<Request>>,
    /// As it was asked; the record has it without secrets.
    asked: Asked,
    pub(super) sent: Arc<Half>,
    pub(super) received: Arc<Half>,
}

/// What a policy is asked about a request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
}

impl Asked {
    pub(super) fn of(parts: &Parts) -> Self {
        Self { method: parts.method.to_string(), path: parts.uri.path().to_owned() }
    }

    pub(super) fn as_ask(&self) -> Ask<'_> {
        Ask { method: &self.method, path: &self.path }
    }
}

impl Exchange {
    pub(super) fn new(outlet: &Arc<Outlet>, redactor: Redactor, request: Request, asked: Asked) -> Self {
        let half = || Arc::new(Half::new(&outlet.room().bodies));
        let (sent, received) = (half(), half());
        let request = Mutex::new(Some(request));
        Self { outlet: Arc::clone(outlet), redactor, began: Instant::now(), request, asked, sent, received }
    }

    /// What was asked, if there is no end of it yet.
    pub(super) fn going(&self) -> Option<&Asked> {
        let is_going = self.request.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        is_going.then_some(&self.asked)
    }

    /// The head of the answer is there.
    pub(super) fn answered(&self, status: u16, version: Version, headers: &HeaderMap) {
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(http) = request.as_mut().and_then(|request| request.http.as_mut()) {
            http.status = Some(status);
            http.response = Some(message(&self.redactor, version, headers));
        }
    }

    /// Writes down all that is known by now.
    pub(super) fn end(&self, error: Option<String>) {
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut request) = request else { return };
        let ((sent, asked), (received, told)) = (self.sent.known(), self.received.known());
        if let Some(http) = request.http.as_mut() {
            self.fill(&mut http.request, sent, asked);
            if let Some(response) = http.response.as_mut() {
                self.fill(response, received, told);
            }
        }
        let milliseconds = self.began.elapsed().as_millis() as u64;
        let error = error.map(|error| self.redactor.text(&error));
        request.end = Some(End { sent, received, milliseconds, error });
        let outlet = Arc::clone(&self.outlet);
        // Texts take up room until they are written.
        let halves = (Arc::clone(&self.sent), Arc::clone(&self.received));
        let write = async move {
            outlet.recorder().rewrite(&request).await;
            drop(halves);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(write)),
            Err(error) => tracing::debug!(%error, "the daemon ends before a request has"),
        }
    }

    fn fill(&self, message: &mut Message, size: u64, kept: Kept) {
        message.size = size;
        let beginning = match kept {
            Kept::Beginning(beginning) => beginning,
            Kept::Nothing => {
                message.is_left_out = true;
                return;
            }
        };
        message.is_cut = size > KEPT as u64;
        let is_coded = message.headers.iter().any(|header| header.name == CONTENT_ENCODING.as_str());
        let kind = message.content_type.as_deref().filter(|_| !is_coded && !beginning.is_empty());
        message.text = kind.and_then(|kind| self.redactor.body(kind, &beginning)).map(|mut text| {
            text.truncate(text.floor_char_boundary(KEPT));
            text
        });
    }
}

/// Whoever leaves in the middle leaves no word.
impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(Some("its connection ended before it did".to_owned()));
    }
}

/// A head without secrets.
pub(super) fn message(redactor: &Redactor, version: Version, headers: &HeaderMap) -> Message {
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers_shown = headers.iter().map(|(name, value)| Header {
        name: name.as_str().to_owned(),
        value: redactor.header(name.as_str(), &text(value)),
    });
    Message {
        version: format!("{version:?}"),
        headers: headers_shown.collect(),
        content_type: headers.get(CONTENT_TYPE).map(text),
        ..Message::default()
    }
}
