//! What can be read of sandboxes without a tool: what one changed, what its commands wrote, what happened to it.

use std::path::Path;

use model::event::Event;
use model::{Code, Problem, Sandbox};
use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use super::page;
use crate::api::App;
use crate::logs::{LogError, records};

/// What there is of each sandbox: the last part of its address, the media type, and what it shows.
const PARTS: [(&str, &str, &str); 3] = [
    ("diff", "text/x-diff", "What a sandbox changed in its frozen folder, as a patch"),
    ("logs", "text/plain", "What the commands of a sandbox wrote, the end of it"),
    ("events", "application/json", "What happened to a sandbox, oldest first"),
];

pub(super) fn templates() -> Vec<ResourceTemplate> {
    let template = |(part, media, about)| {
        ResourceTemplate::new(format!("{SCHEME}{{sandbox}}/{part}"), format!("sandbox-{part}"))
            .with_description(about)
            .with_mime_type(media)
    };
    PARTS.map(template).to_vec()
}

/// Those of the sandboxes there are, the newest of them first.
pub(super) async fn list(app: &App) -> Result<ListResourcesResult, Problem> {
    let mut sandboxes = app.control.list(false).await?;
    sandboxes.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.created));
    let of = |sandbox: &Sandbox| {
        let called = sandbox.name.as_ref().map_or_else(|| sandbox.id.to_string(), ToString::to_string);
        let id = sandbox.id;
        PARTS.map(|(part, media, about)| {
            Resource::new(format!("{SCHEME}{id}/{part}"), format!("{called} {part}"))
                .with_description(about)
                .with_mime_type(media)
        })
    };
    Ok(ListResourcesResult::with_all_items(sandboxes.iter().take(LISTED).flat_map(of).collect()))
}

pub(super) async fn read(app: &App, uri: &str) -> Result<ReadResourceResult, Problem> {
    let (which, part) = address(uri).ok_or_else(|| unknown(uri))?;
    let sandbox = app.control.get(which).await?;
    let text = match part {
        "diff" => diff(app, &sandbox).await?,
        "logs" => logs(app, &sandbox).await?,
        "events" => events(app, &sandbox).await?,
        _ => return Err(unknown(uri)),
    };
    let media = PARTS.iter().find(|(known, ..)| *known == part).map_or("text/plain", |(_, media, _)| *media);
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(media)]))
}

/// `zeno://sandboxes/ID/PART`.
fn address(uri: &str) -> Option<(&str, &str)> {
    uri.strip_prefix(SCHEME)?.split_once('/')
}

fn unknown(uri: &str) -> Problem {
    let hint = "there is zeno://sandboxes/{sandbox}/diff, /logs and /events";
    Problem::new(Code::NotFound, format!("there is no resource `{uri}`")).hint(hint)
}

async fn diff(app: &App, sandbox: &Sandbox) -> Result<String, Problem> {
    let mut pieces = app.control.patch(&sandbox.id.to_string(), None, Vec::new()).await?;
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.recv().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > LARGEST {
            let detail = format!("the patch is larger than {LARGEST} bytes");
            return Err(Problem::new(Code::TooLarge, detail).hint("sandbox_diff shows it in parts"));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn logs(app: &App, sandbox: &Sandbox) -> Result<String, Problem> {
    let path = app.control.log_path(&sandbox.id.to_string()).await?;
    let read = tokio::task::spawn_blocking(move || end_of(&path)).await;
    match read {
        Ok(Ok(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Ok(Err(error)) => Err(Problem::from_error(Code::Internal, &error)),
        Err(panicked) => Err(Problem::from_error(Code::Internal, &panicked)),
    }
}

/// The last of what all commands wrote.
fn end_of(path: &Path) -> Result<Vec<u8>, LogError> {
    let mut records = match records(path) {
        Ok(records) => records,
        // Nothing has been written yet.
        Err(LogError::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    while let Some(record) = records.read()? {
        bytes.extend_from_slice(&record.data);
        if bytes.len() > 2 * LARGEST {
            bytes.drain(..bytes.len() - LARGEST);
        }
    }
    bytes.drain(..bytes.len().saturating_sub(LARGEST));
    Ok(bytes)
}

async fn events(app: &App, sandbox: &Sandbox) -> Result<String, Problem> {
    let id = sandbox.id.to_string();
    let (mut after, mut found) = (0, Vec::<Event>::new());
    loop {
        let some = app.control.events(after, PAGE).await?;
        let Some(last) = some.last() else { break };
        after = last.sequence;
        found.extend(some.into_iter().filter(|event| is_of(event, &id)));
        let surplus = found.len().saturating_sub(LISTED);
        found.drain(..surplus);
    }
    Ok(serde_json::to_string_pretty(&found).expect("wire types cannot fail to serialise"))
}

/// Is it about this sandbox, or about something that was made of it?
fn is_of(event: &Event, id: &str) -> bool {
    use model::event::EventData;
    let sandbox = match &event.data {
        EventData::Transition(transition) => Some(transition.sandbox),
        EventData::Snapshot(change) => Some(change.sandbox),
        EventData::Promotion(change) => Some(change.sandbox),
        EventData::Verdict(given) => Some(given.sandbox),
        EventData::Race(ended) => ended.winner_sandbox,
    };
    sandbox.is_some_and(|sandbox| sandbox.to_string() == id)
}

const SCHEME: &str = "zeno://sandboxes/";
const PAGE: usize = 1000;
const LISTED: usize = 100;
/// Bytes of one resource.
const LARGEST: usize = 8 * page::MOST;
