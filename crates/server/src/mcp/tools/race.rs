//! Several candidates, compared.

use model::Name;
use model::race::{Attempt, Candidate, Entry, Phase, Pick, Race, RaceRequest, RaceStep};
use model::sandbox::CreateRequest;
use model::units::Span;
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
pub(super) struct RaceArgs {
    /// Who takes part: at least one
    candidates: Vec<Entrant>,
    /// Sandbox or snapshot whose state all start from; a new copy of the machine if absent
    from: Option<String>,
    /// Folder of that new copy; the git worktree around your own folder if absent
    folder: Option<String>,
    /// Names of checks in the folder's `zeno.yaml`; with neither these nor commands, all of them
    #[serde(default)]
    checks: Vec<Name>,
    /// Lines for `sh` that have to exit with 0, besides
    #[serde(default)]
    commands: Vec<String>,
    /// A line for `sh` whose last line of output is a number: the more, the better
    score: Option<String>,
    /// Who wins among those that pass: `fastest`, `smallest` change, highest `score`, or `ask` a person
    #[serde(default)]
    pick: Pick,
    /// How long a candidate's command may take, for example "10m"
    timeout: Option<Span>,
}

/// What a candidate does: one of `command`, `patch` and `sandbox`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Entrant {
    /// What to call it
    name: Name,
    /// Runs this line for `sh`
    command: Option<String>,
    /// Applies this patch with `git apply`
    patch: Option<String>,
    /// Is this sandbox, as it is
    sandbox: Option<String>,
}

#[tool_router(router = race_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_race",
        description = "Try several candidates at once, each in a copy of the same state, run checks on what each made, and say who won. \
                       The candidates' sandboxes stay, to look at and to promote.",
        input_schema = schema::<RaceArgs>(),
        annotations(title = "Race candidates", read_only_hint = false, destructive_hint = true, idempotent_hint = false, open_world_hint = true)
    )]
    async fn sandbox_race(
        &self,
        Parameters(args): Parameters<RaceArgs>,
        context: RequestContext<RoleServer>,
    ) -> Told {
        let RaceArgs { candidates, from, folder, checks, commands, score, pick, timeout } = args;
        let create = match from {
            Some(_) => CreateRequest { actor: Self::ACTOR, ..CreateRequest::default() },
            None => self.request(folder.as_deref(), None, None, &context).await?,
        };
        let candidates = candidates.into_iter().map(candidate).collect::<Result<_, _>>()?;
        let request = RaceRequest {
            from,
            create,
            candidates,
            checks,
            commands,
            score,
            pick,
            timeout,
            actor: Self::ACTOR,
            ..RaceRequest::default()
        };
        let lanes = self.app.lanes.clone();
        let race =
            watch(&context, step, |steps| apart(async move { lanes.race(request, &steps).await })).await?;
        Ok(Answer::new(told(&race), &race))
    }
}

fn candidate(entrant: Entrant) -> Result<Candidate, model::Problem> {
    let attempt = match (entrant.command, entrant.patch, entrant.sandbox) {
        (Some(run), None, None) => Attempt::Command { run },
        (None, Some(patch), None) => Attempt::Patch { patch: patch.as_str().into() },
        (None, None, Some(sandbox)) => Attempt::Sandbox { sandbox },
        _ => {
            let detail =
                format!("candidate `{}` needs one of `command`, `patch` and `sandbox`", entrant.name);
            return Err(model::Problem::new(model::Code::BadRequest, detail));
        }
    };
    Ok(Candidate { name: entrant.name, attempt })
}

fn step(step: &RaceStep) -> Option<String> {
    match step {
        RaceStep::Begun { candidates, .. } => Some(format!("{} candidates begin", candidates.len())),
        RaceStep::Moved { candidate, phase } => Some(match phase {
            Phase::Waiting => format!("{candidate} waits"),
            Phase::Running => format!("{candidate} runs"),
            Phase::Checking { ended, failed } => {
                format!("{candidate}: {ended} checks ended, {failed} failed")
            }
            Phase::Scoring => format!("{candidate} is scored"),
        }),
        RaceStep::Ended { entry } => Some(format!("{}: {}", entry.name, entry.outcome)),
        RaceStep::Race { .. } | RaceStep::Problem { .. } => None,
    }
}

fn told(race: &Race) -> String {
    let winner = match (&race.winner, race.winner_sandbox) {
        (Some(winner), Some(sandbox)) => format!("{winner} won: sandbox {sandbox}\n"),
        (Some(winner), None) => format!("{winner} won\n"),
        (None, _) => "Nobody won.\n".to_owned(),
    };
    winner + &race.entries.iter().map(entry).collect::<String>()
}

fn entry(entry: &Entry) -> String {
    let lost = entry.lost.as_ref().map(|lost| format!(": {lost}")).unwrap_or_default();
    let sandbox = entry.sandbox.map(|sandbox| format!("  sandbox {sandbox}")).unwrap_or_default();
    let score = entry.score.map(|score| format!("  score {score}")).unwrap_or_default();
    let tail: String = entry.tail.iter().map(|line| format!("    {line}\n")).collect();
    format!("  {}  {}{lost}  {} ms{score}{sandbox}\n{tail}", entry.outcome, entry.name, entry.duration_ms)
}
