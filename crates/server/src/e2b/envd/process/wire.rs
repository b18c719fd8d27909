//! `process.Process` on the wire.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::exec::{Outcome, Window};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ProcessConfig {
    pub(super) cmd: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) args: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) envs: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct StartRequest {
    pub(super) process: ProcessConfig,
    pub(super) pty: Option<Pty>,
    pub(super) tag: Option<String>,
    /// Absent means yes.
    pub(super) stdin: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Pty {
    size: Option<PtySize>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct PtySize {
    cols: u32,
    rows: u32,
}

impl Pty {
    /// A terminal has some size, said or not.
    pub(super) fn window(self) -> Window {
        let fit = |number: u32| u16::try_from(number).unwrap_or(u16::MAX).max(1);
        match self.size {
            Some(PtySize { cols, rows }) => Window { rows: fit(rows), columns: fit(cols) },
            None => Window { rows: 24, columns: 80 },
        }
    }
}

/// Which process is meant.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Selector {
    Pid(i32),
    Tag(String),
}

#[derive(Debug, Deserialize)]
pub(super) struct Selected {
    pub(super) process: Selector,
}

#[derive(Debug, Deserialize)]
pub(super) struct InputRequest {
    pub(super) process: Selector,
    #[serde(default)]
    pub(super) input: Input,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Input {
    stdin: Option<Coded>,
    pty: Option<Coded>,
}

impl Input {
    /// What is to be typed, at a terminal or not.
    pub(super) fn bytes(self) -> Vec<u8> {
        self.stdin.or(self.pty).unwrap_or_default().0
    }
}

/// One message of a stream of input.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamInput {
    pub(super) start: Option<Selected>,
    pub(super) data: Option<StreamData>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct StreamData {
    pub(super) input: Input,
}

#[derive(Debug, Deserialize)]
pub(super) struct SignalRequest {
    pub(super) process: Selector,
    pub(super) signal: Signal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Signal {
    #[serde(rename = "SIGNAL_SIGTERM")]
    Term,
    #[serde(rename = "SIGNAL_SIGKILL")]
    Kill,
}

impl Signal {
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Term => 15,
            Self::Kill => 9,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct UpdateRequest {
    pub(super) process: Selector,
    pub(super) pty: Option<Pty>,
}

#[derive(Debug, Serialize)]
pub(super) struct ListResponse {
    pub(super) processes: Vec<ProcessInfo>,
}

#[derive(Debug, Serialize)]
pub(super) struct ProcessInfo {
    pub(super) config: ProcessConfig,
    pub(super) pid: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tag: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct EventMessage {
    pub(super) event: Event,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Event {
    Start { pid: i32 },
    Data(Data),
    Keepalive {},
    End(End),
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Data {
    Stdout(Coded),
    Stderr(Coded),
    Pty(Coded),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct End {
    exit_code: i32,
    exited: bool,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl End {
    /// In the words of the language that E2B's daemon is written in: clients look for them.
    pub(super) fn of(outcome: &Outcome) -> Self {
        let exited = |code: i32| {
            let status = format!("exit status {code}");
            Self { exit_code: code, exited: true, error: (code != 0).then(|| status.clone()), status }
        };
        let cut = |status: String| Self { exit_code: -1, exited: false, error: Some(status.clone()), status };
        match outcome {
            Outcome::Exited { code } => exited(*code),
            Outcome::Signaled { signal } => cut(format!("signal: {}", signal_name(*signal))),
            Outcome::OutOfMemory { code, limit } => Self {
                error: Some(format!("exit status {code}: out of memory, the limit is {limit}")),
                ..exited(*code)
            },
            Outcome::TimedOut => cut("signal: killed".to_owned()),
            Outcome::OutputLimit => cut("it wrote more than it may".to_owned()),
            Outcome::NotStarted { reason, .. } => cut(reason.clone()),
            Outcome::SandboxEnded { reason } => cut(format!("the sandbox ended: {reason}")),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "hangup",
        2 => "interrupt",
        3 => "quit",
        6 => "aborted",
        9 => "killed",
        11 => "segmentation fault",
        13 => "broken pipe",
        14 => "alarm clock",
        15 => "terminated",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Bytes, as base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Coded(pub(super) Vec<u8>);

impl Serialize for Coded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Coded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ends_are_told_in_the_words_that_clients_look_for() {
        let told = |outcome| serde_json::to_value(End::of(&outcome)).unwrap();
        assert_eq!(
            told(Outcome::Exited { code: 0 }),
            json!({"exitCode": 0, "exited": true, "status": "exit status 0"})
        );
        assert_eq!(
            told(Outcome::Exited { code: 3 }),
            json!({"exitCode": 3, "exited": true, "status": "exit status 3", "error": "exit status 3"})
        );
        assert_eq!(
            told(Outcome::Signaled { signal: 9 }),
            json!({"exitCode": -1, "exited": false, "status": "signal: killed", "error": "signal: killed"})
        );
    }

    #[test]
    fn messages_are_what_the_clients_send() {
        let start: StartRequest = serde_json::from_value(json!({
            "process": {"cmd": "/bin/bash", "args": ["-l", "-c", "true"], "envs": {"A": "b"}, "cwd": "/"},
            "pty": {"size": {"cols": 100_000, "rows": 0}}, "stdin": false,
        }))
        .unwrap();
        assert_eq!(start.pty.unwrap().window(), Window { rows: 1, columns: u16::MAX });
        assert_eq!((start.process.args.len(), start.stdin), (3, Some(false)));
        let input: InputRequest =
            serde_json::from_value(json!({"process": {"pid": 7}, "input": {"stdin": "YWJj"}})).unwrap();
        assert_eq!((input.process, input.input.bytes()), (Selector::Pid(7), b"abc".to_vec()));
        let tagged: Selected = serde_json::from_value(json!({"process": {"tag": "t"}})).unwrap();
        assert_eq!(tagged.process, Selector::Tag("t".to_owned()));
        let event = EventMessage { event: Event::Data(Data::Pty(Coded(b"abc".to_vec()))) };
        assert_eq!(serde_json::to_value(event).unwrap(), json!({"event": {"data": {"pty": "YWJj"}}}));
        let alive = EventMessage { event: Event::Keepalive {} };
        assert_eq!(serde_json::to_value(alive).unwrap(), json!({"event": {"keepalive": {}}}));
    }
}
