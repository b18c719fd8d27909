//! A problem as a response.

use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use model::{Code, Problem};

/// What a handler answers when it cannot do what was asked.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Box<Problem>);

impl Refusal {
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(Code::BadRequest, detail).into()
    }

    pub(super) fn because(detail: impl Into<String>, cause: &dyn std::error::Error) -> Self {
        let causes = Problem::from_error(Code::BadRequest, cause);
        let causes = std::iter::once(causes.detail).chain(causes.causes).collect();
        Problem { causes, ..Problem::new(Code::BadRequest, detail) }.into()
    }

    pub(super) fn method(method: &Method, path: &str) -> Self {
        let detail = format!("`{path}` does not take {method}");
        let problem = Problem::new(Code::BadRequest, detail);
        Problem { status: StatusCode::METHOD_NOT_ALLOWED.as_u16(), ..problem }.into()
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let problem = *self.0;
        // An unassigned number would be a mistake of whoever made the problem, not of the caller.
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::error!(code = ?problem.code, causes = ?problem.causes, "{}", problem.detail);
        }
        let mut response = (status, Json(problem)).into_response();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}
