//! What live sandboxes cost that do nothing: each has answered a command and written a file.

use crate::bench::report::{Bar, Contender, Row, Unit};
use crate::bench::sample::progress;
use crate::bench::stats::Summary;
use crate::bench::{Bench, BenchError};
use crate::rig::{Rig, Stage, proc, zeno};

const NAME: &str = "idle";
pub(crate) const LIVE: usize = 1000;
const MEBIBYTE: f64 = 1_048_576.0;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    live(&bench.rig)
}

pub(crate) fn live(rig: &Rig) -> Result<Vec<Row>, BenchError> {
    let (stage, repository) = Stage::with_repository(rig, 1000)?;
    let before = stage.traces()?;

    let mut connection = stage.zeno.connect()?;
    let mut sandboxes = Vec::with_capacity(LIVE);
    for at in 0..LIVE {
        progress(&format!("{NAME}: {} of {LIVE} sandboxes", at + 1));
        let sandbox = zeno::create(&mut connection, &repository)?;
        zeno::exec(&mut connection, &sandbox, &["sh", "-c", "echo $$ > written"])?;
        sandboxes.push(sandbox);
    }
    progress("");
    let during = stage.traces()?;
    let processes = proc::tree(stage.zeno.daemon()?)?;
    let total: u64 = processes.iter().map(|pid| proc::pss(*pid)).sum::<Result<_, _>>()?;
    // All of them, after all were made: the last does not answer for the first.
    for sandbox in &sandboxes {
        zeno::exec(&mut connection, sandbox, &["test", "-s", "written"])?;
    }
    for sandbox in &sandboxes {
        zeno::destroy(&mut connection, sandbox)?;
    }
    let after = stage.settled(&before, LIVE)?;
    let is_clean = after.is_clean_after(&before, LIVE);

    let each = total as f64 / LIVE as f64;
    let label = format!("PSS of {} processes, per sandbox", processes.len());
    let ours = Contender::Measured { label, wall: Summary::of(&[each]), cpu: None, ratio: None };
    Ok(vec![Row {
        name: NAME.to_owned(),
        title: format!("{LIVE} live sandboxes, daemon, launcher and inits included"),
        unit: Unit::Bytes,
        contenders: vec![ours],
        bars: vec![
            Bar::at_most("at most 1 MiB each", 1.0, each / MEBIBYTE),
            Bar::at_most(
                "nothing is left afterwards but what the daemon remembers",
                0.0,
                f64::from(u8::from(!is_clean)),
            ),
        ],
        notes: vec![format!("before: {before}"), format!("during: {during}"), format!("after: {after}")],
    }])
}
