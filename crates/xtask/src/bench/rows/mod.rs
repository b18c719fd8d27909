//! The rows: one file each, one table of them all.

mod burst;
mod capture;
mod exec;
pub(crate) mod idle;
mod throwaway;
mod work;

use super::report::{Contender, Row, Series};
use super::{Bench, BenchError, Effort};

pub(crate) struct Definition {
    pub(crate) name: &'static str,
    /// The least effort with which it is measured.
    effort: Effort,
    pub(crate) measure: fn(&Bench) -> Result<Vec<Row>, BenchError>,
}

const ROWS: &[Definition] = &[
    Definition { name: "throwaway", effort: Effort::Quick, measure: throwaway::measure },
    Definition { name: "burst", effort: Effort::Quick, measure: burst::measure },
    Definition { name: "capture", effort: Effort::Quick, measure: capture::measure },
    Definition { name: "exec", effort: Effort::Quick, measure: exec::measure },
    Definition { name: "work", effort: Effort::Quick, measure: work::measure },
    Definition { name: "idle", effort: Effort::Full, measure: idle::measure },
];

/// The rows asked for by name, else all that this effort covers.
pub(crate) fn choose(names: &[String], effort: Effort) -> Result<Vec<&'static Definition>, BenchError> {
    if names.is_empty() {
        return Ok(ROWS.iter().filter(|row| row.effort <= effort).collect());
    }
    let find = |name: &String| {
        ROWS.iter().find(|row| row.name == name).ok_or_else(|| BenchError::NoSuchRow {
            name: name.clone(),
            all: ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", "),
        })
    };
    names.iter().map(find).collect()
}

/// Ours first, then the others with ours divided by theirs, then who is not here.
fn contenders(series: &[Series], absent: &[Contender]) -> Vec<Contender> {
    let (ours, theirs) = series.split_first().expect("ours is always measured");
    std::iter::once(ours.ours())
        .chain(theirs.iter().map(|series| series.against(ours)))
        .chain(absent.iter().cloned())
        .collect()
}
