//! Two hundred sandboxes made and removed while the daemon is killed at random moments. None is lost, none is left.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::SoakError;
use crate::process::{self, ProcessError};
use crate::rig::{Rig, Stage, interrupt};

const COUNT: usize = 200;

pub(super) fn kills(rig: &Rig) -> Result<(), SoakError> {
    let (stage, folder) = Stage::with_repository(rig, 100)?;
    let before = stage.traces()?;

    let start = Instant::now();
    let over = AtomicBool::new(false);
    let (kept, killed) = thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            while !over.load(Ordering::Relaxed) {
                // Anywhere in the life of a create or destroy. The clock's last digits are as good as dice.
                let dice = start.elapsed().subsec_nanos() % 128;
                thread::sleep(Duration::from_millis(20 + u64::from(dice)));
                // Between two daemons there is none to kill.
                killed += usize::from(stage.zeno.crash().is_ok());
            }
            killed
        });
        let kept = churn(rig, stage.zeno.home(), &folder);
        over.store(true, Ordering::Relaxed);
        (kept, killer.join().expect("the killer does not panic"))
    });
    let kept = kept?;
    println!(
        "kills: {COUNT} sandboxes in {:.1?}, {killed} daemons killed, {} kept",
        start.elapsed(),
        kept.len()
    );

    for name in kept {
        process::quietly(zeno(rig, stage.zeno.home(), &folder).args(["exec", &name, "--", "true"]))?;
    }
    process::quietly(zeno(rig, stage.zeno.home(), &folder).args(["destroy", "--all", "--yes"]))?;
    let after = stage.settled(&before, COUNT)?;
    println!("kills: before: {before}\nkills: after: {after}");
    if after.is_clean_after(&before, COUNT) { Ok(()) } else { Err(SoakError::LeftBehind { before, after }) }
}

/// Makes them all and removes every other one. Calls may fail, for the daemon dies under them; what one of them
/// was told to be made must be there.
fn churn(rig: &Rig, home: &Path, folder: &Path) -> Result<Vec<String>, SoakError> {
    let mut kept = Vec::new();
    for at in 0..COUNT {
        interrupt::check()?;
        let name = format!("box{at}");
        if succeeds(zeno(rig, home, folder).args(["create", "--name", &name]))? {
            if at % 2 == 0 {
                kept.push(name);
            } else {
                succeeds(zeno(rig, home, folder).args(["destroy", &name]))?;
            }
        }
    }
    Ok(kept)
}

fn succeeds(command: &mut Command) -> Result<bool, ProcessError> {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(status.map_err(|source| ProcessError::start(command, source))?.success())
}

fn zeno(rig: &Rig, home: &Path, folder: &Path) -> Command {
    let mut command = Command::new(&rig.zeno);
    command.current_dir(folder).env("ZENO_HOME", home);
    command
}
