//! A thousand live sandboxes: the measurement of `bench --full`, for its figures alone.

use super::SoakError;
use crate::bench::rows::idle;
use crate::rig::Rig;

pub(super) fn crowd(rig: &Rig) -> Result<(), SoakError> {
    for row in idle::live(rig)? {
        row.bars.iter().for_each(|bar| println!("crowd: {}", bar.shown()));
        row.notes.iter().for_each(|note| println!("crowd: {note}"));
        if let Some(missed) = row.bars.iter().find(|bar| bar.missed_by_percent.is_some()) {
            return Err(SoakError::Missed { bar: missed.shown() });
        }
    }
    Ok(())
}
