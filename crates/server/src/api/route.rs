//! One route: how it is reached, what serves it, and what the OpenAPI document says of it.

use axum::handler::Handler;
use axum::http::StatusCode;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::App;
use super::query::Param;

#[derive(Debug)]
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) handler: MethodRouter<App>,
    pub(super) query: &'static [Param],
    pub(super) request: Option<Content>,
    pub(super) responses: Vec<(StatusCode, Option<Content>)>,
}

/// A body: its media type and, where it is JSON, its shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) media: &'static str,
    pub(super) schema: Option<fn(&mut SchemaGenerator) -> Schema>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Route {
    pub(super) fn new<H, T>(verb: Verb, path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        let handler = on(verb.filter(), handler);
        Self { verb, path, summary, handler, query: &[], request: None, responses: Vec::new() }
    }

    pub(super) fn query(self, query: &'static [Param]) -> Self {
        Self { query, ..self }
    }

    pub(super) fn takes<T: JsonSchema>(self) -> Self {
        Self { request: Some(Content::json::<T>(JSON)), ..self }
    }

    pub(super) fn takes_bytes(self) -> Self {
        Self { request: Some(Content::BYTES), ..self }
    }

    pub(super) fn answers<T: JsonSchema>(self, status: StatusCode) -> Self {
        self.responds(status, Some(Content::json::<T>(JSON)))
    }

    pub(super) fn answers_lines<T: JsonSchema>(self) -> Self {
        self.responds(StatusCode::OK, Some(Content::json::<T>(LINES)))
    }

    pub(super) fn answers_bytes(self) -> Self {
        self.responds(StatusCode::OK, Some(Content::BYTES))
    }

    /// Bytes of this kind, where they are asked for.
    pub(super) fn answers_as(self, media: &'static str) -> Self {
        self.responds(StatusCode::OK, Some(Content { media, schema: None }))
    }

    pub(super) fn answers_nothing(self, status: StatusCode) -> Self {
        self.responds(status, None)
    }

    /// A conversation: frames after an upgrade, else lines.
    pub(super) fn converses(self) -> Self {
        self.responds(StatusCode::SWITCHING_PROTOCOLS, None).answers_lines::<crate::line::Line>()
    }

    fn responds(mut self, status: StatusCode, content: Option<Content>) -> Self {
        self.responses.push((status, content));
        self
    }
}

impl Content {
    const BYTES: Self = Self { media: "application/octet-stream", schema: None };

    fn json<T: JsonSchema>(media: &'static str) -> Self {
        Self { media, schema: Some(SchemaGenerator::subschema_for::<T>) }
    }
}

impl Verb {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Delete => "delete",
        }
    }

    fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
            Self::Put => MethodFilter::PUT,
            Self::Delete => MethodFilter::DELETE,
        }
    }
}

pub(super) const JSON: &str = "application/json";
pub(super) const LINES: &str = "application/x-ndjson";
