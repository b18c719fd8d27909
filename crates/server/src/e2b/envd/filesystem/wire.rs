//! `filesystem.Filesystem` on the wire.

use std::collections::BTreeMap;

use jiff::Timestamp;
use model::files::{Change, ChangeKind, Destination, Entry, FileKind};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PathRequest {
    pub(super) path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListRequest {
    pub(super) path: String,
    /// None at all means one.
    pub(super) depth: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MoveRequest {
    pub(super) source: String,
    pub(super) destination: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WatchRequest {
    pub(super) path: String,
    pub(super) recursive: bool,
    pub(super) include_entry: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct WatcherId {
    pub(super) watcher_id: String,
}

#[derive(Debug, Serialize)]
pub(super) struct EntryResponse {
    pub(super) entry: EntryInfo,
}

#[derive(Debug, Serialize)]
pub(super) struct ListResponse {
    pub(super) entries: Vec<EntryInfo>,
}

#[derive(Debug, Serialize)]
pub(super) struct EventsResponse {
    pub(super) events: Vec<FilesystemEvent>,
}

/// What a watch says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Told {
    Start {},
    Filesystem(Box<FilesystemEvent>),
    Keepalive {},
}

#[derive(Debug, Serialize)]
pub(super) struct FilesystemEvent {
    name: String,
    #[serde(rename = "type")]
    kind: EventType,
    #[serde(skip_serializing_if = "Option::is_none")]
    entry: Option<EntryInfo>,
}

#[derive(Clone, Copy, Debug, Serialize)]
enum EventType {
    #[serde(rename = "EVENT_TYPE_CREATE")]
    Create,
    #[serde(rename = "EVENT_TYPE_WRITE")]
    Write,
    #[serde(rename = "EVENT_TYPE_REMOVE")]
    Remove,
    #[serde(rename = "EVENT_TYPE_RENAME")]
    Rename,
    #[serde(rename = "EVENT_TYPE_CHMOD")]
    Chmod,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryInfo {
    name: String,
    #[serde(rename = "type")]
    kind: FileType,
    path: String,
    size: u64,
    mode: u32,
    permissions: String,
    owner: String,
    group: String,
    modified_time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    symlink_target: Option<String>,
    /// The newest clients look here, others at the target.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_symlink: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum FileType {
    /// What E2B has no word for.
    #[serde(rename = "FILE_TYPE_UNSPECIFIED")]
    Unspecified,
    #[serde(rename = "FILE_TYPE_FILE")]
    File,
    #[serde(rename = "FILE_TYPE_DIRECTORY")]
    Directory,
    #[serde(rename = "FILE_TYPE_SYMLINK")]
    Symlink,
}

impl From<Entry> for EntryInfo {
    /// A link is told as what it leads to, with where that is; one that leads nowhere as a link.
    fn from(entry: Entry) -> Self {
        let Entry { path, stat, owner, group, leads_to, metadata } = entry;
        let (kind, mode) = match &leads_to {
            Some(Destination { kind, mode, .. }) => (*kind, *mode),
            None => (stat.kind, stat.mode),
        };
        let target = leads_to.map(|destination| destination.path).or(stat.target);
        Self {
            name: stat.name.display().into_owned(),
            kind: file_type(kind),
            path: path.display().into_owned(),
            size: stat.size,
            mode: mode & 0o777,
            permissions: permissions(stat.kind, stat.mode),
            owner: owner.display().into_owned(),
            group: group.display().into_owned(),
            modified_time: time(stat.modified),
            is_symlink: stat.kind == FileKind::Symlink,
            symlink_target: target.map(|target| target.display().into_owned()),
            metadata,
        }
    }
}

impl From<Change> for FilesystemEvent {
    fn from(change: Change) -> Self {
        let kind = match change.kind {
            ChangeKind::Create => EventType::Create,
            ChangeKind::Write => EventType::Write,
            ChangeKind::Remove => EventType::Remove,
            ChangeKind::Rename => EventType::Rename,
            ChangeKind::Chmod => EventType::Chmod,
        };
        Self { name: change.name.display().into_owned(), kind, entry: change.entry.map(EntryInfo::from) }
    }
}

fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::File => FileType::File,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::Symlink,
        FileKind::Fifo | FileKind::Socket | FileKind::Device => FileType::Unspecified,
    }
}

/// As the language that E2B's daemon is written in shows them: what it is and how it is set, then the three times three.
fn permissions(kind: FileKind, mode: u32) -> String {
    let kind = match kind {
        FileKind::File => "",
        FileKind::Directory => "d",
        FileKind::Symlink => "L",
        FileKind::Fifo => "p",
        FileKind::Socket => "S",
        FileKind::Device => "D",
    };
    let mut text = kind.to_owned();
    let set = [(0o4000, 'u'), (0o2000, 'g'), (0o1000, 't')];
    text.extend(set.into_iter().filter(|(bit, _)| mode & bit != 0).map(|(_, letter)| letter));
    if text.is_empty() {
        text.push('-');
    }
    let bits = (0..9).map(|at| (0o400 >> at, ['r', 'w', 'x'][at % 3]));
    text.extend(bits.map(|(bit, letter)| if mode & bit != 0 { letter } else { '-' }));
    text
}

/// The protocol's times begin with the first year.
fn time(time: Timestamp) -> String {
    let first = Timestamp::from_second(FIRST_YEAR).expect("it is a time");
    format!("{:.9}", time.max(first))
}

const FIRST_YEAR: i64 = -62_135_596_800;

#[cfg(test)]
mod tests {
    use model::files::FileStat;
    use serde_json::json;

    use super::*;

    fn entry(kind: FileKind, mode: u32) -> Entry {
        Entry {
            path: "/home/user/a".into(),
            stat: FileStat {
                name: "a".into(),
                kind,
                size: 3,
                mode,
                uid: 1000,
                gid: 1000,
                modified: Timestamp::new(1, 500_000_000).unwrap(),
                target: None,
            },
            owner: "user".into(),
            group: "7".into(),
            leads_to: None,
            metadata: BTreeMap::new(),
        }
    }

    #[test]
    fn an_entry_is_told_in_full() {
        let told = serde_json::to_value(EntryInfo::from(entry(FileKind::File, 0o644))).unwrap();
        let expected = json!({
            "name": "a", "type": "FILE_TYPE_FILE", "path": "/home/user/a", "size": 3, "mode": 0o644,
            "permissions": "-rw-r--r--", "owner": "user", "group": "7", "modifiedTime": "1970-01-01T00:00:01.500000000Z",
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_link_is_what_it_leads_to() {
        let mut link = entry(FileKind::Symlink, 0o777);
        link.stat.target = Some("../b".into());
        let told = EntryInfo::from(link.clone());
        assert_eq!((told.kind, told.symlink_target.as_deref()), (FileType::Symlink, Some("../b")));
        link.leads_to = Some(Destination { path: "/home/b".into(), kind: FileKind::Directory, mode: 0o1750 });
        let told = EntryInfo::from(link);
        assert_eq!((told.kind, told.mode), (FileType::Directory, 0o750));
        assert_eq!((told.symlink_target.as_deref(), &*told.permissions), (Some("/home/b"), "Lrwxrwxrwx"));
        assert!(told.is_symlink);
    }

    #[test]
    fn permissions_have_a_letter_for_each() {
        for (kind, mode, text) in [
            (FileKind::Directory, 0o755, "drwxr-xr-x"),
            (FileKind::Directory, 0o1777, "dtrwxrwxrwx"),
            (FileKind::File, 0o4755, "urwxr-xr-x"),
            (FileKind::File, 0, "----------"),
            (FileKind::Fifo, 0o600, "prw-------"),
        ] {
            assert_eq!(permissions(kind, mode), text);
        }
    }

    #[test]
    fn messages_are_what_the_clients_send_and_expect() {
        let watch: WatchRequest =
            serde_json::from_value(json!({"path": "a", "includeEntry": true, "new": 1})).unwrap();
        assert!(watch.include_entry && !watch.recursive && watch.path == "a");
        let start = serde_json::to_value(Told::Start {}).unwrap();
        assert_eq!(start, json!({"start": {}}));
        let change = Change { name: "d/x".into(), kind: ChangeKind::Rename, entry: None };
        let told = serde_json::to_value(Told::Filesystem(Box::new(change.into()))).unwrap();
        assert_eq!(told, json!({"filesystem": {"name": "d/x", "type": "EVENT_TYPE_RENAME"}}));
    }

    #[test]
    fn a_time_that_nobody_can_read_is_none() {
        assert_eq!(time(Timestamp::MIN), "0001-01-01T00:00:00.000000000Z");
    }
}
