//! Files in a sandbox.

use std::path::Path;
use std::time::Duration;

use axum::body::Body;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::exec::Text;
use model::files::{FileKind, FileOp, FileStat};
use model::{Code, Problem, Sandbox};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{inside, schema};
use crate::api::files::{Contents, contents, listing, upload};
use crate::frames::FrameReader;
use crate::mcp::Mcp;
use crate::mcp::answer::{Answer, Refused, Told};
use crate::mcp::page::{self, Rest};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Absolute, or from where its commands start
    path: String,
    /// Where to go on, as the last answer said
    cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Absolute, or from where its commands start; folders are made as needed
    path: String,
    /// All of its contents
    content: String,
    /// `content` is base64, for what is not text
    #[serde(default)]
    base64: bool,
    /// Permissions in octal, for example "755"; as they were, or 644, if absent
    mode: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesArgs {
    /// Id or name of the sandbox
    sandbox: String,
    /// Folder, absolute or from where its commands start; that one if absent
    path: Option<String>,
    /// Where to go on, as the last answer said
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Read {
    path: Text,
    /// Text; base64 where `binary`.
    content: String,
    binary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Written {
    path: Text,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct Listed {
    path: Text,
    entries: Vec<FileStat>,
    #[serde(flatten)]
    rest: Rest,
}

#[tool_router(router = file_tools, vis = "pub(super)")]
impl Mcp {
    #[tool(
        name = "sandbox_read",
        description = "Read a file in a sandbox, in parts.",
        input_schema = schema::<ReadArgs>(),
        annotations(title = "Read a file", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_read(
        &self,
        Parameters(ReadArgs { sandbox, path, cursor }): Parameters<ReadArgs>,
    ) -> Told {
        let from = page::place(cursor.as_deref())?;
        let sandbox = self.sandbox(&sandbox).await?;
        let path = inside(&sandbox, &path);
        let (bytes, is_end) = self.part(&sandbox, &path, from, page::MOST).await?;
        let binary = bytes.contains(&0);
        let (content, next_cursor) = if binary {
            let next_cursor = (!is_end).then(|| (from + bytes.len() as u64).to_string());
            (BASE64_STANDARD.encode(&bytes), next_cursor)
        } else {
            let page = page::text(&bytes, from, is_end);
            (page.text, page.next_cursor)
        };
        let more = match &next_cursor {
            Some(cursor) => format!("\n[there is more: call again with cursor \"{cursor}\"]\n"),
            None => String::new(),
        };
        let kind = if binary { "[not text; in base64:]\n" } else { "" };
        Ok(Answer::new(format!("{kind}{content}{more}"), &Read { path, content, binary, next_cursor }))
    }

    #[tool(
        name = "sandbox_write",
        description = "Make or replace a file in a sandbox. To change a part of one, use sandbox_edit.",
        input_schema = schema::<WriteArgs>(),
        annotations(title = "Write a file", read_only_hint = false, destructive_hint = true, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_write(&self, Parameters(args): Parameters<WriteArgs>) -> Told {
        let WriteArgs { sandbox, path, content, base64, mode } = args;
        let sandbox = self.sandbox(&sandbox).await?;
        let path = inside(&sandbox, &path);
        let bytes = match base64.then(|| BASE64_STANDARD.decode(content.trim())) {
            None => content.into_bytes(),
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => return Err(Problem::from_error(Code::BadRequest, &error).into()),
        };
        let mode = match mode.map(|mode| u32::from_str_radix(&mode, 8)) {
            None => None,
            Some(Ok(mode)) if mode <= 0o7777 => Some(mode),
            Some(Ok(_) | Err(_)) => return Err(Refused::bad_request("`mode` is octal, for example 755")),
        };
        let length = bytes.len() as u64;
        match self.write(&sandbox, &path, bytes.clone(), mode).await {
            Err(problem) if problem.code == Code::NotFound => {
                self.make_parents(&sandbox, &path).await?;
                self.write(&sandbox, &path, bytes, mode).await?;
            }
            written => written?,
        }
        Ok(Answer::new(
            format!("Wrote {length} bytes to {}.\n", path.display()),
            &Written { path, bytes: length },
        ))
    }

    #[tool(
        name = "sandbox_files",
        description = "List a folder in a sandbox.",
        input_schema = schema::<FilesArgs>(),
        annotations(title = "List files", read_only_hint = true, destructive_hint = false, idempotent_hint = true, open_world_hint = false)
    )]
    async fn sandbox_files(
        &self,
        Parameters(FilesArgs { sandbox, path, cursor }): Parameters<FilesArgs>,
    ) -> Told {
        let from = page::place(cursor.as_deref())?;
        let sandbox = self.sandbox(&sandbox).await?;
        let path = inside(&sandbox, path.as_deref().unwrap_or("."));
        let which = sandbox.id.to_string();
        let init = self.app.control.file(&which, None, &FileOp::List { path: path.clone() }).await?;
        let mut entries = listing(init).await?.entries;
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        let page::Items { items: entries, rest } = page::items(entries, from, AT_ONCE);
        let lines: String = entries.iter().map(line).collect();
        let text = if lines.is_empty() { "The folder is empty.\n".to_owned() } else { lines };
        Ok(Answer::new(text + &rest.line("entries"), &Listed { path, entries, rest }))
    }
}

impl Mcp {
    /// At most so many bytes from there on, and whether the file ends with them.
    pub(super) async fn part(
        &self,
        sandbox: &Sandbox,
        path: &Text,
        from: u64,
        at_most: usize,
    ) -> Result<(Vec<u8>, bool), Problem> {
        within(PATIENCE, self.part_of(sandbox, path, from, at_most)).await
    }

    async fn part_of(
        &self,
        sandbox: &Sandbox,
        path: &Text,
        from: u64,
        at_most: usize,
    ) -> Result<(Vec<u8>, bool), Problem> {
        let read = FileOp::Read { path: path.clone() };
        let mut reader = FrameReader::new(self.app.control.file(&sandbox.id.to_string(), None, &read).await?);
        let (mut skip, mut bytes) = (usize::try_from(from).unwrap_or(usize::MAX), Vec::new());
        loop {
            let piece = match contents(&mut reader).await? {
                Contents::Piece(piece) => piece,
                Contents::End => return Ok((bytes, true)),
            };
            let skipped = skip.min(piece.len());
            skip -= skipped;
            bytes.extend_from_slice(&piece[skipped..]);
            if bytes.len() > at_most {
                bytes.truncate(at_most);
                return Ok((bytes, false));
            }
        }
    }

    pub(super) async fn write(
        &self,
        sandbox: &Sandbox,
        path: &Text,
        bytes: Vec<u8>,
        mode: Option<u32>,
    ) -> Result<(), Problem> {
        let write = FileOp::Write { path: path.clone(), mode };
        let init = self.app.control.file(&sandbox.id.to_string(), None, &write).await?;
        within(PATIENCE, async {
            match upload(init, Body::from(bytes)).await {
                Ok(_done) => Ok(()),
                Err(refusal) => Err(*refusal.0),
            }
        })
        .await
    }

    async fn make_parents(&self, sandbox: &Sandbox, path: &Text) -> Result<(), Problem> {
        let Some(parent) = Path::new(path.as_os_str()).parent() else { return Ok(()) };
        let make = FileOp::MakeDir { path: parent.to_owned().into(), mode: None };
        let mut init = FrameReader::new(self.app.control.file(&sandbox.id.to_string(), None, &make).await?);
        crate::api::files::answer::<FileStat>(&mut init).await.map(drop)
    }
}

/// A pipe that nobody is at the other end of would be waited for without end.
async fn within<T>(patience: Duration, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done,
        Err(late) => Err(Problem::from_error(Code::NotReady, &late).hint(
            "it takes too long: is it a pipe or a device? Commands can be given their time: sandbox_exec",
        )),
    }
}

/// For one file, whatever its size.
const PATIENCE: Duration = Duration::from_secs(60);

fn line(entry: &FileStat) -> String {
    let name = entry.name.display();
    let target = entry.target.as_ref().map(|target| format!(" -> {}", target.display())).unwrap_or_default();
    match entry.kind {
        FileKind::Directory => format!("{name}/\n"),
        FileKind::File => format!("{name}  {}\n", entry.size),
        FileKind::Symlink | FileKind::Fifo | FileKind::Socket | FileKind::Device => {
            format!("{name}{target}\n")
        }
    }
}

const AT_ONCE: usize = 500;
