//! From nothing to the end of a first command: E2B's SDK beside the native API, both over loopback from one Python.

use std::path::Path;
use std::process::Command;

use super::client::Client;
use super::contenders;
use crate::bench::report::{Contender, Row, Unit};
use crate::bench::sample::{Lane, interleave};
use crate::bench::{Bench, BenchError};
use crate::packages::Consent;
use crate::process;
use crate::rig::Stage;
use crate::sdks::Sdks;

const NAME: &str = "sdk";
const CLIENT: &str = include_str!("sdk.py");
const ROUNDS: usize = 100;

pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let stage = Stage::new(&bench.rig)?;
    let row = |contenders, notes| Row {
        name: NAME.to_owned(),
        title: "create, first command: Python and E2B's SDK".to_owned(),
        unit: Unit::Seconds,
        contenders,
        // No number is asked for: what the SDK itself takes is not ours.
        bars: Vec::new(),
        notes,
    };
    let python = match Sdks::ensure(Consent::Given) {
        Ok(sdks) => sdks.python(),
        Err(error) => {
            let absent = Contender::Absent { label: "E2B's SDK".to_owned(), why: crate::chain(&error) };
            return Ok(vec![row(vec![absent], Vec::new())]);
        }
    };
    let mut client = Client::start(client(&stage, &python)?)?;
    for order in ["sdk", "native"] {
        client.measure(order)?;
    }
    let client = std::cell::RefCell::new(client);
    let mut lanes = [
        Lane::new("native API", || client.borrow_mut().measure("native")),
        Lane::new("E2B's SDK", || client.borrow_mut().measure("sdk")),
    ];
    let before = stage.zeno.cpu()?;
    let mut series = interleave(NAME, bench.effort.rounds(ROUNDS), &mut lanes)?;
    drop(lanes);
    let ours = series.remove(0).with_daemon_cpu(stage.zeno.cpu()?.since(&before));
    series.insert(0, ours);
    let notes = vec![
        "a sandbox of this machine with the network open, no workspace, and `bash -l -c true` in it; destroying it is not measured"
            .to_owned(),
        "one client in Python for both, over TCP on loopback; the client takes the time".to_owned(),
    ];
    Ok(vec![row(contenders(&series, &[]), notes)])
}

fn client(stage: &Stage, python: &Path) -> Result<Command, BenchError> {
    process::quietly(stage.zeno.command().args(["daemon", "--listen", "127.0.0.1:0"]))?;
    let exports = process::output(stage.zeno.command().args(["env", "e2b"]))?;
    let script = format!("{}\nexec \"$0\" -c \"$1\"", String::from_utf8_lossy(&exports));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(python).arg(CLIENT);
    Ok(command)
}
