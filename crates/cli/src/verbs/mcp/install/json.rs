//! JSON, with comments or not: all that is there stays as it is written.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::{Command, NAME, Unfit};

pub(super) fn with(
    text: &str,
    servers: &'static str,
    says_type: bool,
    command: &Command,
) -> Result<String, Unfit> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root = CstRootNode::parse(text, &OPTIONS).map_err(Unfit::Json)?;
    let whole = root.object_value().ok_or(Unfit::Shape { name: "the whole" })?;
    let servers = object_in(&whole, servers)?;
    let entry = entry(says_type, command);
    match servers.get(NAME) {
        Some(property) if property.value().and_then(|old| old.to_serde_value()) == Some(plain(&entry)) => {}
        Some(property) => property.set_value(entry),
        None => {
            servers.append(NAME, entry);
        }
    }
    Ok(root.to_string())
}

/// What clients agree on: comments, and commas at the end. Anything else is for a person to look at.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
};

/// The object of this name, made if there is nothing of it.
fn object_in(object: &CstObject, name: &'static str) -> Result<CstObject, Unfit> {
    object.object_value_or_create(name).ok_or(Unfit::Shape { name })
}

fn entry(says_type: bool, command: &Command) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let kind = says_type.then(|| ("type".to_owned(), text("stdio")));
    let arguments = Command::ARGUMENTS.iter().map(|argument| text(argument)).collect();
    let home = command
        .home
        .as_deref()
        .map(|home| ("env".to_owned(), CstInputValue::Object(vec![("ZENO_HOME".to_owned(), text(home))])));
    let fields = [
        kind,
        Some(("command".to_owned(), text(&command.program))),
        Some(("args".to_owned(), CstInputValue::Array(arguments))),
        home,
    ];
    CstInputValue::Object(fields.into_iter().flatten().collect())
}

fn plain(value: &CstInputValue) -> Value {
    match value {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(flag) => Value::Bool(*flag),
        CstInputValue::Number(text) | CstInputValue::String(text) => Value::String(text.clone()),
        CstInputValue::Array(values) => values.iter().map(plain).collect(),
        CstInputValue::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, home: Option<&str>) -> String {
        let command = Command { program: "zeno".to_owned(), home: home.map(str::to_owned) };
        with(text, "mcpServers", false, &command).unwrap()
    }

    #[test]
    fn a_file_of_its_own() {
        let expected = r#"{
  "mcpServers": {
    "zeno": {
      "command": "zeno",
      "args": ["mcp"],
      "env": {
        "ZENO_HOME": "/state"
      }
    }
  }
}
"#;
        assert_eq!(written("", Some("/state")), expected);
    }

    #[test]
    fn what_is_there_stays_as_it_is_written() {
        let text = "{\n\t// ours\n\t\"mcpServers\": {\n\t\t\"other\": { \"url\": \"x\" }, // keep\n\t},\n\t\"b\": 1, \"a\": 2\n}\n";
        let new = "\t\t\"zeno\": {\n\t\t\t\"command\": \"zeno\",\n\t\t\t\"args\": [\"mcp\"],\n\t\t},\n";
        assert_eq!(written(text, None), text.replace("// keep\n", &format!("// keep\n{new}")));
    }

    #[test]
    fn it_is_written_once() {
        let once = written("{\"mcpServers\": {\"zeno\": {\"command\": \"old\"}}}", None);
        assert!(!once.contains("old"), "{once}");
        assert_eq!(written(&once, None), once);
        let by_hand = "{\"mcpServers\":{\"zeno\":{\"args\":[\"mcp\"],\"command\":\"zeno\"}}}";
        assert_eq!(written(by_hand, None), by_hand);
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        let command = Command { program: "zeno".to_owned(), home: None };
        for text in ["{", "[]", "{\"mcpServers\": []}", "{a: 1}", "{\"mcpServers\": {\"zeno\": 1} \"b\": 2}"]
        {
            assert!(with(text, "mcpServers", false, &command).is_err(), "{text}");
        }
    }
}
