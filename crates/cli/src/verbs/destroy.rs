//! `zeno destroy`.

use std::io::{self, BufRead, IsTerminal};

use model::Sandbox;

use crate::api::Api;
use crate::args::lifecycle::Destroy;
use crate::args::which::Which;
use crate::failure::{DONE, Failure};
use crate::invocation::Invocation;
use crate::output;
use crate::progress::Waiting;
use crate::render::problem::problem;
use crate::render::words;

pub(crate) async fn destroy(typed: &Destroy, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let which = if typed.all { every(&api, typed).await? } else { typed.sandboxes.clone() };
    let mut gone: Vec<Sandbox> = Vec::new();
    let mut last: Option<Failure> = None;
    for which in &which {
        match Waiting::begin("removing").watch(api.destroy(which)).await {
            Ok(sandbox) => gone.push(sandbox),
            // One that cannot be removed does not keep the others; each failure is told.
            Err(error) => {
                if let Some(earlier) = last.replace(error.into()) {
                    output::note(&problem(&earlier.problem(), invocation.stderr_paint()));
                }
            }
        }
    }
    invocation.answer(&gone, |_| gone.iter().map(|sandbox| words::name(sandbox) + "\n").collect())?;
    last.map_or(Ok(DONE), Err)
}

async fn every(api: &Api, typed: &Destroy) -> Result<Vec<Which>, Failure> {
    let which: Vec<Which> = api.list(false).await?.iter().map(|sandbox| Which::from(sandbox.id)).collect();
    if typed.yes || which.is_empty() || confirmed(which.len() as u64)? { Ok(which) } else { Ok(Vec::new()) }
}

fn confirmed(sandboxes: u64) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Unconfirmed { sandboxes });
    }
    output::note(&format!(
        "Remove {} and all they wrote? [y/N] ",
        words::count(sandboxes, "sandbox", "sandboxes")
    ));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Failure::Confirm)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}
