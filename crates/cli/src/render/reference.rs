//! The reference of the command line, in Markdown, made from the definition itself.

use std::fmt::Write;

use clap::{Arg, Command};

/// Every verb with its arguments, in the order of `zeno --help`.
pub(crate) fn reference(mut root: Command) -> String {
    root.build();
    let mut text = format!("# The `zeno` command\n\n{}\n", about(&root));
    text += "\nEvery verb takes `--json`: the answer, and an error, as JSON. `zeno VERB --help` shows the same as here.\n";
    verbs(&root, "zeno", 2, &mut text);
    text
}

fn verbs(parent: &Command, path: &str, level: usize, text: &mut String) {
    let seen = parent.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    for verb in seen {
        let path = format!("{path} {}", verb.get_name());
        write!(text, "\n{} `{path}`\n\n{}\n", "#".repeat(level), about(verb)).expect(STRING);
        let usage = verb.clone().render_usage().to_string();
        write!(text, "\n```\n{}\n```\n", usage.trim_start_matches("Usage: ").trim()).expect(STRING);
        let aliases: Vec<String> = verb.get_visible_aliases().map(|alias| format!("`{alias}`")).collect();
        if !aliases.is_empty() {
            writeln!(text, "\nAlso: {}.", aliases.join(", ")).expect(STRING);
        }
        arguments(verb, text);
        if let Some(examples) = verb.get_after_long_help() {
            let examples = examples.to_string();
            let lines: Vec<&str> = examples.lines().skip(1).map(str::trim).collect();
            write!(text, "\n```sh\n{}\n```\n", lines.join("\n")).expect(STRING);
        }
        verbs(verb, &path, level + 1, text);
    }
}

fn arguments(verb: &Command, text: &mut String) {
    let told: Vec<&Arg> = verb
        .get_arguments()
        .filter(|argument| {
            !argument.is_hide_set() && !argument.is_global_set() && argument.get_id() != "help"
        })
        .collect();
    if told.is_empty() {
        return;
    }
    text.push_str("\n| argument | meaning |\n|---|---|\n");
    for argument in told {
        let meaning = argument.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(text, "| {} | {}{} |", form(argument), meaning.replace('|', "\\|"), choices(argument))
            .expect(STRING);
    }
}

fn form(argument: &Arg) -> String {
    let value = argument
        .get_value_names()
        .map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let value = value.filter(|_| argument.get_action().takes_values());
    let flags: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    match (flags.is_empty(), value) {
        (true, value) => format!("`{}`", value.unwrap_or_default()),
        (false, Some(value)) => format!("`{} {value}`", flags.join("`, `")),
        (false, None) => format!("`{}`", flags.join("`, `")),
    }
}

fn choices(argument: &Arg) -> String {
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let names: Vec<String> =
        argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

fn about(command: &Command) -> String {
    command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string).unwrap_or_default()
}

const STRING: &str = "writing to a string cannot fail";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_verb_that_is_shown_has_its_part() {
        let text = reference(Cli::command());
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(text.contains(&format!("\n## `zeno {}`\n", verb.get_name())), "{}", verb.get_name());
        }
        assert!(!text.contains("`zeno reference`"));
    }

    #[test]
    fn one_part() {
        let text = reference(Cli::command());
        let part = text.split("\n## ").find(|part| part.starts_with("`zeno extend`")).unwrap();
        insta::assert_snapshot!(part, @"
        `zeno extend`

        Give a sandbox a new lifetime, counted from now

        ```
        zeno extend [OPTIONS] --ttl <TIME> <SANDBOX>
        ```

        | argument | meaning |
        |---|---|
        | `SANDBOX` | Id or name |
        | `--ttl TIME` | How long it may live from now |

        ```sh
        zeno extend web --ttl 2h
        ```
        ");
    }
}
