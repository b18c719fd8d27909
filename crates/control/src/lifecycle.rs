//! The published table of states and moves, made from the type.

use model::State;

/// The table for the docs, as markdown.
#[must_use]
pub fn lifecycle_markdown() -> String {
    let schema = schemars::schema_for!(State);
    let variants = schema.get("oneOf").and_then(|variants| variants.as_array());
    let meaning = |state: State| {
        let variant = variants?.iter().find(|variant| variant["const"] == state.as_str())?;
        variant["description"].as_str()
    };
    let mut table = "| state | means | can become |\n|---|---|---|\n".to_owned();
    for state in State::ALL {
        let next: Vec<_> = state.next().iter().map(|next| format!("`{next}`")).collect();
        let next = if next.is_empty() { "nothing".to_owned() } else { next.join(", ") };
        let meaning = meaning(state).expect("every state has a doc comment; a test looks");
        table += &format!("| `{state}` | {meaning} | {next} |\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_every_move_is_in_the_table() {
        let table = lifecycle_markdown();
        assert_eq!(table.lines().count(), State::ALL.len() + 2);
        assert!(table.contains(
            "| `requested` | Asked for; nothing exists yet. | `provisioning`, `failed`, `destroying` |\n"
        ));
        assert!(table.ends_with("| nothing |\n"));
    }
}
