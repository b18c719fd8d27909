//! `zeno diff`.

mod beyond;
mod candidate;
mod meant;
mod with;

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use futures_util::StreamExt;
use model::diff::Detail;

use crate::api::Pieces;
use crate::args::diff::Diff;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output::{self, Sink};
use crate::progress::Waiting;
use crate::render::diff::{Ignored, Look, name_status, overview, stat};
use crate::render::paint::Paint;

pub(crate) async fn diff(typed: &Diff, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let asked = meant::asked(&api, typed).await?;
    if let Some(other) = &asked.with {
        return with::compare(&api, typed, &asked, other, invocation).await;
    }
    let (which, from, paths) = (&asked.one, typed.from.as_ref(), &asked.paths);
    if typed.form.patch {
        pass_on(Waiting::begin("comparing").watch(api.patch(which, from, paths)).await?).await?;
        let diff = api.diff(which, from, paths, Detail::Paths).await?;
        return Ok(tell_beyond(&diff, typed));
    }
    let asked = api.diff(which, from, paths, detail(typed));
    let diff = Waiting::begin("comparing").watch(asked).await?;
    invocation.answer(&diff, |paint| shown(&diff, typed, look(typed, invocation, paint)))?;
    if diff.is_empty() && invocation.form == Form::People {
        output::note("nothing has changed\n");
    }
    Ok(DONE)
}

fn detail(typed: &Diff) -> Detail {
    if typed.form.stat { Detail::Lines } else { Detail::Paths }
}

fn look<'a>(typed: &Diff, invocation: &'a Invocation, paint: Paint) -> Look<'a> {
    let ignored = if typed.ignored { Ignored::Listed } else { Ignored::Counted };
    Look { ignored, home: invocation.environment.home.as_deref(), paint, names: None }
}

/// In the form that was asked for.
fn shown(diff: &model::diff::Diff, typed: &Diff, look: Look<'_>) -> String {
    match (typed.form.name_status, typed.form.stat) {
        (true, _) => name_status(diff),
        (false, true) => stat(diff, look),
        (false, false) => overview(diff, look),
    }
}

/// After a patch: what is not in it.
fn tell_beyond(diff: &model::diff::Diff, typed: &Diff) -> u8 {
    if let Some(beyond) = beyond::beyond(diff, &typed.sandbox.to_string()) {
        output::note(&beyond);
    }
    DONE
}

/// Passes a patch on.
async fn pass_on(mut pieces: Pieces) -> Result<(), Failure> {
    while let Some(piece) = pieces.next().await {
        output::pass_on(Sink::Stdout, &piece?).await?;
    }
    Ok(())
}

/// The paths from the root, without `.` and `..`: nothing is looked up, the sandbox may have what this machine has not.
fn absolute(paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, Failure> {
    let here = if paths.iter().all(|path| path.is_absolute()) {
        PathBuf::new()
    } else {
        std::env::current_dir().map_err(Failure::Cwd)?
    };
    Ok(paths.iter().map(|path| plain(&here.join(path)).into_os_string().as_bytes().to_vec()).collect())
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => plain.push(part),
        }
    }
    plain
}
