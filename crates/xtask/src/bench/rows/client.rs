//! A program that does what it is told and says how long that took, so that its own start counts nowhere.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::bench::BenchError;
use crate::bench::sample::Sample;
use crate::process::ProcessError;
use crate::rig::{RigError, interrupt};

#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Client {
    pub(super) fn start(mut command: Command) -> Result<Self, BenchError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|source| ProcessError::start(&command, source))?;
        let orders = child.stdin.take().expect("piped above");
        let answers = BufReader::new(child.stdout.take().expect("piped above"));
        Ok(Self { child, orders, answers })
    }

    pub(super) fn measure(&mut self, order: &str) -> Result<Sample, BenchError> {
        interrupt::check()?;
        self.orders.write_all(format!("{order}\n").as_bytes()).map_err(RigError::Talk)?;
        let mut told = String::new();
        self.answers.read_line(&mut told).map_err(RigError::Talk)?;
        let seconds: f64 = told.trim().parse().map_err(|_error| BenchError::Times { told: told.clone() })?;
        Ok(Sample { wall: Duration::from_secs_f64(seconds), cpu: Duration::ZERO })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // At the end of its orders it ends; whoever hangs is ended.
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("a client of the benchmark is left behind: {error}");
        }
    }
}
