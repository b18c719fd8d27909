//! A command's frames as they are shown: bytes as they are, or lines of JSON.

use model::exec::{Exec, Outcome};
use model::{Sandbox, Snapshot};
use serde::Serialize;
use server::line::{Line, Output};

use crate::failure::Failure;
use crate::invocation::Form;
use crate::output::{self, Sink};

pub(super) struct Streaming {
    form: Form,
    stdout: Tail,
    stderr: Tail,
}

impl Streaming {
    pub(super) fn new(form: Form) -> Self {
        Self { form, stdout: Tail::default(), stderr: Tail::default() }
    }

    pub(super) fn sandbox(&self, sandbox: &Sandbox) -> Result<(), Failure> {
        self.line(&Line::Sandbox { sandbox: Box::new(sandbox.clone()) })
    }

    pub(super) fn started(&self, exec: Exec) -> Result<(), Failure> {
        self.line(&Line::Started { exec })
    }

    pub(super) async fn stdout(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.form {
            Form::People => output::pass_on(Sink::Stdout, bytes).await,
            Form::Json => {
                let whole = self.stdout.push(bytes);
                self.output(Line::Stdout, &whole)
            }
        }
    }

    pub(super) async fn stderr(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self.form {
            Form::People => output::pass_on(Sink::Stderr, bytes).await,
            Form::Json => {
                let whole = self.stderr.push(bytes);
                self.output(Line::Stderr, &whole)
            }
        }
    }

    pub(super) fn ended(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        self.output(Line::Stdout, &stdout)?;
        self.output(Line::Stderr, &stderr)?;
        self.line(&Line::Ended { outcome: outcome.clone() })
    }

    pub(super) fn removed(&self, snapshot: Option<Box<Snapshot>>) -> Result<(), Failure> {
        if let (Some(snapshot), Form::People) = (&snapshot, self.form) {
            let id = snapshot.id;
            output::note(&format!(
                "zeno: what it wrote is kept: zeno restore {id}, zeno snapshots rm {id}\n"
            ));
        }
        self.line(&Line::Removed { snapshot })
    }

    fn output(&self, line: fn(Output) -> Line, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() { Ok(()) } else { self.line(&line(Output::of(bytes))) }
    }

    fn line(&self, line: &impl Serialize) -> Result<(), Failure> {
        match self.form {
            Form::People => Ok(()),
            Form::Json => output::answer(&(serde_json::to_string(line).map_err(Failure::Encode)? + "\n")),
        }
    }
}

/// The beginning of a character whose end has not come yet. Without it, text that was cut between two
/// frames would look like binary.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    /// What can be shown now, with what was held back before.
    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut whole = std::mem::take(&mut self.0);
        whole.extend_from_slice(bytes);
        if let Err(error) = std::str::from_utf8(&whole)
            && error.error_len().is_none()
        {
            self.0 = whole.split_off(error.valid_up_to());
        }
        whole
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_cut_in_two_stays_text_and_nothing_is_lost() {
        let mut tail = Tail::default();
        assert_eq!(tail.push(b"a\xc3"), b"a");
        assert_eq!(tail.push(b"\xbcb"), "üb".as_bytes());
        assert_eq!(tail.push(b"\xff\xc3"), b"\xff\xc3");
        assert_eq!(tail.push(b"\xe2\x82"), b"");
        assert_eq!(tail.take(), b"\xe2\x82");
    }
}
