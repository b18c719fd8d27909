//! The count over all runs, read from what the test runners print.

use super::TestError;

/// What every skipped test prints, through one helper, with the reason after it.
const SKIPPED: &str = "SKIPPED:";
/// Of the message of one panic.
const REASON_LINES: usize = 12;
/// Tests that may fail once and pass when they are asked again, over all runs. The machines that run the suite are shared and
/// noisy; more than this is not noise.
const UNSTEADY: usize = 3;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Reasons of tests that did not run.
    pub(super) skipped: Vec<String>,
    /// Runs that ended without saying what they did.
    pub(super) broken: Vec<String>,
    /// Tests that failed and passed when they were asked again: told at the end, because each hides a race of ours or its own.
    pub(super) unsteady: Vec<String>,
    /// Names of the tests that failed in the present run of libtest.
    failing: Vec<String>,
    /// Why tests failed, to be told again at the end, where a log that is cut still shows it.
    pub(super) reasons: Vec<String>,
    telling: Telling,
}

/// Where in a runner's output the lines are.
#[derive(Debug, Default, PartialEq, Eq)]
enum Telling {
    #[default]
    Running,
    /// What failed is being shown.
    Failures,
    /// The message of a panic is being shown, with so many lines left to keep.
    Panic(usize),
}

impl Tally {
    pub(super) fn skip(&mut self, reason: &str) {
        println!("{SKIPPED} {reason}");
        self.skipped.push(reason.to_owned());
    }

    /// Takes in one line of output of libtest or nextest.
    pub(super) fn read(&mut self, line: &str) {
        if let Some((_, reason)) = line.split_once(SKIPPED) {
            self.skipped.push(reason.trim().to_owned());
        }
        let is_libtest = line.starts_with("test result:");
        let is_nextest = line.trim_start().starts_with("Summary [");
        if is_libtest || is_nextest {
            self.passed += number_before(line, "passed");
            self.failed += number_before(line, "failed");
        }
        if is_nextest {
            self.failed += number_before(line, "timed out");
        }
        if let Some(name) = libtest_failure(line) {
            self.failing.push(name.to_owned());
        }
        if let Some(name) = nextest_unsteady(line)
            && !self.unsteady.iter().any(|known| known == name)
        {
            self.unsteady.push(name.to_owned());
        }
        self.keep_reason(line);
    }

    /// Nextest shows failures after its summary, libtest before its result.
    fn keep_reason(&mut self, line: &str) {
        let text = line.trim();
        if text.starts_with("test result:") {
            self.telling = Telling::Running;
        }
        self.telling = match self.telling {
            Telling::Running if text.starts_with("Summary [") || text == "failures:" => Telling::Failures,
            Telling::Running => Telling::Running,
            Telling::Failures | Telling::Panic(_) if text.contains(" panicked at ") => {
                self.reasons.push(text.to_owned());
                Telling::Panic(REASON_LINES)
            }
            Telling::Panic(0) => Telling::Failures,
            Telling::Panic(_) if text.starts_with("note: run with `RUST_BACKTRACE") => Telling::Failures,
            Telling::Panic(left) => {
                self.reasons.push(format!("  {text}"));
                Telling::Panic(left - 1)
            }
            Telling::Failures => Telling::Failures,
        };
    }

    /// The runner has ended, and whatever comes next is another's.
    pub(super) fn end_run(&mut self) {
        self.telling = Telling::Running;
    }

