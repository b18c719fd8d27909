//! The files of a sandbox, worked on as one of its users.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use model::exec::Text;
use model::files::{Entries, Entry, FileOp};
use model::{Code, Problem, SandboxId};
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::net::UnixStream;

use crate::api::files::{answer, feed};
use crate::e2b::E2b;
use crate::frames::FrameReader;

#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    pub(super) door: &'a E2b,
    pub(super) sandbox: SandboxId,
    /// The sandbox's own if absent.
    pub(super) user: Option<&'a str>,
}

impl Files<'_> {
    pub(super) async fn open(&self, operation: &FileOp) -> Result<UnixStream, Problem> {
        self.door.app.control.file(&self.sandbox.to_string(), self.user, operation).await
    }

    /// Asks for something that has one answer.
    pub(super) async fn ask<T: DeserializeOwned>(&self, operation: &FileOp) -> Result<T, Problem> {
        let init = self.open(operation).await?;
        patiently(answer(&mut FrameReader::new(init))).await
    }

    /// What is in a folder, put together.
    pub(super) async fn entries(&self, path: Text, depth: u32) -> Result<Vec<Entry>, Problem> {
        let init = self.open(&FileOp::Entries { path, depth }).await?;
        let mut reader = FrameReader::new(init);
        patiently(async {
            let mut all = Vec::new();
            while let Some(Entries { entries }) = answer(&mut reader).await? {
                all.extend(entries);
                if all.len() > MOST_ENTRIES {
                    let detail = format!("there are more than {MOST_ENTRIES} entries: list it less deep");
                    return Err(Problem::new(Code::TooLarge, detail));
                }
            }
            Ok(all)
        })
        .await
    }

    /// Makes or replaces a file.
    pub(super) async fn store(
        &self,
        path: Text,
        metadata: BTreeMap<String, String>,
        contents: impl Stream<Item = Result<Bytes, Problem>>,
    ) -> Result<Entry, Problem> {
        let init = self.open(&FileOp::Upload { path, metadata }).await?;
        let (read, write) = init.into_split();
        let mut reader = FrameReader::new(read);
        patiently(answer::<IgnoredAny>(&mut reader)).await?;
        feed(&mut reader, write, contents).await
    }
}

/// A path as a client says it. Which ones there are is for the sandbox to say.
pub(super) fn path(text: &str) -> Result<Text, Problem> {
    if text.contains('\0') {
        return Err(Problem::new(Code::BadRequest, "a path has no NUL in it"));
    }
    Ok(Text::from(text))
}

/// Removing a large tree takes long; for ever is too long.
pub(super) async fn patiently<T>(asked: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(answer) => answer,
        Err(_late) => Err(Problem::new(
            Code::NotReady,
            format!("the sandbox did not answer within {} s", PATIENCE.as_secs()),
        )),
    }
}

const PATIENCE: Duration = Duration::from_secs(600);
/// Whoever lists so much holds it whole in memory, and so does this process.
const MOST_ENTRIES: usize = 100_000;
