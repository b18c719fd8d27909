//! `zeno verify` and `zeno verdicts`.

use jiff::Timestamp;
use model::verdict::{CheckResult, Excluded, Judgement, Verdict};

use super::paint::Paint;
use super::table::table;
use super::words::{age, clean, count, took};

/// The whole of it: every check, and the last words of those that did not pass.
pub(crate) fn verdict(verdict: &Verdict, paint: Paint) -> String {
    let rows: Vec<_> = verdict.checks.iter().map(row).collect();
    let mut text = table(["CHECK", "OUTCOME", "TIME", "WHY"], &rows, paint);
    for result in &verdict.checks {
        text += &last_words(result, paint);
    }
    let of = sandbox(verdict);
    let passed = verdict.checks.iter().filter(|check| check.outcome == Judgement::Pass).count();
    let checks = count(verdict.checks.len() as u64, "check", "checks");
    text += &format!(
        "\n{}: {of}, {passed} of {checks} passed in {}\n",
        judged(verdict.outcome, paint),
        took(verdict.duration_ms)
    );
    text += &paint.dim(&format!("state {}, sealed as {}", verdict.digest.short(), verdict.snapshot));
    text.push('\n');
    let unread = verdict.excluded.iter().filter(|excluded| matches!(excluded, Excluded::Unread { .. }));
    for excluded in unread {
        text += &format!("caveat: the digest does not cover {}\n", clean(&excluded.to_string()));
    }
    for caveat in &verdict.caveats {
        text += &format!("caveat: {}\n", clean(&caveat.text));
    }
    text
}

/// One check, as soon as it has ended.
pub(crate) fn line(result: &CheckResult, paint: Paint) -> String {
    let time = took(time(result));
    let line = format!("{} {} ({time}) {}", judged(result.outcome, paint), result.name, why(result));
    line.trim_end().to_owned()
}

pub(crate) fn list(verdicts: &[Verdict], now: Timestamp, paint: Paint) -> String {
    let rows: Vec<[String; 6]> = verdicts
        .iter()
        .map(|verdict| {
            let passed = verdict.checks.iter().filter(|check| check.outcome == Judgement::Pass).count();
            [
                verdict.id.to_string(),
                verdict.outcome.to_string(),
                sandbox(verdict),
                verdict.digest.short(),
                format!("{passed}/{}", verdict.checks.len()),
                age(verdict.created, now),
            ]
        })
        .collect();
    table(["VERDICT", "OUTCOME", "SANDBOX", "STATE", "PASSED", "AGE"], &rows, paint)
}

/// The word, in its colour.
pub(crate) fn judged(judgement: Judgement, paint: Paint) -> String {
    match judgement {
        Judgement::Pass => paint.green(judgement.as_str()),
        Judgement::Fail => paint.red(judgement.as_str()),
        Judgement::Inconclusive => paint.yellow(judgement.as_str()),
    }
}

fn row(result: &CheckResult) -> [String; 4] {
    let time = if result.runs.is_empty() { "-".to_owned() } else { took(time(result)) };
    [result.name.to_string(), result.outcome.to_string(), time, why(result)]
}

fn why(result: &CheckResult) -> String {
    result.why().map(|why| clean(&why).into_owned()).unwrap_or_default()
}

fn time(result: &CheckResult) -> u64 {
    result.runs.iter().map(|run| run.duration_ms).sum()
}

fn last_words(result: &CheckResult, paint: Paint) -> String {
    if result.tail.is_empty() {
        return String::new();
    }
    let log = result.runs.first().and_then(|run| run.log.as_ref());
    let log = log.map(|log| format!(" ({})", clean(&log.display()))).unwrap_or_default();
    let mut text = format!("\n{}\n", paint.dim(&format!("last words of {}{log}", result.name)));
    for line in &result.tail {
        text += &format!("  {}\n", clean(line));
    }
    text
}

fn sandbox(verdict: &Verdict) -> String {
    verdict.sandbox_name.as_ref().map_or_else(|| verdict.sandbox.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::samples;

    #[test]
    fn every_check_and_the_last_words_of_those_that_did_not_pass() {
        insta::assert_snapshot!(verdict(&samples::verdict(), Paint::Plain), @"
        CHECK  OUTCOME       TIME   WHY
        build  pass          1.2s
        unit   fail          640ms  exit code 1, expected exit code 0
        lint   inconclusive  -      `unit`, which it needs, did not pass

        last words of unit (/home/ada/.zeno/verdicts/x/unit.log)
          test \\u{1b}[31madds ... FAILED

        fail: web, 1 of 3 checks passed in 2m5s
        state 070707070707, sealed as snaaaaaaaaaaaa
        caveat: the digest does not cover /root/x (it may not be read)
        caveat: the sandbox changed zeno.yaml
        ");
    }

    #[test]
    fn a_list_and_a_line() {
        let verdict = samples::verdict();
        insta::assert_snapshot!(list(std::slice::from_ref(&verdict), samples::now(), Paint::Plain), @"
        VERDICT         OUTCOME  SANDBOX  STATE         PASSED  AGE
        vdaaaaaaaaaaaa  fail     web      070707070707  1/3     3m
        ");
        insta::assert_snapshot!(line(&verdict.checks[1], Paint::Plain), @"fail unit (640ms) exit code 1, expected exit code 0");
    }
}
