//! Sandboxes are made and removed.

use model::exec::{Context, Progress, Text};
use model::limits::Limits;
use model::net::Net;
use model::sandbox::{CreateRequest, Sandbox, WorkspaceChoice};
use model::{Code, Name, Problem};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{caveats, label, schema};
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::progress::watch;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateArgs {
    /// What to call it, for example `fix-login`: lower case letters, digits and dashes
    name: Option<Name>,
    /// Folder to freeze and to work in; the git worktree around your own folder if absent
    folder: Option<String>,
    /// What it may reach: `none` (default), `allow:registries` (where packages come from), `allow:github.com:443,...`,
    /// `open` (all that is public)
    network: Option<String>,
    /// Lifetime (`ttl`: "2h"), `memory` ("2GiB"), `cpus` ("1.5"), `pids`, `disk`
    limits: Option<Limits>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DestroyArgs {
    /// Id or name of the sandbox
    sandbox: String,
}

/// What is told of a sandbox.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
    pub(super) sandbox: &'a Sandbox,
}

#[tool_router(router = create_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_create",
        description = "Make a sandbox: an instant copy of this whole machine (files, tools, environment) in which you can change \
                       anything without changing the machine. It stays until it is destroyed or its time is over.",
        input_schema = schema::<CreateArgs>(),
        annotations(title = "Make a sandbox", read_only_hint = false, destructive_hint = false, idempotent_hint = false, open_world_hint = true)
    )]
    async fn sandbox_create(
        &self,
        Parameters(CreateArgs { name, folder, network, limits }): Parameters<CreateArgs>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let request = self.request(folder.as_deref(), network.as_deref(), limits, &context).await?;
        let request = CreateRequest { name, ..request };
        let sandbox = watch(
            &context,
            |step| Some(capturing(step)),
            |steps| async move {
                let tell = |progress| {
                    // Whoever hears too slowly of one hears of the next.
                    if steps.try_send(progress).is_err() {
                        tracing::trace!("a step was not told");
                    }
                };
                self.app.control.create(request, &tell).await
            },
        )
        .await?;
        Ok(Answer::new(made(&sandbox), &Shown { sandbox: &sandbox }))
    }

    #[tool(
        name = "sandbox_destroy",
        description = "Remove a sandbox and everything it wrote. Snapshots of it stay.",
        input_schema = schema::<DestroyArgs>(),
        annotations(title = "Remove a sandbox", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = false)
    )]
    async fn sandbox_destroy(&self, Parameters(DestroyArgs { sandbox }): Parameters<DestroyArgs>) -> Told {
        let sandbox = self.app.control.destroy(&sandbox).await?;
        Ok(Answer::new(format!("{} is gone.\n", label(&sandbox)), &Shown { sandbox: &sandbox }))
    }
}

impl Mcp {
    /// A sandbox for this caller, in its folder or another.
    pub(super) async fn request(
        &self,
        folder: Option<&str>,
        network: Option<&str>,
        limits: Option<Limits>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CreateRequest, Problem> {
        let own = &self.caller.context;
        let (context_of, workspace) = match folder {
            Some(folder) => {
                let folder = real(&own.cwd, folder).await?;
                (Context { cwd: folder.clone(), ..own.clone() }, WorkspaceChoice::Folder(folder))
            }
            None => (own.clone(), WorkspaceChoice::Auto),
        };
        let net = match network.map(str::parse::<Net>) {
            Some(Ok(Net::Host)) => return Err(host_network()),
            Some(Ok(net)) => net,
            Some(Err(error)) => return Err(Problem::from_error(Code::BadRequest, &error)),
            None => Net::None,
        };
        Ok(CreateRequest {
            workspace,
            net,
            limits: limits.unwrap_or_default(),
            context: context_of,
            actor: Self::ACTOR,
            consumer: context.client_info().map(|client| client.name.chars().take(LONGEST).collect()),
            ..CreateRequest::default()
        })
    }
}

/// Unfiltered and on no record, it reaches what listens on this machine: that is for a person to decide.
fn host_network() -> Problem {
    Problem::new(Code::Refused, "the machine's own network is not given to agents")
        .hint("name what it has to reach: `allow:NAME:PORT`, `allow:host:PORT` for a service of this machine, or `open`")
        .hint("a person can make one for you: zeno create --net host --name NAME")
}

/// The folder as it really is: a workspace is named by where it lies, not by a link to it.
async fn real(cwd: &Text, folder: &str) -> Result<Text, Problem> {
    let path = std::path::Path::new(cwd.as_os_str()).join(folder);
    match tokio::task::spawn_blocking(move || std::fs::canonicalize(path)).await {
        Ok(Ok(path)) => Ok(path.into()),
        Ok(Err(error)) => {
            let problem = Problem::from_error(Code::WorkspaceGone, &error);
            let detail = format!("cannot use `{folder}` as the folder of a sandbox");
            Err(Problem { causes: vec![problem.detail], ..Problem::new(Code::WorkspaceGone, detail) })
        }
        Err(panicked) => Err(Problem::from_error(Code::Internal, &panicked)),
    }
}

/// What a new sandbox is.
pub(super) fn made(sandbox: &Sandbox) -> String {
    let workspace = match &sandbox.workspace {
        Some(root) => format!("Frozen copy of {}. ", root.display()),
        None => "Nothing is frozen: it reads the machine live. ".to_owned(),
    };
    let cwd = sandbox.cwd.display();
    let net = &sandbox.net;
    format!("{} is {}. {workspace}Commands start in {cwd}. Network: {net}.\n", label(sandbox), sandbox.state)
        + &caveats(&sandbox.caveats)
}

pub(super) fn capturing(progress: &Progress) -> String {
    let Progress::Capturing { files, bytes: _, total } = progress;
    match total {
        Some(total) => format!("copying the folder: {files} of {total} files"),
        None => format!("copying the folder: {files} files"),
    }
}

/// Letters of a client's name that are kept.
const LONGEST: usize = 64;
