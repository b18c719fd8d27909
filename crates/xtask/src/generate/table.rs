//! Markdown tables.

/// A table with these columns. A `|` inside a cell would end it and is escaped.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut text = line(head.map(str::to_owned));
    text += &line(head.map(|_| "---".to_owned()));
    for row in rows {
        text += &line(row);
    }
    text
}

fn line<const N: usize>(cells: [String; N]) -> String {
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "))
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
