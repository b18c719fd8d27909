//! Runaways for minutes: a fork bomb, a memory bomb, a disk filler, a log flood. The host and the daemon do not notice.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::SoakError;
use crate::bench::sample::timed;
use crate::process::ProcessError;
use crate::rig::{Rig, Stage, zeno};

const LASTS: Duration = Duration::from_secs(60);
/// Starting a process takes a millisecond; past this a person at the keyboard notices.
const NOTICED: Duration = Duration::from_millis(500);

struct Bomb {
    name: &'static str,
    /// What it runs into.
    limits: &'static [&'static str],
    script: &'static str,
}

const BOMBS: &[Bomb] = &[
    Bomb {
        name: "fork bomb",
        limits: &["--pids", "256"],
        script: "while :; do (while :; do :; done) & done 2>/dev/null",
    },
    Bomb {
        name: "memory bomb",
        limits: &["--memory", "256MiB"],
        script: "while :; do tail /dev/zero; done 2>/dev/null",
    },
    Bomb {
        name: "disk filler",
        limits: &["--disk", "512MiB"],
        script: "while :; do head -c 64M /dev/zero >> filled || sleep 1; done 2>/dev/null",
    },
    Bomb { name: "log flood", limits: &[], script: "yes" },
];

pub(super) fn bombs(rig: &Rig) -> Result<(), SoakError> {
    let (stage, repository) = Stage::with_repository(rig, 100)?;
    for bomb in BOMBS {
        let worst = explode(&stage, bomb, &repository)?;
        println!("bombs: {}: worst start of a process on the host {worst:.1?}", bomb.name);
        if worst > NOTICED {
            return Err(SoakError::HostNoticed { bomb: bomb.name, millis: worst.as_millis() });
        }
    }
    Ok(())
}

/// Lets it run and watches the host meanwhile; returns the longest wait for a plain process.
fn explode(stage: &Stage, bomb: &Bomb, repository: &std::path::Path) -> Result<Duration, SoakError> {
    let mut command = stage.zeno.run_with(repository, bomb.limits, &["sh", "-c", bomb.script]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut client = command.spawn().map_err(|source| ProcessError::start(&command, source))?;
    let mut worst = Duration::ZERO;
    let end = Instant::now() + LASTS;
    while Instant::now() < end {
        worst = worst.max(timed(&mut Command::new("true"))?.wall);
        // A pace of measurement, not a wait for anything.
        std::thread::sleep(Duration::from_millis(100));
    }
    client.kill().map_err(|source| ProcessError::wait(&command, source))?;
    let status = client.wait().map_err(|source| ProcessError::wait(&command, source))?;
    // Refused, or never started: then nothing was tried. A bomb that its limits ended is as good as one we ended; a shell that
    // cannot fork any more ends with 2.
    if matches!(status.code(), Some(4 | 7 | 125..=127)) {
        return Err(SoakError::NotRun { bomb: bomb.name, status });
    }
    let gone = |source| SoakError::DaemonGone { bomb: bomb.name, source };
    let mut connection = stage.zeno.connect().map_err(gone)?;
    for sandbox in zeno::list(&mut connection).map_err(gone)? {
        zeno::destroy(&mut connection, &sandbox).map_err(gone)?;
    }
    Ok(worst)
}
