//! A person is asked, by way of the client: is this to be promoted?
//!
//! Clients of the newer protocol are answered with the question, and call again with what the person said; older ones are asked in the
//! middle of the call. What was shown is named by its digest, so that consent holds for that and nothing else.

use std::time::Duration;

use model::{Code, Problem};
use rmcp::RoleServer;
use rmcp::handler::server::tool::{InputResponses, RequestState};
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde::Deserialize;

/// What came of asking.
#[derive(Debug)]
pub(super) enum Asked {
    Agreed,
    /// The client is to ask, and to call again.
    First(InputRequiredResult),
}

/// A question, and what it is about.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) text: String,
    /// Names the state that the question shows.
    pub(super) about: String,
}

impl Question {
    /// Its own: a late yes to another question must not be taken for one to this.
    fn field(&self) -> String {
        let name: String = self.about.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
        format!("promote_{name}")
    }
}

pub(super) async fn ask(
    question: Question,
    context: &RequestContext<RoleServer>,
    state: RequestState,
    responses: InputResponses,
) -> Result<Asked, Problem> {
    if !context.client_capabilities().is_some_and(|client| can_ask(&client)) {
        return Err(nobody());
    }
    let is_newer = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if !is_newer {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params(&question)));
        let options = PeerRequestOptions::with_timeout(PATIENCE);
        let asked = context.peer.send_request_with_option(request, options).await;
        let said = match asked {
            Ok(handle) => handle.await_response().await,
            Err(error) => Err(error),
        };
        return match said {
            Ok(ClientResult::ElicitResult(said)) => agreed(&said, &question.field()),
            Ok(_) => Err(Problem::new(Code::Refused, "the client did not answer the question")),
            Err(error) => Err(Problem::from_error(Code::Refused, &error).hint(BY_HAND)),
        };
    }
    let said = responses.0.as_ref().and_then(|responses| responses.get(KEY));
    match said {
        // What it showed then is not what there is now.
        Some(_) if state.0.as_deref() != Some(&question.about) => Ok(first(question)),
        Some(said) => match ElicitResult::deserialize(said) {
            Ok(said) => agreed(&said, &question.field()),
            Err(error) => Err(Problem::from_error(Code::BadRequest, &error)),
        },
        None => Ok(first(question)),
    }
}

fn first(question: Question) -> Asked {
    let request = InputRequest::Elicitation(ElicitRequest::new(params(&question)));
    let requests = InputRequests::from([(KEY.to_owned(), request)]);
    Asked::First(InputRequiredResult::new(Some(requests), Some(question.about)))
}

fn params(question: &Question) -> ElicitRequestParams {
    let title = "Bring these changes into the real folder";
    let schema = ElicitationSchema::builder()
        .required_bool_with(question.field(), |agree| agree.title(title).with_default(false))
        .build()
        .expect("its one property is there");
    let message = question.text.clone();
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema }
}

/// Yes, and nothing but yes, is yes.
fn agreed(said: &ElicitResult, field: &str) -> Result<Asked, Problem> {
    let is_yes =
        said.content.as_ref().and_then(|content| content.get(field)).and_then(serde_json::Value::as_bool);
    match (&said.action, is_yes) {
        (ElicitationAction::Accept, Some(true)) => Ok(Asked::Agreed),
        _ => Err(Problem::new(Code::Refused, "the person who was asked did not agree; nothing was promoted")),
    }
}

/// Forms are what a client can show that says nothing else.
fn can_ask(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|can| can.form.is_some() || can.url.is_none())
}

fn nobody() -> Problem {
    Problem::new(
        Code::Refused,
        "a person has to agree before anything is promoted, and this client cannot ask one",
    )
    .hint(BY_HAND)
    .hint("or a person starts this server with consent beforehand: zeno mcp --allow-promote")
}

const KEY: &str = "promote";
pub(super) const BY_HAND: &str = "ask a person to run it: zeno promote SANDBOX";
/// A person may be at lunch, but not for ever.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_plain_yes_is_consent() {
        let said = |action, content| {
            let said = ElicitResult::new(action);
            agreed(&said.with_content(content), "promote").map_err(|problem| problem.code)
        };
        assert!(matches!(said(ElicitationAction::Accept, json!({ "promote": true })), Ok(Asked::Agreed)));
        for (action, content) in [
            (ElicitationAction::Accept, json!({ "promote": false })),
            (ElicitationAction::Accept, json!({ "promote": "true" })),
            (ElicitationAction::Accept, json!({})),
            (ElicitationAction::Accept, json!({ "promote_other": true })),
            (ElicitationAction::Decline, json!({ "promote": true })),
            (ElicitationAction::Cancel, json!({ "promote": true })),
        ] {
            assert_eq!(said(action, content).map(drop), Err(Code::Refused));
        }
    }

    #[test]
    fn a_client_that_shows_forms_can_ask() {
        let client = |capabilities| serde_json::from_value(capabilities).unwrap();
        assert!(can_ask(&client(json!({ "elicitation": {} }))));
        assert!(can_ask(&client(json!({ "elicitation": { "form": {} } }))));
        assert!(!can_ask(&client(json!({ "elicitation": { "url": {} } }))));
        assert!(!can_ask(&client(json!({}))));
    }
}
