//! The tools, one group to a file, and what clients are told of them.

mod create;
mod diff;
mod edit;
mod exec;
mod files;
mod history;
mod judge;
mod look;
mod network;
mod promote;
mod race;
mod run;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use model::exec::{Text, Variable};
use model::{Problem, Sandbox};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::Mcp;

pub(super) static ROUTER: LazyLock<ToolRouter<Mcp>> = LazyLock::new(|| {
    Mcp::create_tools()
        + Mcp::look_tools()
        + Mcp::run_tools()
        + Mcp::exec_tools()
        + Mcp::file_tools()
        + Mcp::edit_tools()
        + Mcp::diff_tools()
        + Mcp::history_tools()
        + Mcp::judge_tools()
        + Mcp::race_tools()
        + Mcp::promote_tools()
        + Mcp::network_tools()
});

/// By name, so that every client reads the same, every time.
pub(super) static LIST: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let mut tools = ROUTER.list_all();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
});

/// What a tool's arguments are. In one piece, and without what only programs in Rust ask about: models read it.
fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    let Value::Object(mut object) = schema else { unreachable!("arguments are an object") };
    for noise in ["$schema", "title", "description"] {
        object.remove(noise);
    }
    Arc::new(object)
}

fn plain(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.retain(|name, value| match name.as_str() {
                "format" | "minimum" => value.is_object(),
                "default" => value.is_object() && value.get("type").is_some(),
                _ => true,
            });
            object.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A line as people type it, for the shell.
fn shell(line: &str) -> Vec<Text> {
    ["sh", "-c", line].map(Text::from).to_vec()
}

fn variables(env: &std::collections::BTreeMap<String, String>) -> Vec<Variable> {
    env.iter()
        .map(|(name, value)| Variable { name: name.as_str().into(), value: value.as_str().into() })
        .collect()
}

/// A path inside a sandbox; one that is relative is meant from where its commands start.
fn inside(sandbox: &Sandbox, path: &str) -> Text {
    Path::new(sandbox.cwd.as_os_str()).join(path).into()
}

/// A caveat or more, a line each.
fn caveats(caveats: &[model::Caveat]) -> String {
    caveats.iter().map(|caveat| format!("note: {}\n", caveat.text)).collect()
}

/// Whom a sandbox is called by.
fn label(sandbox: &Sandbox) -> String {
    match &sandbox.name {
        Some(name) => format!("{} ({name})", sandbox.id),
        None => sandbox.id.to_string(),
    }
}

impl Mcp {
    async fn sandbox(&self, which: &str) -> Result<Sandbox, Problem> {
        self.app.control.get(which).await
    }
}
