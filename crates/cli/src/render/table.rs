//! Columns, aligned by spaces.

use super::paint::Paint;

/// A table under a dim header; the last column is as long as it likes.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: &[[String; N]], paint: Paint) -> String {
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    });
    let mut text = paint.dim(&line(&header.map(str::to_owned), &widths)) + "\n";
    for row in rows {
        text += &line(row, &widths);
        text.push('\n');
    }
    text
}

fn line<const N: usize>(cells: &[String; N], widths: &[usize; N]) -> String {
    let padded: Vec<String> =
        cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
    padded.join("  ").trim_end().to_owned()
}
