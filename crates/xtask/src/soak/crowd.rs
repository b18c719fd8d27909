//! A thousand live sandboxes: the measurement of `bench --full`, for its figures alone.

use super::SoakError;
use crate::bench::Bench;
use crate::bench::rows::idle;

pub(super) fn crowd(bench: &Bench) -> Result<(), SoakError> {
    for row in idle::measure(bench)? {
        row.bars.iter().for_each(|bar| println!("crowd: {}", bar.shown()));
        row.notes.iter().for_each(|note| println!("crowd: {note}"));
    }
    Ok(())
}
