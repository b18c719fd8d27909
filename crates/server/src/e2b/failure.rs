//! What E2B's control plane and file routes answer when they cannot do what was asked: `{"code": 404, "message": "..."}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use model::{Code, Problem};
use serde::Serialize;

#[derive(Clone, Debug)]
pub(super) struct Failure {
    status: StatusCode,
    message: String,
    /// Clients try some statuses again by themselves. What will not pass by itself says so.
    is_final: bool,
}

#[derive(Debug, Serialize)]
struct Body<'a> {
    code: u16,
    message: &'a str,
}

impl Failure {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), is_final: status.is_server_error() }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// Something that E2B's service has and zeno has not.
    pub(super) fn unsupported(what: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, format!("zeno does not have {what}"))
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::error!(code = ?problem.code, causes = ?problem.causes, "{}", problem.detail);
        }
        // E2B's clients know 422 as a request that they should not have made, and tell nothing of it.
        let status =
            if status == StatusCode::UNPROCESSABLE_ENTITY { StatusCode::BAD_REQUEST } else { status };
        Self::new(status, sentence(&problem))
    }
}

/// All that a problem says, in one line: these clients show nothing else.
pub(super) fn sentence(problem: &Problem) -> String {
    let mut text = problem.detail.clone();
    for cause in &problem.causes {
        text.push_str(": ");
        text.push_str(cause);
    }
    if problem.code != Code::Internal && !problem.hints.is_empty() {
        text.push_str(" (");
        text.push_str(&problem.hints.join("; "));
        text.push(')');
    }
    text
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = Json(Body { code: self.status.as_u16(), message: &self.message });
        let mut response = (self.status, body).into_response();
        if self.is_final {
            response.headers_mut().insert("should-retry", "false".parse().expect("it is plain text"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_one_line() {
        let problem = Problem {
            causes: vec!["no room".to_owned()],
            ..Problem::new(Code::DiskFull, "could not write").hint("zeno gc")
        };
        let failure = Failure::from(problem);
        assert_eq!(failure.status(), StatusCode::INSUFFICIENT_STORAGE);
        assert_eq!(failure.message(), "could not write: no room (zeno gc)");
    }
}
