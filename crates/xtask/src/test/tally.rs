//! The count over all runs, read from what the test runners print.

use super::TestError;

/// What every skipped test prints, through one helper, with the reason after it.
const SKIPPED: &str = "SKIPPED:";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: usize,
    pub(super) failed: usize,
    /// Reasons of tests that did not run.
    pub(super) skipped: Vec<String>,
    /// Runs that ended without saying what they did.
    pub(super) broken: Vec<String>,
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
    }

    pub(super) fn verdict(self, is_ci: bool) -> Result<(), TestError> {
        if self.failed > 0 || !self.broken.is_empty() {
            return Err(TestError::Failed { failed: self.failed, broken: self.broken });
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
    fn nothing_is_not_success() {
        assert!(matches!(read(&[]).verdict(false), Err(TestError::NothingRan)));
    }
}
