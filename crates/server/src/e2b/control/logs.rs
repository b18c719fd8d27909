//! What a sandbox's commands wrote, as log entries.

use axum::Json;
use axum::extract::{Path, Query, State};
use jiff::Timestamp;
use model::{Code, Problem};
use serde::{Deserialize, Serialize};

use super::life::find;
use crate::e2b::E2b;
use crate::e2b::failure::Failure;
use crate::line::Stream;
use crate::logs::{LogError, Record, records};

#[derive(Debug, Serialize)]
pub(super) struct Logs {
    logs: Vec<Entry>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldLogs {
    logs: Vec<Line>,
    log_entries: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Line {
    timestamp: Timestamp,
    line: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    timestamp: Timestamp,
    level: Level,
    message: String,
    fields: Fields,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Fields {
    exec: String,
    stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filter {
    /// Milliseconds since 1970: of the first entry that is told, or in the other direction the last.
    cursor: Option<i64>,
    /// The same in the first version of the API.
    start: Option<i64>,
    limit: Option<usize>,
    direction: Direction,
    level: Option<Level>,
    search: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    #[default]
    Forward,
    Backward,
}

pub(super) async fn new(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Query(filter): Query<Filter>,
) -> Result<Json<Logs>, Failure> {
    Ok(Json(Logs { logs: entries(&door, &id, filter).await? }))
}

pub(super) async fn old(
    State(door): State<E2b>,
    Path(id): Path<String>,
    Query(filter): Query<Filter>,
) -> Result<Json<OldLogs>, Failure> {
    let log_entries = entries(&door, &id, filter).await?;
    let line = |entry: &Entry| Line { timestamp: entry.timestamp, line: entry.message.clone() };
    Ok(Json(OldLogs { logs: log_entries.iter().map(line).collect(), log_entries }))
}

async fn entries(door: &E2b, id: &str, filter: Filter) -> Result<Vec<Entry>, Failure> {
    find(door, id).await?;
    let path = door.app.control.log_path(id).await?;
    let read = tokio::task::spawn_blocking(move || match records(&path) {
        Ok(mut records) => select(std::iter::from_fn(|| records.read().transpose()), &filter),
        // Nothing has been written yet.
        Err(LogError::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    });
    let internal = |error: &dyn std::error::Error| Failure::from(Problem::from_error(Code::Internal, error));
    read.await.map_err(|error| internal(&error))?.map_err(|error| internal(&error))
}

/// Those that are asked for, at most so many, line by line.
fn select(
    records: impl Iterator<Item = Result<Record, LogError>>,
    filter: &Filter,
) -> Result<Vec<Entry>, LogError> {
    let limit = filter.limit.unwrap_or(MOST).min(MOST);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let cursor = filter.cursor.or(filter.start);
    let mut chosen = std::collections::VecDeque::new();
    for record in records {
        let record = record?;
        let time = record.time.as_millisecond();
        let is_meant = cursor.is_none_or(|cursor| match filter.direction {
            Direction::Forward => time >= cursor,
            Direction::Backward => time <= cursor,
        });
        if !is_meant {
            continue;
        }
        for entry in lines(&record).filter(|entry| is_asked_for(entry, filter)) {
            if chosen.len() == limit {
                match filter.direction {
                    Direction::Forward => return Ok(chosen.into()),
                    Direction::Backward => chosen.pop_front(),
                };
            }
            chosen.push_back(entry);
        }
    }
    if filter.direction == Direction::Backward {
        chosen.make_contiguous().reverse();
    }
    Ok(chosen.into())
}

fn lines(record: &Record) -> impl Iterator<Item = Entry> {
    let text = String::from_utf8_lossy(&record.data).into_owned();
    let (timestamp, stream, exec) = (record.time, record.stream, record.exec.to_string());
    let level = match stream {
        Stream::Stdout => Level::Info,
        Stream::Stderr => Level::Error,
    };
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.into_iter().map(move |message| Entry {
        timestamp,
        level,
        message,
        fields: Fields { exec: exec.clone(), stream },
    })
}

fn is_asked_for(entry: &Entry, filter: &Filter) -> bool {
    filter.level.is_none_or(|level| entry.level >= level)
        && filter.search.as_ref().is_none_or(|search| entry.message.contains(search))
}

/// Entries in one answer.
const MOST: usize = 1000;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use model::ExecId;

    use super::*;

    fn record(at: i64, stream: Stream, text: &str) -> Record {
        let time = Timestamp::from_millisecond(at).unwrap();
        Record { stream, exec: ExecId(1), time, data: Bytes::copy_from_slice(text.as_bytes()) }
    }

    #[track_caller]
    fn check(filter: serde_json::Value, expected: &[&str]) {
        let filter: Filter = serde_json::from_value(filter).unwrap();
        let records = [
            record(10, Stream::Stdout, "one\ntwo\n"),
            record(20, Stream::Stderr, "bad\n"),
            record(30, Stream::Stdout, "three\n"),
        ];
        let entries = select(records.into_iter().map(Ok), &filter).unwrap();
        let messages: Vec<&str> = entries.iter().map(|entry| entry.message.as_str()).collect();
        assert_eq!(messages, expected, "{filter:?}");
    }

    #[test]
    fn entries_are_chosen_by_time_level_and_text() {
        use serde_json::json;
        check(json!({}), &["one", "two", "bad", "three"]);
        check(json!({"cursor": 20}), &["bad", "three"]);
        check(json!({"cursor": 20, "direction": "backward"}), &["bad", "two", "one"]);
        check(json!({"limit": 2}), &["one", "two"]);
        check(json!({"limit": 2, "direction": "backward"}), &["three", "bad"]);
        check(json!({"level": "error"}), &["bad"]);
        check(json!({"search": "o"}), &["one", "two"]);
    }
}
