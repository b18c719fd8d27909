//! The report as aligned text.

use super::Report;
use super::report::{Contender, Row, Unit};

const HEAD: [&str; 6] = ["", "median", "95 % interval", "p99", "cpu", "zeno / it"];

pub(crate) fn table(report: &Report) -> String {
    let mut text = String::new();
    for row in &report.rows {
        text += &format!("\n{}: {}\n", row.name, row.title);
        text += &aligned(row);
        for bar in &row.bars {
            text += &format!("  * {}\n", bar.shown());
        }
        for note in &row.notes {
            text += &format!("  - {note}\n");
        }
    }
    for failure in &report.failures {
        text += &format!("\n{}: NOT MEASURED: {}\n", failure.row, failure.why);
    }
    text
}

fn aligned(row: &Row) -> String {
    let lines: Vec<[String; 6]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(row.contenders.iter().map(|contender| cells(contender, row.unit)))
        .collect();
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for cells in &lines {
        text += &format!("  {:<width$}", cells[0], width = width(0));
        for (column, cell) in cells.iter().enumerate().skip(1) {
            text += &format!("  {cell:>width$}", width = width(column));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A contender's cells: name, median, interval, p99, processor time, ratio.
pub(super) fn cells(contender: &Contender, unit: Unit) -> [String; 6] {
    match contender {
        Contender::Measured { label, wall, cpu, ratio } => [
            label.clone(),
            unit.show(wall.median.median),
            format!("{} .. {}", unit.show(wall.median.low), unit.show(wall.median.high)),
            unit.show(wall.p99),
            cpu.map_or(String::new(), |cpu| Unit::Seconds.show(cpu)),
            ratio.map_or(String::new(), |ratio| {
                format!("{:.2} ({:.2} .. {:.2})", ratio.median, ratio.low, ratio.high)
            }),
        ],
        Contender::Absent { label, why } => {
            [label.clone(), "absent".to_owned(), String::new(), String::new(), String::new(), shortened(why)]
        }
    }
}

fn shortened(why: &str) -> String {
    const MOST: usize = 72;
    if why.chars().count() <= MOST { why.to_owned() } else { why.chars().take(MOST).chain(['…']).collect() }
}
