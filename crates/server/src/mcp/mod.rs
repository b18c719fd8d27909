//! The door for MCP: agents' clients use sandboxes as tools. Over standard input and output by way of `zeno mcp` ([`speak`]), and over
//! HTTP at `/mcp` ([`http`]).
//!
//! Nothing is remembered from one call to the next: each names its sandbox. A tool takes typed arguments, calls one verb of `control`
//! or `lanes`, and renders. What goes wrong with what was asked is the tool's answer, with its cause and its remedy; a protocol's
//! error is only for what is not the protocol. Never promotes unless a person agreed, here or beforehand.

mod answer;
mod asking;
mod command;
mod http;
mod page;
mod progress;
mod prompt;
mod resources;
mod speak;
mod tools;

use std::sync::Arc;

use model::exec::Context;
use model::mask::Masks;
use model::sandbox::Actor;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

pub(crate) use http::{PATH, service};
pub use speak::Opening;
pub(crate) use speak::speak;

use crate::api::App;
use answer::Refused;

/// One client's way in. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Mcp {
    app: App,
    caller: Arc<Caller>,
}

/// For whom the tools work.
#[derive(Debug)]
struct Caller {
    /// Where its commands find themselves, if nothing else is said.
    context: Context,
    consent: Consent,
}

/// What it takes to promote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Consent {
    /// A person agreed to all of it when the server was started.
    Given,
    /// The client asks a person each time.
    Asked,
    /// Nobody can be asked from here.
    Impossible,
}

impl Mcp {
    /// For the user's own client, which stands somewhere and can ask somebody.
    fn local(app: App, opening: Opening) -> Self {
        let consent = if opening.allow_promote { Consent::Given } else { Consent::Asked };
        Self { app, caller: Arc::new(Caller { context: opening.context, consent }) }
    }

    /// For whoever has the token: there is no folder that it stands in, and nobody who could be asked.
    fn remote(app: App) -> Self {
        let consent = if app.allow_promote { Consent::Given } else { Consent::Impossible };
        Self { app, caller: Arc::new(Caller { context: own_context(), consent }) }
    }

    const ACTOR: Actor = Actor::Agt;
}

/// What programs need to find themselves, and no more of the daemon's own surroundings.
fn own_context() -> Context {
    let masks = Masks::built_in().environment;
    let ours = model::env::variables().into_iter().filter(|variable| {
        let name = variable.name.display();
        let is_plain = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ"].contains(&&*name);
        (is_plain || name.starts_with("LC_")) && !masks.iter().any(|mask| mask.matches(&variable.name.0))
    });
    let env: Vec<_> = ours.collect();
    let context = Context { env, ..Context::default() };
    let cwd = context.home().map_or_else(|| "/".into(), |home| home.to_owned().into());
    Context { cwd, ..context }
}

impl ServerHandler for Mcp {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("zeno", crate::VERSION))
            .with_instructions(prompt::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::LIST.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::LIST.iter().find(|tool| tool.name == name).cloned()
    }

    /// Ends when the client no longer wants it, has left, or the daemon ends: whatever was begun for it goes with it.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancelled = context.ct.clone();
        let call = tools::ROUTER.call(ToolCallContext::new(self, request, context));
        tokio::select! {
            answered = call => answered,
            () = cancelled.cancelled() => Ok(Refused::cancelled().into_result().into()),
            () = self.app.stop.requested() => Ok(Refused::ending().into_result().into()),
        }
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.app).await.map_err(|problem| answer::fault(&problem))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        tokio::select! {
            read = resources::read(&self.app, &request.uri) => Ok(read.map_err(|problem| answer::fault(&problem))?.into()),
            () = context.ct.cancelled() => Err(answer::fault(&Refused::cancelled().0)),
        }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![prompt::prompt()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompt::get(&request.name).map(Into::into)
    }
}

#[cfg(test)]
mod tests;
