//! A row as aligned text.

use super::Failure;
use super::report::{Contender, Row, Unit};

const HEAD: [&str; 6] = ["", "median", "95 % interval", "p99", "cpu", "zeno / it"];

pub(crate) fn table(row: &Row) -> String {
    let mut text = format!("\n{}: {}\n", row.name, row.title);
    text += &aligned(row);
    for bar in &row.bars {
        text += &format!("  * {}\n", bar.shown());
    }
    for note in &row.notes {
        text += &format!("  - {note}\n");
    }
    text
}

pub(crate) fn failed(failure: &Failure) -> String {
    format!("\n{}: NOT MEASURED: {}\n", failure.row, failure.why)
}

fn aligned(row: &Row) -> String {
    let lines: Vec<[String; 6]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(row.contenders.iter().filter_map(|contender| cells(contender, row.unit)))
        .collect();
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for cells in &lines {
        let mut line = format!("  {:<width$}", cells[0], width = width(0));
        for (column, cell) in cells.iter().enumerate().skip(1) {
            line += &format!("  {cell:>width$}", width = width(column));
        }
        text += line.trim_end();
        text.push('\n');
    }
    for contender in &row.contenders {
        if let Contender::Absent { label, why } = contender {
            text += &format!("  {label}: absent ({why})\n");
        }
    }
    text
}

/// A contender's cells: name, median, interval, p99, processor time, ratio. One that is absent has none.
pub(super) fn cells(contender: &Contender, unit: Unit) -> Option<[String; 6]> {
    let Contender::Measured { label, wall, cpu, ratio } = contender else { return None };
    Some([
        label.clone(),
        unit.show(wall.median.median),
        format!("{} .. {}", unit.show(wall.median.low), unit.show(wall.median.high)),
        unit.show(wall.p99),
        cpu.map_or(String::new(), |cpu| Unit::Seconds.show(cpu)),
        ratio.map_or(String::new(), |ratio| {
            format!("{:.2} ({:.2} .. {:.2})", ratio.median, ratio.low, ratio.high)
        }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::stats::{Estimate, Summary};

    #[test]
    fn columns_line_up_and_who_is_absent_is_said() {
        let measured = |label: &str, seconds: f64, ratio: Option<f64>| {
            let around = |median: f64| Estimate { median, low: median * 0.9, high: median * 1.1 };
            let wall = Summary { count: 20, median: around(seconds), mean: seconds, p99: seconds * 2.0 };
            Contender::Measured { label: label.to_owned(), wall, cpu: Some(0.001), ratio: ratio.map(around) }
        };
        let absent = Contender::Absent { label: "podman run".to_owned(), why: "not installed".to_owned() };
        let row = Row {
            name: "throwaway".to_owned(),
            title: "create and destroy".to_owned(),
            unit: Unit::Seconds,
            contenders: vec![measured("zeno run", 0.004, None), measured("bwrap", 0.2, Some(0.02)), absent],
            bars: Vec::new(),
            notes: Vec::new(),
        };
        insta::assert_snapshot!(aligned(&row));
    }
}
