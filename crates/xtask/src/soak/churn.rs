//! Two hundred sandboxes made and removed, with the daemon killed in the middle. Nothing is left.

use std::time::{Duration, Instant};

use super::SoakError;
use crate::process;
use crate::rig::traces::Traces;
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

    let after = settled(&stage, &before)?;
    println!("churn: before: {before}\nchurn: after: {after}");
    if is_clean(&before, &after) { Ok(()) } else { Err(SoakError::LeftBehind { before, after }) }
}

/// Processes that just ended stay zombies for a moment where nobody hurries to reap them.
pub(super) fn settled(stage: &Stage, before: &Traces) -> Result<Traces, SoakError> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let after = stage.traces()?;
        if is_clean(before, &after) || Instant::now() > deadline {
            return Ok(after);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}

/// Other processes of the machine come and go; two hundred sandboxes would show all the same. The disk may hold
/// more history, but not one sandbox's files.
pub(super) fn is_clean(before: &Traces, after: &Traces) -> bool {
    const SLACK_PROCESSES: usize = 20;
    const SLACK_BYTES: u64 = 8 << 20;
    after.mounts <= before.mounts
        && after.cgroups <= before.cgroups
        && after.processes <= before.processes + SLACK_PROCESSES
        && after.disk_bytes <= before.disk_bytes + SLACK_BYTES
}
