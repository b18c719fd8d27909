//! TOML: all that is there stays as it is written.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::{Command, NAME, Unfit};

pub(super) fn with(text: &str, command: &Command) -> Result<String, Unfit> {
    let mut document: DocumentMut = text.parse().map_err(Unfit::Toml)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        // Without a heading of its own, as people write it.
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or(Unfit::Shape { name: SERVERS })?;
    let entry = servers.entry(NAME).or_insert_with(|| Item::Table(Table::new()));
    let entry = entry.as_table_like_mut().ok_or(Unfit::Shape { name: NAME })?;
    set(entry, "command", value(command.program.as_str()));
    set(entry, "args", value(Command::ARGUMENTS.into_iter().collect::<Array>()));
    if let Some(home) = &command.home {
        let env = entry.entry("env").or_insert_with(|| value(toml_edit::InlineTable::new()));
        let env = env.as_table_like_mut().ok_or(Unfit::Shape { name: "env" })?;
        set(env, "ZENO_HOME", value(home.as_str()));
    }
    Ok(document.to_string())
}

/// What is the same already stays as it is written.
fn set(table: &mut dyn TableLike, name: &str, new: Item) {
    let is_same = table.get(name).is_some_and(|old| plain(old) == plain(&new));
    if !is_same {
        table.insert(name, new);
    }
}

/// Without the space around it.
fn plain(item: &Item) -> String {
    let mut item = item.clone();
    if let Some(value) = item.as_value_mut() {
        value.decor_mut().clear();
        if let Some(array) = value.as_array_mut() {
            array.fmt();
        }
    }
    item.to_string()
}

const SERVERS: &str = "mcp_servers";

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, home: Option<&str>) -> String {
        let command = Command { program: "zeno".to_owned(), home: home.map(str::to_owned) };
        with(text, &command).unwrap()
    }

    #[test]
    fn a_file_of_its_own() {
        let expected =
            "[mcp_servers.zeno]\ncommand = \"zeno\"\nargs = [\"mcp\"]\nenv = { ZENO_HOME = \"/state\" }\n";
        assert_eq!(written("", Some("/state")), expected);
    }

    #[test]
    fn what_is_there_stays_as_it_is_written() {
        let text = "model = 'o9'   # mine\n\n[mcp_servers.other]\nurl = \"x\" # keep\n\n[profiles.a]\nb=1\n";
        let new = "# keep\n\n[mcp_servers.zeno]\ncommand = \"zeno\"\nargs = [\"mcp\"]\n";
        assert_eq!(written(text, None), text.replace("# keep\n", new));
    }

    #[test]
    fn it_is_written_once() {
        let text =
            "[mcp_servers.zeno]\ncommand = \"old\"\nargs = [ \"mcp\" ] # by hand\nstartup_timeout_sec = 20\n";
        let once = written(text, None);
        assert_eq!(once, text.replace("old", "zeno"));
        assert_eq!(written(&once, None), once);
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        let command = Command { program: "zeno".to_owned(), home: None };
        for text in ["[", "mcp_servers = 1", "mcp_servers.zeno = 1", "a = 1\na = 2"] {
            assert!(with(text, &command).is_err(), "{text}");
        }
    }
}
