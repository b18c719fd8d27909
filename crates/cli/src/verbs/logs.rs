//! `zeno logs`.

use server::line::{LogLine, Stream};

use crate::args::look::Logs;
use crate::failure::{DONE, Failure};
use crate::invocation::{Form, Invocation};
use crate::output::{self, Sink};

pub(crate) async fn logs(typed: &Logs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut lines = invocation.api().await?.logs(&typed.sandbox, typed.exec, typed.follow).await?;
    while let Some(mut line) = lines.next().await? {
        match invocation.form {
            Form::Json => {
                line.push(b'\n');
                output::pass_on(Sink::Stdout, &line).await?;
            }
            Form::People => {
                let line: LogLine = serde_json::from_slice(&line).map_err(Failure::Decode)?;
                let sink = match line.stream {
                    Stream::Stdout => Sink::Stdout,
                    Stream::Stderr => Sink::Stderr,
                };
                output::pass_on(sink, &line.output.to_bytes().map_err(Failure::LogBytes)?).await?;
            }
        }
    }
    Ok(DONE)
}
