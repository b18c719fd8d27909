//! MCP, as the clients of others speak it: the official ones in Python and TypeScript, and the Inspector's command line.

mod hostile;
mod killed;

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::home::{Home, program};
use crate::yard::Yard;

/// A home with a repository to work in, and a daemon that is reached over TCP, too.
struct Place {
    home: Home,
    yard: Yard,
    url: String,
    token: String,
}

impl Place {
    fn new() -> Self {
        let home = Home::new();
        let yard = Yard::new(&home, "echo a > readme; echo b > kept.txt");
        home.ok(&["destroy", "box"]);
        let listening = home.json(&["daemon", "--listen", "127.0.0.1:0"]);
        let address = listening["health"]["listen"][0].as_str().unwrap();
        let url = format!("http://{address}/mcp");
        let token = std::fs::read_to_string(home.path().join("token")).unwrap().trim().to_owned();
        Self { home, yard, url, token }
    }

    /// Runs a client to its end, which has to be a good one.
    #[track_caller]
    fn client(&self, command: &mut Command) -> String {
        let output = self.output(command);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?} ({}):\n{said}\n{complained}", output.status);
        said
    }

    fn output(&self, command: &mut Command) -> Output {
        command
            .env("ZENO", program())
            .env("ZENO_HOME", self.home.path())
            .env("ZENO_FOLDER", &self.yard.path)
            .env("ZENO_URL", &self.url)
            .env("ZENO_TOKEN", &self.token)
            .current_dir(&self.yard.path)
            .output()
            .unwrap()
    }
}

/// What `cargo xtask test` installs, and where it says that it is.
fn installed(variable: &str) -> PathBuf {
    let named = model::env::variables().into_iter().find(|known| known.name == variable.into());
    match named {
        Some(known) => known.value.as_os_str().into(),
        None => {
            panic!("{variable} is not set: `cargo xtask test` installs the clients of others, and sets it")
        }
    }
}

/// A script where whoever runs the tests can read it.
fn script(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.home.yard().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn python(place: &Place, way: &str, mode: &str) {
    let mut command = Command::new(installed("ZENO_TEST_PYTHON"));
    let said = place.client(command.arg(script(place, "every_tool.py", PYTHON)).args([way, mode]));
    assert!(said.contains("tools"), "{said}");
    let is_newer = said.contains("2026-07-28");
    assert_eq!(is_newer, mode != "legacy", "{said}");
}

fn node(place: &Place, way: &str) {
    let mut command = Command::new("node");
    command.env("ZENO_MODULES", installed("ZENO_TEST_NODE_MODULES"));
    let said = place.client(command.arg(script(place, "every_tool.mjs", NODE)).arg(way));
    assert!(said.starts_with("all "), "{said}");
}

#[test]
fn the_python_client_calls_every_tool_over_stdio() {
    python(&Place::new(), "stdio", "2026-07-28");
}

#[test]
fn the_python_client_of_the_older_protocol_calls_every_tool_over_stdio() {
    python(&Place::new(), "stdio", "legacy");
}

#[test]
fn the_python_client_calls_every_tool_over_http() {
    let place = Place::new();
    python(&place, "http", "auto");
}

#[test]
fn the_python_client_of_the_older_protocol_calls_every_tool_over_http() {
    python(&Place::new(), "http", "legacy");
}

#[test]
fn the_typescript_client_calls_every_tool_over_stdio() {
    node(&Place::new(), "stdio");
}

#[test]
fn the_typescript_client_calls_every_tool_over_http() {
    node(&Place::new(), "http");
}

#[test]
fn the_inspector_lists_and_calls() {
    let place = Place::new();
    let inspect = |target: &[&str], words: &[&str]| {
        let entry = installed("ZENO_TEST_NODE_MODULES").join(".bin/mcp-inspector");
        let mut command = Command::new("node");
        let said = place.client(command.arg(entry).arg("--cli").args(target).args(words));
        serde_json::from_str::<serde_json::Value>(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
    };
    let program = program();
    let bearer = format!("Authorization: Bearer {}", place.token);
    // It hands on nothing of its own environment.
    let home = format!("ZENO_HOME={}", place.home.path().display());
    let stdio = ["-e", &home, program.to_str().unwrap(), "mcp"];
    let http = [place.url.as_str(), "--header", &bearer];
    for target in [&stdio[..], &http[..]] {
        let listed = inspect(target, &["--method", "tools/list"]);
        assert!(listed["tools"].as_array().unwrap().len() > 15, "{listed}");
        let call =
            ["--method", "tools/call", "--tool-name", "sandbox_run", "--tool-arg", "command=echo hello"];
        let ran = inspect(target, &call);
        assert_eq!(ran["structuredContent"]["output"], "hello\n", "{ran}");
        let prompts = inspect(target, &["--method", "prompts/list"]);
        assert_eq!(prompts["prompts"][0]["name"], "work-safely", "{prompts}");
        let templates = inspect(target, &["--method", "resources/templates/list"]);
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 3, "{templates}");
    }
}

const PYTHON: &str = include_str!("every_tool.py");
const NODE: &str = include_str!("every_tool.mjs");
