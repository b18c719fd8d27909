//! A thousand times: write a file, and at once read it in a new sandbox. The new text is there every time.

use std::time::Instant;

use super::SoakError;
use crate::bench::sample::timed;
use crate::bench::{Bench, Stage};
use crate::files;
use crate::process;

const ROUNDS: usize = 1000;

pub(super) fn freshness(bench: &Bench) -> Result<(), SoakError> {
    let stage = Stage::new(bench)?;
    let repository = stage.repository("repository", 1000)?;
    timed(&mut stage.zeno.run(&repository, &["true"]))?;
    let start = Instant::now();
    for round in 0..ROUNDS {
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
