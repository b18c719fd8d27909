//! Lines of settings: `key = value`, in the few spellings that package managers use.

/// Of INI, TOML and shell-like files: keys as they stand before the `=`, values without quotes. What goes on over several lines
/// belongs to the last key. Tables are not told apart, so keys have to say enough by themselves.
pub(super) fn pairs(text: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        match key_and_value(trimmed) {
            Some((key, value)) => pairs.push((key.to_owned(), unquoted(value))),
            // A table, and with it the end of what went on.
            None if trimmed.starts_with('[') && trimmed.ends_with(']') => {
                pairs.push((String::new(), String::new()));
            }
            None => {
                if let Some((_, value)) = pairs.last_mut() {
                    value.push(' ');
                    value.push_str(&unquoted(trimmed));
                }
            }
        }
    }
    pairs.retain(|(key, _)| !key.is_empty());
    pairs
}

/// A `=` within an address is none of ours.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim().trim_matches(['"', '\'']);
    let is_of_key = |c: char| {
        c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@' | '/' | '"' | '\'' | '[' | ']')
    };
    (!key.is_empty() && !key.contains("://") && key.chars().all(is_of_key)).then_some((key, value.trim()))
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_of_every_spelling() {
        let text = "# no\n[global]\nindex-url = https://a.example/x?y=z\nextra-index-url =\n  https://b.example\n\
                    \thttps://c.example?d=e\n\n[source.'x']\nregistry = \"sparse+https://d.example/\"\n\
                    @scope:registry=https://e.example\nlist = [\n\"https://f.example\",\n]\n";
        let expected = [
            ("index-url", "https://a.example/x?y=z"),
            ("extra-index-url", " https://b.example https://c.example?d=e"),
            ("registry", "sparse+https://d.example/"),
            ("@scope:registry", "https://e.example"),
            ("list", "[ https://f.example\", ]"),
        ];
        let expected: Vec<(String, String)> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(pairs(text), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(\\PC|\n|=|\\[)*") {
            assert!(pairs(&text).len() <= text.len());
        }
    }
}
