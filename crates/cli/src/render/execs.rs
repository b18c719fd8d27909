//! `zeno execs`.

use model::exec::{Exec, Outcome, Text};

use super::paint::Paint;
use super::table::table;
use super::words::clean;

pub(crate) fn execs(execs: &[Exec], paint: Paint) -> String {
    let rows: Vec<[String; 4]> = execs
        .iter()
        .map(|exec| {
            let state = exec.outcome.as_ref().map_or_else(|| "running".to_owned(), outcome);
            [exec.id.to_string(), exec.pid.to_string(), state, command(&exec.argv)]
        })
        .collect();
    table(["EXEC", "PID", "STATE", "COMMAND"], &rows, paint)
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exited { code } => format!("exited {code}"),
        Outcome::Signaled { signal } => format!("signal {signal}"),
        Outcome::TimedOut => "timed out".to_owned(),
        Outcome::OutputLimit => "output limit".to_owned(),
        Outcome::OutOfMemory { .. } => "out of memory".to_owned(),
        Outcome::NotStarted { code, .. } => format!("not started {code}"),
        Outcome::SandboxEnded { .. } => "sandbox ended".to_owned(),
    }
}

/// As it could be typed again.
fn command(argv: &[Text]) -> String {
    let words = argv.iter().map(|word| {
        let shown = clean(&word.display()).into_owned();
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@+%".contains(c);
        if !shown.is_empty() && shown.chars().all(is_plain) {
            shown
        } else {
            format!("'{}'", shown.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use model::ExecId;

    use super::*;

    #[test]
    fn commands_and_their_ends() {
        let exec = |id, argv: &[&str], outcome| Exec {
            id: ExecId(id),
            argv: argv.iter().map(|word| Text::from(*word)).collect(),
            pid: 40 + id as i32,
            tty: false,
            outcome,
        };
        let shown = execs(
            &[
                exec(1, &["npm", "start"], None),
                exec(2, &["sh", "-c", "echo 'hi'; exit 3"], Some(Outcome::Exited { code: 3 })),
                exec(3, &["printf", "\x1b[2J"], Some(Outcome::Signaled { signal: 9 })),
                exec(4, &["sleep", "9"], Some(Outcome::TimedOut)),
            ],
            Paint::Plain,
        );
        insta::assert_snapshot!(shown, @r"
        EXEC  PID  STATE      COMMAND
        1     41   running    npm start
        2     42   exited 3   sh -c 'echo '\''hi'\''; exit 3'
        3     43   signal 9   printf '\u{1b}[2J'
        4     44   timed out  sleep 9
        ");
    }
}
