//! What sandboxes tried to reach.

use control::Requests;
use model::request::Request;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::page;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestsArgs {
    /// Only those of this sandbox, by id or name
    sandbox: Option<String>,
    /// Only those that were denied
    #[serde(default)]
    denied: bool,
    /// Only those to this name, to one below it, or to this address
    host: Option<String>,
    /// Where to go on, as the last answer said
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Listed {
    requests: Vec<Request>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[tool_router(router = network_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "network_requests",
        description = "List what sandboxes tried to reach on the network, oldest first: where to, by which process, allowed or denied and by which rule. \
                       The answer to why a download failed in a sandbox.",
        input_schema = schema::<RequestsArgs>(),
        annotations(title = "List network requests", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn network_requests(&self, Parameters(args): Parameters<RequestsArgs>) -> Told {
        let RequestsArgs { sandbox, denied, host, cursor } = args;
        let after = page::place(cursor.as_deref())?;
        let sandbox = match sandbox {
            Some(which) => Some(self.sandbox(&which).await?.id),
            None => None,
        };
        // One more than is told, to know whether there is more. Without a number, the store would give the newest.
        let which = Requests {
            after: Some(after),
            limit: AT_ONCE + 1,
            sandbox,
            denied,
            host: host.map(|host| host.to_ascii_lowercase()),
        };
        let mut requests = self.app.gateway.requests(which).await?;
        let is_more = requests.len() > AT_ONCE;
        requests.truncate(AT_ONCE);
        let last = requests.last().map(|request| request.id.to_string());
        let next_cursor = last.filter(|_| is_more);
        let lines: String = requests.iter().map(line).collect();
        let text = if lines.is_empty() { "Nothing was tried.\n".to_owned() } else { lines };
        let more = match &next_cursor {
            Some(cursor) => format!("(there are more: call again with cursor \"{cursor}\")\n"),
            None => String::new(),
        };
        Ok(Answer::new(text + &more, &Listed { requests, next_cursor }))
    }
}

fn line(request: &Request) -> String {
    let to = match (&request.name, request.address) {
        (Some(name), _) => name.clone(),
        (None, Some(address)) => address.to_string(),
        (None, None) => "?".to_owned(),
    };
    let port = request.port.map(|port| format!(":{port}")).unwrap_or_default();
    let http = request.http.as_ref().map(|http| {
        let status = http.status.map(|status| format!(" {status}")).unwrap_or_default();
        format!("  {} {}{status}", http.method, http.path)
    });
    let process =
        request.process.as_ref().map(|process| format!("  by {}", process.name)).unwrap_or_default();
    let error = request.end.as_ref().and_then(|end| end.error.as_ref()).map(|error| format!("  {error}"));
    format!(
        "#{} {} {} {} {to}{port}{}{process}  ({}){}\n",
        request.id,
        request.sandbox,
        request.protocol,
        verdict(request),
        http.unwrap_or_default(),
        request.rule,
        error.unwrap_or_default()
    )
}

fn verdict(request: &Request) -> &'static str {
    match request.verdict {
        model::net::Verdict::Allow => "allowed",
        model::net::Verdict::Deny => "denied",
    }
}

const AT_ONCE: usize = 100;
