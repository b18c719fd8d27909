//! What agents read of the tools, and whether it is true.

use std::collections::BTreeSet;
use std::fmt::Write;

use rmcp::model::Tool;
use serde_json::Value;

use super::tools::LIST;

/// Name, annotations, description and arguments, as a reader sees them.
fn shown(tool: &Tool) -> String {
    let hints = tool.annotations.as_ref().unwrap();
    let words = [
        (hints.read_only_hint, "read-only"),
        (hints.destructive_hint, "destructive"),
        (hints.idempotent_hint, "idempotent"),
        (hints.open_world_hint, "open world"),
    ];
    let words: Vec<_> = words.into_iter().filter(|(is, _)| is.unwrap()).map(|(_, word)| word).collect();
    let mut text =
        format!("## {}  [{}]\n{}\n", tool.name, words.join(", "), tool.description.as_ref().unwrap());
    let required: BTreeSet<_> = strings(tool.input_schema.get("required")).collect();
    for (name, schema) in tool.input_schema["properties"].as_object().unwrap() {
        let must = if required.contains(name.as_str()) { " (required)" } else { "" };
        let about = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
        writeln!(text, "- {name}{must}: {about}").unwrap();
    }
    text
}

fn strings(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

#[test]
fn what_agents_read() {
    let all: Vec<_> = LIST.iter().map(shown).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_programs_read() {
    let schemas: Vec<_> = LIST.iter().map(|tool| (&tool.name, &tool.input_schema)).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&schemas).unwrap());
}

#[test]
fn schemas_are_in_one_piece_and_take_nothing_else() {
    for tool in LIST.iter() {
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        let text = schema.to_string();
        for foreign in ["$ref", "$defs", "uint", "\"title\""] {
            assert!(!text.contains(foreign), "{}: {text}", tool.name);
        }
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
    }
}

#[test]
fn annotations_do_not_contradict_themselves() {
    for tool in LIST.iter() {
        let hints = tool.annotations.as_ref().unwrap();
        assert!(hints.title.is_some(), "{}", tool.name);
        if hints.read_only_hint == Some(true) {
            assert_eq!(hints.destructive_hint, Some(false), "{}", tool.name);
            assert_eq!(hints.idempotent_hint, Some(true), "{}", tool.name);
        }
    }
    let with = |is: fn(&Tool) -> bool| -> Vec<_> {
        LIST.iter().filter(|tool| is(tool)).map(|tool| tool.name.to_string()).collect()
    };
    let read_only = with(|tool| tool.annotations.as_ref().unwrap().read_only_hint == Some(true));
    let expected = [
        "network_requests",
        "sandbox_diff",
        "sandbox_files",
        "sandbox_list",
        "sandbox_output",
        "sandbox_read",
        "sandbox_status",
    ];
    assert_eq!(read_only, expected);
    let destructive = with(|tool| tool.annotations.as_ref().unwrap().destructive_hint == Some(true));
    let expected = [
        "sandbox_destroy",
        "sandbox_edit",
        "sandbox_exec",
        "sandbox_promote",
        "sandbox_race",
        "sandbox_rollback",
        "sandbox_run",
        "sandbox_verify",
        "sandbox_write",
    ];
    assert_eq!(destructive, expected);
}

#[test]
fn the_order_is_always_the_same() {
    let names: Vec<_> = LIST.iter().map(|tool| tool.name.as_ref()).collect();
    assert!(names.is_sorted(), "{names:?}");
}
