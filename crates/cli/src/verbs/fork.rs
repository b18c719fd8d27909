//! `zeno fork`.

use model::snapshot::{ForkRequest, Forked};

use crate::args::sandbox::labels;
use crate::args::snapshot::Fork;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::progress::Waiting;
use crate::render::problem::problem;
use crate::render::words;

pub(crate) async fn fork(typed: &Fork, invocation: &Invocation) -> Result<u8, Failure> {
    let request = ForkRequest {
        count: typed.count,
        name: typed.name.clone(),
        labels: labels(&typed.labels),
        actor: invocation.actor()?,
    };
    let api = invocation.api().await?;
    let forks = Waiting::begin("forking").watch(api.fork(&typed.sandbox, &request)).await?;
    invocation.answer(&forks, |_| {
        let made = forks.forks.iter().filter_map(|fork| match fork {
            Forked::Made { sandbox } => Some(words::name(sandbox) + "\n"),
            Forked::Failed { .. } => None,
        });
        made.collect()
    })?;
    let mut exit = DONE;
    for fork in &forks.forks {
        if let Forked::Failed { problem: failed } = fork {
            exit = failed.code.exit() as u8;
            // In JSON each stands in its place.
            if invocation.form == Form::People {
                output::note(&problem(failed, invocation.stderr_paint()));
            }
        }
    }
    Ok(exit)
}
