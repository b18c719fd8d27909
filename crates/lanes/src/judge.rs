//! From how a check's command ended to what that means.

use model::config::{Check, Pattern};
use model::exec::Outcome;
use model::verdict::{Judgement, Reason};

use crate::command::Ran;

/// What one run of a check says.
pub(crate) type Said = (Judgement, Option<Reason>);

pub(crate) fn judge(check: &Check, ran: &Ran) -> Said {
    let expected = &check.expects.exit.0;
    let is_expected = |code: i32| u8::try_from(code).is_ok_and(|code| expected.contains(&code));
    match &ran.exit {
        Outcome::Exited { code } | Outcome::NotStarted { code, .. } if is_expected(*code) => {
            output(check, ran)
        }
        // What a shell says of a program that it cannot find or run: nothing was found out.
        Outcome::Exited { code: code @ (126 | 127) } => {
            let why = if *code == 127 { "a program was not found" } else { "a program cannot be executed" };
            not_run(format!("{why} (exit code {code})"))
        }
        Outcome::Exited { .. } | Outcome::Signaled { .. } => {
            (Judgement::Fail, Some(Reason::Exit { expected: expected.clone() }))
        }
        Outcome::TimedOut => (Judgement::Inconclusive, Some(Reason::TimedOut)),
        Outcome::OutOfMemory { .. } => (Judgement::Inconclusive, Some(Reason::OutOfMemory)),
        Outcome::OutputLimit => not_run("it wrote more than it may".to_owned()),
        Outcome::NotStarted { reason, .. } | Outcome::SandboxEnded { reason } => not_run(reason.clone()),
    }
}

/// Nothing was found out.
pub(crate) fn not_run(why: String) -> Said {
    (Judgement::Inconclusive, Some(Reason::NotRun { why }))
}

fn output(check: &Check, ran: &Ran) -> Said {
    let expects = &check.expects;
    let streams = [
        ("standard output", &expects.stdout, &ran.written.stdout),
        ("standard error", &expects.stderr, &ran.written.stderr),
    ];
    for (stream, pattern, text) in streams {
        if let Some(missing) = missing(pattern, text) {
            let missing = format!("{missing} on {stream}");
            return (Judgement::Fail, Some(Reason::Output { missing }));
        }
    }
    (Judgement::Pass, None)
}

fn missing(pattern: &Pattern, text: &[u8]) -> Option<String> {
    if let Some(wanted) = &pattern.contains {
        let wanted_bytes = wanted.as_bytes();
        let found =
            wanted_bytes.is_empty() || text.windows(wanted_bytes.len()).any(|window| window == wanted_bytes);
        if !found {
            return Some(format!("`{wanted}` does not stand"));
        }
    }
    let wanted = pattern.matches.as_ref()?;
    // The file was read, so it is a regular expression.
    let found = regex::bytes::Regex::new(wanted).is_ok_and(|wanted| wanted.is_match(text));
    (!found).then(|| format!("nothing matches `{wanted}`"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::config::{ExitCodes, Expects};

    use super::*;
    use crate::log::Written;

    fn ran(exit: Outcome, stdout: &str) -> Ran {
        let written = Written { stdout: stdout.as_bytes().to_vec(), ..Written::default() };
        Ran { exit, duration: Duration::ZERO, written }
    }

    #[track_caller]
    fn says(expects: Expects, exit: Outcome, stdout: &str, judgement: Judgement) {
        let check = Check { expects, ..Check::new("a".parse().unwrap(), "x") };
        let said = judge(&check, &ran(exit, stdout));
        assert_eq!((said.0, said.1.is_none()), (judgement, judgement == Judgement::Pass), "{said:?}");
    }

    #[test]
    fn how_it_ended_and_what_that_means() {
        use Judgement::{Fail, Inconclusive, Pass};
        let exited = |code| Outcome::Exited { code };
        let plain = Expects::default;
        says(plain(), exited(0), "", Pass);
        says(plain(), exited(1), "", Fail);
        says(plain(), Outcome::Signaled { signal: 11 }, "", Fail);
        says(plain(), exited(127), "", Inconclusive);
        says(plain(), exited(126), "", Inconclusive);
        says(plain(), Outcome::TimedOut, "", Inconclusive);
        says(plain(), Outcome::OutputLimit, "", Inconclusive);
        says(plain(), Outcome::SandboxEnded { reason: String::new() }, "", Inconclusive);
        says(plain(), Outcome::NotStarted { code: 127, reason: String::new() }, "", Inconclusive);
        let memory = Outcome::OutOfMemory { code: 137, limit: model::units::Size(1) };
        says(plain(), memory, "", Inconclusive);
        let codes = |codes: &[u8]| Expects { exit: ExitCodes(codes.to_vec()), ..Expects::default() };
        says(codes(&[3, 127]), exited(127), "", Pass);
        says(codes(&[3]), exited(0), "", Fail);
    }

    #[test]
    fn what_it_wrote_counts_where_something_is_expected() {
        use Judgement::{Fail, Pass};
        let expects = |contains: &str, matches: &str| Expects {
            stdout: Pattern { contains: Some(contains.into()), matches: Some(matches.into()) },
            ..Expects::default()
        };
        says(expects("ok", r"(?m)^\d+ tests$"), Outcome::Exited { code: 0 }, "ok\n12 tests\n", Pass);
        says(expects("ok", r"^\d+ tests$"), Outcome::Exited { code: 0 }, "ok\n12 tests\n", Fail);
        says(expects("no", "."), Outcome::Exited { code: 0 }, "ok", Fail);
        says(expects("", ""), Outcome::Exited { code: 0 }, "", Pass);
    }
}
