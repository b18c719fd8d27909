//! A thousand times: write a file, and at once read it in a new sandbox. The new text is there every time.

use std::time::Instant;

use super::SoakError;
use crate::files;
use crate::process;
use crate::rig::{Rig, Stage, interrupt};

const ROUNDS: usize = 1000;

pub(super) fn freshness(rig: &Rig) -> Result<(), SoakError> {
    let (stage, repository) = Stage::with_repository(rig, 1000)?;
    let start = Instant::now();
    for round in 0..ROUNDS {
        interrupt::check()?;
        // Same length every time, so that size alone never tells.
        let written = format!("{round:08}");
        files::write(&repository.join("part0000/file000.txt"), &written)?;
        let seen = process::line(&mut stage.zeno.run(&repository, &["cat", "part0000/file000.txt"]))?;
        if seen != written {
            return Err(SoakError::Stale { round, seen, written });
        }
    }
    let each = start.elapsed() / u32::try_from(ROUNDS).expect("a small number");
    println!("freshness: {ROUNDS} writes seen at once, {each:.1?} per write and run");
    Ok(())
}
