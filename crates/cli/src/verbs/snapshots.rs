//! `zeno snapshots`.

use jiff::Timestamp;

use crate::args::snapshot::{Snapshots, SnapshotsAction};
use crate::args::which::Which;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::progress::Waiting;
use crate::render::snapshots as render;

pub(crate) async fn snapshots(typed: &Snapshots, invocation: &Invocation) -> Result<u8, Failure> {
    match &typed.action {
        None => list(typed, invocation).await,
        Some(SnapshotsAction::Get { snapshot }) => {
            let snapshot = invocation.api().await?.get_snapshot(snapshot).await?;
            invocation.answer(&snapshot, |paint| render::record(&snapshot, Timestamp::now(), paint))?;
            Ok(DONE)
        }
        Some(SnapshotsAction::Rm { snapshots }) => remove(snapshots, invocation).await,
    }
}

async fn list(typed: &Snapshots, invocation: &Invocation) -> Result<u8, Failure> {
    let snapshots = invocation.api().await?.snapshots(typed.of.as_ref()).await?;
    invocation.answer(&snapshots, |paint| {
        if typed.quiet {
            render::ids(&snapshots)
        } else if typed.tree {
            render::tree(&snapshots, Timestamp::now(), paint)
        } else {
            render::list(&snapshots, Timestamp::now(), paint)
        }
    })?;
    if snapshots.is_empty() && !typed.quiet && invocation.form == Form::People {
        output::note("no snapshots yet: `zeno snapshot SANDBOX` makes one\n");
    }
    Ok(DONE)
}

async fn remove(which: &[Which], invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let mut gone = Vec::new();
    for which in which {
        gone.push(Waiting::begin("removing").watch(api.remove_snapshot(which)).await?);
    }
    invocation.answer(&gone, |_| gone.iter().map(|snapshot| render::name(snapshot) + "\n").collect())?;
    Ok(DONE)
}
