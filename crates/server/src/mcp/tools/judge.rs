//! Whether what a sandbox changed is good.

use model::Name;
use model::verdict::{CheckResult, Judgement, Verdict, VerifyRequest, VerifyStep};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use super::schema;
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Told};
use crate::mcp::progress::{apart, watch};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VerifyArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Names of checks in the folder's `zeno.yaml`; with neither these nor commands, all of them
    #[serde(default)]
    checks: Vec<Name>,
    /// Lines for `sh` that have to exit with 0, besides
    #[serde(default)]
    commands: Vec<String>,
}

#[tool_router(router = judge_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_verify",
        description = "Run checks (tests, linters) on throwaway copies of exactly the state a sandbox is in. The verdict is pass, fail or \
                       inconclusive, and holds for that state only.",
        input_schema = schema::<VerifyArgs>(),
        annotations(title = "Run checks", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = true)
    )]
    async fn sandbox_verify(
        &self,
        Parameters(VerifyArgs { sandbox, checks, commands }): Parameters<VerifyArgs>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let request = VerifyRequest { checks, commands, actor: Self::ACTOR };
        let lanes = self.app.lanes.clone();
        let verdict = watch(&context, step, |steps| {
            apart(async move { lanes.verify(&sandbox, request, &steps).await })
        })
        .await?;
        Ok(Answer::new(told(&verdict), &verdict))
    }
}

pub(super) fn step(step: &VerifyStep) -> Option<String> {
    match step {
        VerifyStep::Sealed { checks, .. } => {
            Some(format!("the state is sealed; {} checks to run", checks.len()))
        }
        VerifyStep::Started { check, again: false } => Some(format!("{check} runs")),
        VerifyStep::Started { check, again: true } => Some(format!("{check} runs again")),
        VerifyStep::Ended { result } => Some(format!("{}: {}", result.name, result.outcome)),
        VerifyStep::Verdict { .. } | VerifyStep::Problem { .. } => None,
    }
}

/// The verdict, a line for each check, and the end of what failed.
fn told(verdict: &Verdict) -> String {
    let head = format!("{}  (verdict {} on snapshot {})\n", verdict.outcome, verdict.id, verdict.snapshot);
    head + &verdict.checks.iter().map(check).collect::<String>() + &super::caveats(&verdict.caveats)
}

fn check(result: &CheckResult) -> String {
    let why = result.why().map(|why| format!(": {why}")).unwrap_or_default();
    let tail: String = match result.outcome {
        Judgement::Pass => String::new(),
        Judgement::Fail | Judgement::Inconclusive => {
            result.tail.iter().map(|line| format!("    {line}\n")).collect()
        }
    };
    format!("  {}  {}{why}\n{tail}", result.outcome, result.name)
}
