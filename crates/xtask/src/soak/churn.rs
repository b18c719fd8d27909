//! Two hundred sandboxes made and removed, with the daemon killed in the middle. Nothing is left.

use std::time::Instant;

use super::SoakError;
use crate::process;
use crate::rig::{Rig, Stage, zeno};

const COUNT: usize = 200;

pub(super) fn churn(rig: &Rig) -> Result<(), SoakError> {
    let (stage, repository) = Stage::with_repository(rig, 1000)?;
    let before = stage.traces()?;

    let start = Instant::now();
    let mut connection = stage.zeno.connect()?;
    let mut survivor = None;
    for at in 0..COUNT {
        let sandbox = zeno::create(&mut connection, &repository)?;
        zeno::exec(&mut connection, &sandbox, &["sh", "-c", "echo x > written"])?;
        if at == COUNT / 2 {
            stage.zeno.crash()?;
            // Any command starts the next daemon, which must find the sandbox again.
            process::quietly(&mut stage.zeno.run(&repository, &["true"]))?;
            connection = stage.zeno.connect()?;
            zeno::exec(&mut connection, &sandbox, &["test", "-s", "written"])?;
            survivor = Some(sandbox);
        } else {
            zeno::destroy(&mut connection, &sandbox)?;
        }
    }
    let sandbox = survivor.expect("one lived through the crash");
    zeno::destroy(&mut connection, &sandbox)?;
    let each = start.elapsed() / u32::try_from(COUNT).expect("a small number");
    println!("churn: {COUNT} sandboxes, {each:.1?} each, one daemon killed");

    let after = stage.settled(&before, COUNT)?;
    println!("churn: before: {before}\nchurn: after: {after}");
    if after.is_clean_after(&before, COUNT) { Ok(()) } else { Err(SoakError::LeftBehind { before, after }) }
}
