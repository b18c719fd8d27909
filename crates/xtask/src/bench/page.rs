//! docs/bench/README.md: the figures for a reader, with how they came about.

use super::report::Contender;
use super::table::cells;
use super::{Apart, Effort, Measured, Report};

pub(crate) fn page(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = String::from("<!-- Made by `cargo xtask bench`. Do not edit. -->\n# Figures\n\n");
    text += "![Medians beside peers](chart.svg)\n\n";
    text += &format!(
        "Measured on {} as {}: {}, {} cores, {} memory, kernel {}, {} disk, load {} at the start.\n\n",
        machine.date,
        machine.user,
        machine.processor,
        machine.cores,
        machine.memory,
        machine.kernel,
        machine.disk,
        machine.load
    );
    text += &versions(report);
    text += METHOD;
    if report.effort != Effort::Full {
        text += "\nThe rows of `--full` were not part of this run.\n";
    }
    if !report.skipped.is_empty() {
        text += &format!("\nNot part of this run: {}.\n", report.skipped.join(", "));
    }
    report.rows.iter().for_each(|row| text += &section(row));
    if !report.failures.is_empty() {
        text += "\n## Not measured\n\n";
    }
    for failure in &report.failures {
        text += &format!("- `{}`: {}\n", failure.row, failure.why);
    }
    text
}

const METHOD: &str = "
`cargo xtask bench` runs zeno and its peers in turn, round by round, each round beginning with another one. A figure is
the median of its rounds with the interval that holds the true median with 95 % (order statistics). `zeno / it` is the
median of the ratios within rounds, so that what slowed both drops out. Times are what a caller waits, start of the
client process included. `cpu` is processor time: the started processes and, for zeno, its daemon, launcher and the inits
that are still there at the end; what the kernel spends on taking an init down is in nobody's time.
All figures are in [figures.json](figures.json).
";

fn versions(report: &Report) -> String {
    let shown = |version: &super::machine::Version| match &version.version {
        Some(text) => format!("{} ({text})", version.program),
        None => format!("{} (absent)", version.program),
    };
    format!("Versions: {}.\n", report.machine.versions.iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn section(Measured { row, apart }: &Measured) -> String {
    let mut text = format!("\n## {}\n\n", row.title);
    if let Some(Apart { date, commit, load }) = apart {
        text += &format!(
            "Measured apart from the rest: on {date}, at commit {commit}, load {load} at the start.\n\n"
        );
    }
    text += "| | median | 95 % interval | p99 | cpu | zeno / it |\n";
    text += "| --- | ---: | ---: | ---: | ---: | ---: |\n";
    for [name, rest @ ..] in row.contenders.iter().filter_map(|contender| cells(contender, row.unit)) {
        text += &format!("| {name} | {} |\n", rest.join(" | "));
    }
    text.push('\n');
    for bar in &row.bars {
        text += &format!("- {}\n", bar.shown());
    }
    for contender in &row.contenders {
        if let Contender::Absent { label, why } = contender {
            text += &format!("- {label}: absent on this machine ({why})\n");
        }
    }
    for note in &row.notes {
        text += &format!("- {note}\n");
    }
    text
}
