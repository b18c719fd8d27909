//! `zeno cp`.

mod host;
mod inside;
mod spot;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use futures_util::StreamExt;
use model::files::FileKind;
use serde::Serialize;

use self::spot::Spot;
use crate::api::{Api, FileRef};
use crate::args::cp::{Cp, Place};
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output::{self, Sink};

pub(crate) async fn cp(typed: &Cp, invocation: &Invocation) -> Result<u8, Failure> {
    let inside = |which, path: &str| FileRef { which, path: path.into(), user: typed.user.as_deref() };
    let copied = match (&typed.from, &typed.to) {
        (Place::Sandbox { which, path }, Place::Standard) => {
            print(&invocation.api().await?, &inside(which, path)).await?
        }
        (Place::Standard, Place::Sandbox { which, path }) => {
            let api = invocation.api().await?;
            api.write(&inside(which, path), None, tokio::io::stdin()).await?;
            Copied { files: 1, ..Copied::default() }
        }
        (Place::Sandbox { which, path }, Place::Host(to)) => {
            let api = invocation.api().await?;
            tree(&api, Spot::Inside(inside(which, path)), Spot::Host(host::resolved(to)?)).await?
        }
        (Place::Host(from), Place::Sandbox { which, path }) => {
            let api = invocation.api().await?;
            tree(&api, Spot::Host(from.clone()), Spot::Inside(inside(which, path))).await?
        }
        (Place::Sandbox { which, path }, Place::Sandbox { which: other, path: to }) => {
            let api = invocation.api().await?;
            tree(&api, Spot::Inside(inside(which, path)), Spot::Inside(inside(other, to))).await?
        }
        (Place::Host(_) | Place::Standard, Place::Host(_) | Place::Standard) => {
            return Err(Failure::CopyShape { what: "within this machine: one side has to be SANDBOX:/PATH" });
        }
    };
    if invocation.form == Form::Json && typed.to != Place::Standard {
        invocation.answer(&copied, |_| String::new())?;
    }
    Ok(DONE)
}

/// The answer of `zeno cp --json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Copied {
    files: u64,
    folders: u64,
    links: u64,
    /// Pipes, sockets and devices: they are not files to be copied.
    skipped: u64,
}

async fn print(api: &Api, file: &FileRef<'_>) -> Result<Copied, Failure> {
    let mut contents = api.read(file).await?;
    while let Some(piece) = contents.next().await {
        output::pass_on(Sink::Stdout, &piece?).await?;
    }
    Ok(Copied { files: 1, ..Copied::default() })
}

/// What is left to do, last first.
enum Step<'a> {
    Copy {
        from: Spot<'a>,
        to: Spot<'a>,
    },
    /// A folder's own permissions come last: it may not be writable.
    Seal {
        folder: Spot<'a>,
        mode: u32,
    },
}

async fn tree<'a>(api: &Api, from: Spot<'a>, to: Spot<'a>) -> Result<Copied, Failure> {
    let to = match from.name() {
        Some(name) if to.is_folder(api).await? => to.child(&name),
        Some(_) | None => to,
    };
    let mut copied = Copied::default();
    let mut steps = vec![Step::Copy { from, to }];
    while let Some(step) = steps.pop() {
        match step {
            Step::Copy { from, to } => copy(api, from, to, &mut steps, &mut copied).await?,
            Step::Seal { folder, mode } => folder.set_mode(api, mode).await?,
        }
    }
    Ok(copied)
}

async fn copy<'a>(
    api: &Api,
    from: Spot<'a>,
    to: Spot<'a>,
    steps: &mut Vec<Step<'a>>,
    copied: &mut Copied,
) -> Result<(), Failure> {
    let entry = from.look(api).await?;
    match entry.kind {
        FileKind::File => {
            to.write(api, entry.mode, from.read(api).await?).await?;
            copied.files += 1;
        }
        FileKind::Directory => {
            to.make_folder(api, entry.mode).await?;
            copied.folders += 1;
            steps.push(Step::Seal { folder: to.clone(), mode: entry.mode });
            for name in from.children(api).await? {
                steps.push(Step::Copy { from: from.child(&name), to: to.child(&name) });
            }
        }
        FileKind::Symlink => {
            to.link(api, &entry.target).await?;
            copied.links += 1;
        }
        FileKind::Fifo | FileKind::Socket | FileKind::Device => {
            output::note(&format!("skipped: {from} is neither file, folder nor link\n"));
            copied.skipped += 1;
        }
    }
    Ok(())
}

/// The last part of a path, if it has one that can be used as a name.
fn file_name(path: &Path) -> Option<Vec<u8>> {
    path.file_name().map(|name| name.as_bytes().to_vec())
}
