//! The sandbox's side of a copy. What it says about itself is not trusted.

use futures_util::TryStreamExt;
use model::Code;
use model::exec::{ExecRequest, FrameKind, Outcome, Text};
use model::files::FileKind;
use server::client::ClientError;
use tokio_util::io::StreamReader;

use super::spot::{Contents, Entry};
use crate::api::{Api, FileRef};
use crate::args::which::Which;
use crate::failure::Failure;

pub(super) async fn is_folder(api: &Api, file: &FileRef<'_>) -> Result<bool, Failure> {
    match api.stat(file).await {
        Ok(stat) => match stat.kind {
            FileKind::Directory => Ok(true),
            // Whether a link leads to a folder shows when it is read as one.
            FileKind::Symlink => Ok(api.folder(file).await.is_ok()),
            FileKind::File | FileKind::Fifo | FileKind::Socket | FileKind::Device => Ok(false),
        },
        Err(ClientError::Problem(problem))
            if problem.code == Code::NotFound && api.sandbox(file.which).await.is_ok() =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn look(api: &Api, file: &FileRef<'_>) -> Result<Entry, Failure> {
    let stat = api.stat(file).await?;
    Ok(Entry {
        kind: stat.kind,
        mode: stat.mode & 0o7777,
        target: stat.target.map(|target| target.0).unwrap_or_default(),
    })
}

pub(super) async fn children(api: &Api, file: &FileRef<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    let names = api.folder(file).await?.entries.into_iter().map(|entry| entry.name.0);
    names
        .map(|name| if is_name(&name) { Ok(name) } else { Err(Failure::ForeignName { name: Text(name) }) })
        .collect()
}

/// One name in one folder. Anything else would lead a copy to where nobody sent it.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

pub(super) async fn read(api: &Api, file: &FileRef<'_>) -> Result<Contents, Failure> {
    let pieces = api.read(file).await?;
    Ok(Box::new(StreamReader::new(pieces.map_err(std::io::Error::other))))
}

pub(super) async fn set_mode(api: &Api, file: &FileRef<'_>, mode: u32) -> Result<(), Failure> {
    let mode = format!("{mode:o}");
    command(api, file, &[b"chmod", mode.as_bytes(), b"--", &file.path]).await
}

pub(super) async fn link(api: &Api, file: &FileRef<'_>, target: &[u8]) -> Result<(), Failure> {
    command(api, file, &[b"ln", b"-sfn", b"--", target, &file.path]).await
}

/// Runs a command, for what the files API has no word for.
async fn command(api: &Api, file: &FileRef<'_>, argv: &[&[u8]]) -> Result<(), Failure> {
    let request = ExecRequest {
        argv: argv.iter().map(|word| Text(word.to_vec())).collect(),
        cwd: Some("/".into()),
        user: file.user.map(ToOwned::to_owned),
        ..ExecRequest::default()
    };
    if run(api, file.which, &request).await? == (Outcome::Exited { code: 0 }) {
        Ok(())
    } else {
        Err(Failure::Inside { program: request.argv[0].clone(), path: Text(file.path.clone()) })
    }
}

async fn run(api: &Api, which: &Which, request: &ExecRequest) -> Result<Outcome, Failure> {
    let (mut incoming, _outgoing) = api.exec(which, request).await?.split();
    while let Some((kind, payload)) = incoming.next().await? {
        match kind {
            FrameKind::Ended => return serde_json::from_slice(&payload).map_err(Failure::Decode),
            FrameKind::Problem => {
                let problem = serde_json::from_slice(&payload).map_err(Failure::Decode)?;
                return Err(ClientError::Problem(problem).into());
            }
            FrameKind::Stderr => crate::output::note(&String::from_utf8_lossy(&payload)),
            FrameKind::Stdin
            | FrameKind::Resize
            | FrameKind::Signal
            | FrameKind::Request
            | FrameKind::Stdout
            | FrameKind::Started
            | FrameKind::Progress
            | FrameKind::Removed
            | FrameKind::Answer => {}
        }
    }
    Err(Failure::BrokenOff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        for good in [&b"a"[..], b"...", b"\xff", b"a b"] {
            assert!(is_name(good));
        }
        for bad in [&b""[..], b".", b"..", b"../x", b"/etc", b"a/b", b"a\0"] {
            assert!(!is_name(bad));
        }
    }
}