    /// The tests that failed since this was asked last.
    pub(super) fn take_failing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.failing)
    }

    /// A test that failed has been asked again, alone.
    pub(super) fn asked_again(&mut self, name: &str, again: &Self) {
        if again.passed == 1 && again.failed == 0 {
            self.passed += 1;
            self.failed -= 1;
            self.unsteady.push(name.to_owned());
        }
    }

    pub(super) fn verdict(self, is_ci: bool) -> Result<(), TestError> {
        if self.failed > 0 || !self.broken.is_empty() {
            return Err(TestError::Failed { failed: self.failed, broken: self.broken });
        }
        if self.unsteady.len() > UNSTEADY {
            return Err(TestError::Unsteady { unsteady: self.unsteady });
        }
        if self.passed == 0 {
            return Err(TestError::NothingRan);
        }
        if is_ci && !self.skipped.is_empty() {
            return Err(TestError::Skipped { skipped: self.skipped });
        }
        Ok(())
    }
}

/// The name in `test a::b ... FAILED`.
fn libtest_failure(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

/// The name at the end of `FLAKY 2/2 [   0.003s] (1/9) cli::real a::b`.
fn nextest_unsteady(line: &str) -> Option<&str> {
    line.trim().strip_prefix("FLAKY ")?.split_whitespace().next_back()
}

/// The number in front of a word: `ok. 12 passed; 1 failed`.
fn number_before(line: &str, word: &str) -> usize {
    let head = line.split_once(word).map_or("", |(head, _)| head);
    head.split_whitespace().next_back().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        tally.end_run();
        tally
    }

    #[test]
    fn both_runners_are_counted() {
        let tally = read(&[
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.01s\n",
            "     Summary [   0.011s] 7 tests run: 5 passed, 1 failed, 1 timed out, 0 skipped\n",
            "running 12 tests\n",
        ]);
        assert_eq!(tally, Tally { passed: 8, failed: 3, ..Tally::default() });
    }

    #[test]
    fn a_skipped_test_fails_in_ci_only() {
        let lines = ["SKIPPED: no cgroups\n", "test result: ok. 1 passed; 0 failed;\n"];
        assert!(read(&lines).verdict(false).is_ok());
        assert!(
            matches!(read(&lines).verdict(true), Err(TestError::Skipped { skipped }) if skipped == ["no cgroups"])
        );
    }

    #[test]
    fn why_a_test_failed_is_told_again() {
        let tally = read(&[
            "thread 'one' panicked at a.rs:1:2:\n",
            "  in a test that passed\n",
            "failures:\n",
            "---- two stdout ----\n",
            "thread 'two' (7) panicked at b.rs:3:4:\n",
            "left is not right\n",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
            "failures:\n",
            "    two\n",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored;\n",
            "thread 'three' panicked at c.rs:5:6:\n",
        ]);
        assert_eq!(tally.reasons, ["thread 'two' (7) panicked at b.rs:3:4:", "  left is not right"]);
    }

    #[test]
    fn a_test_that_passes_when_asked_again_is_told_and_few_may() {
        let failed = "test a::b ... FAILED\n";
        let mut tally = read(&[failed, "test result: FAILED. 3 passed; 1 failed; 0 ignored;\n"]);
        assert_eq!(tally.take_failing(), ["a::b"]);
        tally.asked_again("a::b", &read(&[failed, "test result: FAILED. 0 passed; 1 failed; 0 ignored;\n"]));
        assert_eq!((tally.passed, tally.failed, tally.unsteady.len()), (3, 1, 0));
        tally.asked_again("a::b", &read(&["test result: ok. 1 passed; 0 failed; 0 ignored;\n"]));
        assert_eq!((tally.passed, tally.failed), (4, 0));
        tally.read("       FLAKY 2/2 [   0.003s] (1/9) cli::real c::d\n");
        tally.read("       FLAKY 2/2 [   0.003s] (1/9) cli::real c::d\n");
        assert_eq!(tally.unsteady, ["a::b", "c::d"]);
        tally.unsteady.extend(["e".to_owned(), "f".to_owned()]);
        assert!(matches!(tally.verdict(false), Err(TestError::Unsteady { .. })));
    }

    #[test]
    fn nothing_is_not_success() {
        assert!(matches!(read(&[]).verdict(false), Err(TestError::NothingRan)));
    }
}
