//! `zeno diff`.

mod with;

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use futures_util::StreamExt;
use model::diff::Detail;

use crate::api::Api;
use crate::args::diff::Diff;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output::{self, Sink};
use crate::progress::Waiting;
use crate::render::diff::{Ignored, Look, name_status, overview, stat};

pub(crate) async fn diff(typed: &Diff, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let paths = absolute(&typed.paths)?;
    let form = &typed.form;
    if let Some(other) = &typed.with {
        return with::compare(&api, typed, other, &paths, invocation).await;
    }
    if form.patch {
        return patch(&api, typed, &paths).await;
    }
    let detail = if form.stat { Detail::Lines } else { Detail::Paths };
    let diff = Waiting::begin("comparing")
        .watch(api.diff(&typed.sandbox, typed.from.as_ref(), &paths, detail))
        .await?;
    let ignored = if typed.ignored { Ignored::Listed } else { Ignored::Counted };
    let home = invocation.environment.home.as_deref();
    invocation.answer(&diff, |paint| {
        let look = Look { ignored, home, paint };
        match (form.name_status, form.stat) {
            (true, _) => name_status(&diff),
            (false, true) => stat(&diff, look),
            (false, false) => overview(&diff, look),
        }
    })?;
    if diff.is_empty() && invocation.form == Form::People {
        output::note("nothing has changed\n");
    }
    Ok(DONE)
}

async fn patch(api: &Api, typed: &Diff, paths: &[Vec<u8>]) -> Result<u8, Failure> {
    let mut pieces =
        Waiting::begin("comparing").watch(api.patch(&typed.sandbox, typed.from.as_ref(), paths)).await?;
    while let Some(piece) = pieces.next().await {
        output::pass_on(Sink::Stdout, &piece?).await?;
    }
    Ok(DONE)
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
