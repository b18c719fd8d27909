//! `zeno race` and `zeno races`.

use std::io::{self, BufRead, IsTerminal};

use model::SandboxId;
use model::exec::Text;
use model::problem::Exit;
use model::promotion::{PromoteRequest, Walked};
use model::race::{Attempt, Candidate, Pick, Race, RaceRequest, RaceStep};
use model::sandbox::CreateRequest;
use model::verdict::Judgement;
use serde::Serialize;
use server::client::ClientError;

use super::walk::{self, Start};
use crate::api::Lines;
use crate::args::race::{self as args, CandidateArg, Consent, Source, Try};
use crate::args::which::Which;
use crate::caller::Caller;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::progress::{Board, Waiting};
use crate::render::{race as render, walk as render_walk};
use crate::request;

pub(crate) async fn race(typed: &args::Race, invocation: &Invocation) -> Result<u8, Failure> {
    let caller = Caller::read(invocation)?;
    let request = request_of(typed, &caller)?;
    let api = invocation.api().await?;
    let lines = Waiting::begin("freezing the state to start from").watch(api.race(&request)).await?;
    let race = follow(lines).await?;
    if invocation.form == Form::People {
        invocation.answer(&race, |paint| render::race(&race, paint))?;
    }
    let chosen = match race.pick {
        Pick::Ask => ask(&race, invocation.form)?,
        Pick::Fastest | Pick::Smallest | Pick::Score => race.winner_sandbox,
    };
    let promoted = match chosen {
        Some(sandbox) if consents(typed.promote, sandbox, invocation.form)? => {
            let request = PromoteRequest {
                // What it won by: merged with what changed here meanwhile, it has to pass that again.
                commands: typed.commands.clone(),
                context: caller.whole_context(),
                actor: caller.actor,
                ..PromoteRequest::default()
            };
            let which = Which::from(sandbox);
            let Some(walked) = walk::walk(&api, Start::Sandbox(&which), request, invocation).await? else {
                return Ok(walk::left());
            };
            if invocation.form == Form::People {
                invocation.answer(&walked, |paint| render_walk::walked(&walked, &which, None, paint))?;
            }
            Some(walked)
        }
        Some(_) | None => None,
    };
    let any = race.entries.iter().any(|entry| entry.outcome == Judgement::Pass);
    let is_settled = race.winner.is_some() || race.pick == Pick::Ask && any;
    let exit = match &promoted {
        _ if !is_settled => Exit::Failed as u8,
        Some(promoted) => walk::exit(promoted),
        None => DONE,
    };
    if invocation.form == Form::Json {
        invocation.answer(&Raced { race, promoted }, |_paint| String::new())?;
    }
    Ok(exit)
}

/// The answer of `zeno race --json`.
#[derive(Serialize)]
struct Raced {
    #[serde(flatten)]
    race: Race,
    #[serde(skip_serializing_if = "Option::is_none")]
    promoted: Option<Walked>,
}

/// Shall the winner be promoted? Where nobody can be asked, only if it was said before.
fn consents(consent: Option<Consent>, sandbox: SandboxId, form: Form) -> Result<bool, Failure> {
    match consent {
        Some(Consent::Yes) => Ok(true),
        Some(Consent::No) => Ok(false),
        Some(Consent::Ask) | None if form == Form::People && io::stdin().is_terminal() => {
            output::note(&format!("Promote {sandbox}? [y/N] "));
            let answer = read_line()?;
            Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
        }
        Some(Consent::Ask) | None => Ok(false),
    }
}

pub(crate) async fn races(invocation: &Invocation) -> Result<u8, Failure> {
    let races = invocation.api().await?.races().await?;
    invocation.answer(&races, |paint| render::list(&races, jiff::Timestamp::now(), paint))?;
    if races.is_empty() && invocation.form == Form::People {
        output::note("no races yet: `zeno race` runs one\n");
    }
    Ok(DONE)
}

async fn follow(mut lines: Lines) -> Result<Race, Failure> {
    let mut board = Board::default();
    while let Some(line) = lines.next().await? {
        match serde_json::from_slice(&line).map_err(Failure::Decode)? {
            RaceStep::Begun { candidates, checks, .. } => {
                board.begin(candidates.iter().map(model::Name::as_str), checks.len() as u64);
            }
            RaceStep::Moved { candidate, phase } => {
                board.show(candidate.as_str(), &render::phase(phase, board.checks()));
            }
            RaceStep::Ended { entry } => board.end(entry.name.as_str(), &render::ended(&entry)),
            RaceStep::Race { race } => return Ok(*race),
            RaceStep::Problem { problem } => return Err(ClientError::Problem(problem).into()),
        }
    }
    Err(Failure::BrokenOff)
}

/// Lets a person choose among those that pass. Without one, they are told where to look.
fn ask(race: &Race, form: Form) -> Result<Option<SandboxId>, Failure> {
    let passed: Vec<_> = race.entries.iter().filter(|entry| entry.outcome == Judgement::Pass).collect();
    if passed.is_empty() || form == Form::Json || !io::stdin().is_terminal() {
        return Ok(None);
    }
    let names: Vec<_> = passed.iter().map(|entry| entry.name.as_str()).collect();
    output::note(&format!("Which one? [{}] ", names.join("/")));
    let line = read_line()?;
    let chosen = passed.iter().find(|entry| entry.name.as_str() == line.trim());
    let sandbox = chosen.and_then(|entry| entry.sandbox);
    match sandbox {
        Some(sandbox) => output::note(&format!("chosen: {sandbox} (zeno diff {sandbox})\n")),
        None => output::note("none is chosen; all of them stay\n"),
    }
    Ok(sandbox)
}

fn read_line() -> Result<String, Failure> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Failure::Confirm)?;
    Ok(line)
}

fn request_of(typed: &args::Race, caller: &Caller) -> Result<RaceRequest, Failure> {
    let tries = typed.tries.iter().map(|Try { name, run }| {
        Ok(Candidate { name: name.clone(), attempt: Attempt::Command { run: run.clone() } })
    });
    let others = typed.candidates.iter().map(|CandidateArg { name, source }| {
        let attempt = match source {
            Source::Sandbox(sandbox) => Attempt::Sandbox { sandbox: sandbox.clone() },
            Source::Ref(commit) => Attempt::Ref { commit: commit.clone() },
            Source::Patch(path) => {
                let patch =
                    std::fs::read(path).map_err(|source| Failure::ReadHost { path: path.clone(), source })?;
                Attempt::Patch { patch: Text(patch) }
            }
        };
        Ok(Candidate { name: name.clone(), attempt })
    });
    let default = if typed.score.is_some() { Pick::Score } else { Pick::Smallest };
    Ok(RaceRequest {
        from: typed.from.clone(),
        create: CreateRequest {
            context: caller.context(),
            net: typed.net.clone().unwrap_or_default(),
            limits: request::limits(&typed.limits),
            actor: caller.actor,
            ..CreateRequest::default()
        },
        net: typed.net.clone(),
        candidates: tries.chain(others).collect::<Result<_, Failure>>()?,
        commands: typed.commands.clone(),
        score: typed.score.clone(),
        pick: typed.pick.unwrap_or(default),
        timeout: typed.timeout,
        parallel: typed.parallel,
        actor: caller.actor,
        ..RaceRequest::default()
    })
}
