//! Asking a person who sits at a terminal.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::invocation::Form;
use crate::output;

/// Is there somebody to ask?
pub(crate) fn is_possible(form: Form) -> bool {
    form == Form::People && io::stdin().is_terminal()
}

/// What a person says to a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Without the space around it.
    Line(String),
    /// There is nobody any more.
    End,
    /// Ctrl-C.
    Interrupted,
}

pub(crate) async fn ask(question: &str) -> Result<Reply, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::Signals)?;
    output::note(question);
    let (tell, told) = oneshot::channel();
    // A thread of its own: a read that nobody answers must not keep zeno from ending.
    std::thread::spawn(move || {
        let mut line = String::new();
        let read =
            io::stdin().read_line(&mut line).map(|length| (length > 0).then(|| line.trim().to_owned()));
        // Who was interrupted does not wait for it.
        tell.send(read).unwrap_or_default();
    });
    let reply = tokio::select! {
        line = told => match line {
            Ok(read) => read.map_err(Failure::Confirm)?.map_or(Reply::End, Reply::Line),
            Err(_gone) => Reply::End,
        },
        _ = interrupt.recv() => Reply::Interrupted,
    };
    if !matches!(reply, Reply::Line(_)) {
        output::note("\n");
    }
    Ok(reply)
}

/// Yes, and nothing but yes, is yes.
pub(crate) async fn agrees(question: &str) -> Result<bool, Failure> {
    let reply = ask(&format!("{question} [y/N] ")).await?;
    Ok(matches!(reply, Reply::Line(line) if matches!(line.as_str(), "y" | "Y" | "yes")))
}
