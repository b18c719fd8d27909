//! docs/lifecycle.md: the states of a sandbox and the moves between them.

use model::State;

use super::table::{NOTICE, table};

pub(super) fn page() -> String {
    let rows = State::ALL.map(|state| {
        let next: Vec<String> = state.next().iter().map(|next| format!("`{next}`")).collect();
        let next = if next.is_empty() { "nothing: this is the end".to_owned() } else { next.join(", ") };
        [format!("`{state}`"), meaning(state), next]
    });
    let mut text = format!("{NOTICE}# The life of a sandbox\n\n");
    text += "Every change of state goes through this table and writes one event. Whatever is not here is refused.\n\n";
    text += &table(["state", "meaning", "may become"], rows);
    text += "\n```mermaid\nstateDiagram-v2\n    [*] --> requested\n";
    for state in State::ALL {
        for next in state.next() {
            text += &format!("    {state} --> {next}\n");
        }
    }
    text += "    destroyed --> [*]\n```\n";
    text
}

/// The state's own doc comment, through its schema.
fn meaning(state: State) -> String {
    let schema = schemars::schema_for!(State).to_value();
    let variants = schema["oneOf"].as_array().expect("an enum with doc comments is a oneOf");
    let variant = variants.iter().find(|variant| variant["const"] == state.as_str());
    variant
        .and_then(|variant| variant["description"].as_str())
        .expect("every state says what it means")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_its_meaning_and_every_move_its_arrow() {
        let page = page();
        assert!(page.contains(
            "| `requested` | Asked for; nothing exists yet. | `provisioning`, `failed`, `destroying` |"
        ));
        let arrows = page.lines().filter(|line| line.contains(" --> ") && !line.contains("[*]")).count();
        assert_eq!(arrows, State::ALL.iter().map(|state| state.next().len()).sum::<usize>());
    }
}
