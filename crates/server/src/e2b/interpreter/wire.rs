//! What the clients ask and are told, and what the bridge says. Whatever the bridge says is read as its type and written anew: it
//! shares its user with the code that it runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub(super) struct Execution {
    pub(super) code: String,
    #[serde(default)]
    pub(super) context_id: Option<String>,
    #[serde(default)]
    pub(super) language: Option<String>,
    #[serde(default)]
    pub(super) env_vars: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewContext {
    pub(super) language: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) env_vars: Option<BTreeMap<String, String>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) language: &'static str,
    pub(super) cwd: String,
}

/// What the bridge is told to do.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Command<'a> {
    Execute { code: &'a str, env: &'a BTreeMap<String, String> },
    Interrupt,
}

/// The first word of the bridge, or of the search for a Python that it can run in.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum First {
    Ready { python: String, cwd: String },
    Missing(Missing),
    Broken { python: String, reason: String },
}

/// The Python that would be a kernel's if it had what it takes; empty if there is none.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Missing {
    pub(super) python: String,
    /// It is the system's, and its pip installs nothing unless it is told to.
    pub(super) managed: bool,
    pub(super) owner: String,
    pub(super) user: String,
}

/// What comes of an execution, one in each line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Output {
    NumberOfExecutions { execution_count: u64 },
    Stdout { text: String, timestamp: String },
    Stderr { text: String, timestamp: String },
    Result(Box<Shown>),
    Error { name: String, value: String, traceback: String },
    EndOfExecution,
}

/// One thing that was shown, in each form that there is of it.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Shown {
    is_main_result: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    markdown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    svg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    png: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jpeg: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pdf: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latex: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    javascript: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chart: Option<Value>,
    /// By media type.
    #[serde(default)]
    extra: Map<String, Value>,
}

impl Output {
    pub(super) fn read(line: &[u8]) -> Self {
        serde_json::from_slice(line).unwrap_or_else(|error| {
            let value = format!("the kernel said what is not understood: {error}");
            Self::error("NotUnderstood", value)
        })
    }

    pub(super) fn error(name: &str, value: String) -> Self {
        Self::Error { name: name.to_owned(), value, traceback: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_bridge_says_is_told_as_the_clients_know_it() {
        let same = [
            json!({"type": "number_of_executions", "execution_count": 3}),
            json!({"type": "stdout", "text": "a\n", "timestamp": "2026-01-01T00:00:00+00:00"}),
            json!({"type": "result", "is_main_result": true, "text": "1", "json": {"a": [1]}, "extra": {"x/y": 1}}),
            json!({"type": "error", "name": "ValueError", "value": "no", "traceback": "a\nb"}),
            json!({"type": "end_of_execution"}),
        ];
        for said in same {
            let told = serde_json::to_value(Output::read(said.to_string().as_bytes())).unwrap();
            assert_eq!(told, said);
        }
        let unknown = json!({"type": "result", "is_main_result": false, "text": "1", "other": 1});
        let told = serde_json::to_value(Output::read(unknown.to_string().as_bytes())).unwrap();
        assert_eq!(told, json!({"type": "result", "is_main_result": false, "text": "1", "extra": {}}));
        for bad in ["", "x", "{}", r#"{"type":"stdout"}"#, r#"{"type":"end"}"#] {
            assert!(matches!(Output::read(bad.as_bytes()), Output::Error { .. }), "{bad}");
        }
    }

    #[test]
    fn the_bridge_is_told_in_lines() {
        let env = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let told = |command| serde_json::to_string(&command).unwrap();
        assert_eq!(
            told(Command::Execute { code: "1\n2", env: &env }),
            r#"{"do":"execute","code":"1\n2","env":{"A":"b"}}"#
        );
        assert_eq!(told(Command::Interrupt), r#"{"do":"interrupt"}"#);
    }
}
