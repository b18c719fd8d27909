//! Markdown tables.

/// A table with these columns. A `|` inside a cell would end it and is escaped.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    grid(&head.map(str::to_owned), rows.into_iter().map(Vec::from))
}

/// The same, where the types say how many columns there are.
pub(super) fn grid(head: &[String], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = line(head);
    text += &line(&vec!["---".to_owned(); head.len()]);
    for row in rows {
        text += &line(&row);
    }
    text
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// The first line of every generated page.
pub(super) const NOTICE: &str = "<!-- Made by `cargo xtask generate`. Do not edit. -->\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_does_not_end_a_cell() {
        assert_eq!(
            table(["a", "b"], [["x|y".to_owned(), "z".to_owned()]]),
            "| a | b |\n| --- | --- |\n| x\\|y | z |\n"
        );
    }
}
