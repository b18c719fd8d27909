//! `zeno diff`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::args::diff::Diff;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output;
use crate::progress::Waiting;
use crate::render::diff as render;

pub(crate) async fn diff(typed: &Diff, invocation: &Invocation) -> Result<u8, Failure> {
    let api = invocation.api().await?;
    let paths = absolute(&typed.paths)?;
    let diff = Waiting::begin("comparing").watch(api.diff(&typed.sandbox, &paths)).await?;
    let home = invocation.environment.home.as_deref();
    invocation.answer(&diff, |paint| {
        if typed.form.name_status { render::name_status(&diff) } else { render::overview(&diff, home, paint) }
    })?;
    if diff.is_empty() && invocation.form == Form::People {
        output::note("nothing has changed\n");
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
