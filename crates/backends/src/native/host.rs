//! What this machine can do for sandboxes.

use std::path::Path;

use engine::capture::Live;
use engine::launcher::{LauncherError, Rights};
use engine::machine::{Kernel, Machine};
use model::Problem;
use model::doctor::{Finding, Report};

use super::problem::NativeError;
use super::{Inner, Native};

/// What `zeno doctor` shows where no backend could be opened. Asks the kernel anew.
#[must_use]
pub fn doctor(home: &Path) -> Report {
    engine::machine::report(&engine::machine::probe(home), home)
}

impl Native {
    /// What `zeno doctor` shows. Asked of the kernel once, when the backend was opened.
    #[must_use]
    pub fn doctor(&self) -> Report {
        engine::machine::report(&self.0.machine, &self.0.home)
    }
}

impl Inner {
    /// A sandbox that could not be made, as a problem: the kernel's word says little, so the machine is asked what it lacks.
    pub(super) fn explain(&self, error: NativeError) -> Problem {
        let is_machines = matches!(error, NativeError::Launch(LauncherError::Launch(_)));
        let problem = Problem::from(error);
        if is_machines { explained(problem, &doctor(&self.home)) } else { problem }
    }
}

/// With what mends each thing that is missing, before the hints that it has.
fn explained(mut problem: Problem, report: &Report) -> Problem {
    problem.hints.splice(..0, lacks(report));
    problem
}

/// A launcher that could not start, with what the machine lacks if that is known.
pub(super) fn not_started(source: LauncherError, machine: &Machine, home: &Path) -> NativeError {
    let lacks = lacks(&engine::machine::report(machine, home));
    if lacks.is_empty() { source.into() } else { NativeError::Lacking { lacks, source } }
}

/// Everything without which no sandbox can be made, with what mends it.
fn lacks(report: &Report) -> Vec<String> {
    let missing = report.checks.iter().filter(|check| check.verdict == Finding::Missing);
    missing.map(|check| format!("{} ({}): {}", check.name, check.found, check.remedy)).collect()
}

/// What holds elsewhere does not hold on a kernel that lets a program out.
pub(super) fn refuse_flawed(kernel: &Kernel) -> Result<(), NativeError> {
    let flaws: Vec<&str> = kernel.flaws().map(|flaw| flaw.cve).collect();
    if flaws.is_empty() {
        return Ok(());
    }
    Err(NativeError::FlawedKernel { release: kernel.release.clone(), flaws: flaws.join(", ") })
}

/// How folders that git ignores are shown: in place where this user's overlays can do that.
pub(super) fn way_of_showing(rights: Rights, data_only_stubs: bool) -> Live {
    match rights {
        Rights::Root => Live::Redirect,
        Rights::User { .. } if data_only_stubs => Live::Stubs,
        Rights::User { .. } => Live::Copy,
    }
}

#[cfg(test)]
mod tests {
    use model::Code;
    use model::doctor::Check;

    use super::*;

    #[test]
    fn a_kernel_with_a_known_way_out_is_refused_with_what_to_do() {
        let kernel = |release: &str, exact| Kernel {
            release: release.to_owned(),
            major: 6,
            minor: 1,
            exact: Some(exact),
            ubuntu: None,
        };
        let problem = Problem::from(refuse_flawed(&kernel("6.1.0-3-amd64", (6, 1, 8))).unwrap_err());
        let expected = Problem::new(
            Code::MachineUnable,
            "with the kernel 6.1.0-3-amd64 a program in a sandbox could become root (CVE-2023-0386)",
        );
        assert_eq!(problem, expected.hint("update the kernel and reboot"));
        // The first that is mended.
        assert!(refuse_flawed(&kernel("6.1.0-4-amd64", (6, 1, 9))).is_ok());
        // And the one that the tests run on, where they make sandboxes.
        let home = tempfile::tempdir().unwrap();
        assert!(refuse_flawed(&engine::machine::probe(home.path()).kernel).is_ok());
    }

    #[test]
    fn an_ordinary_user_without_stubs_has_copies() {
        let user = Rights::User { uid: 1000, gid: 1000 };
        assert_eq!(way_of_showing(user, false), Live::Copy);
        assert_eq!(way_of_showing(user, true), Live::Stubs);
        assert_eq!([false, true].map(|stubs| way_of_showing(Rights::Root, stubs)), [Live::Redirect; 2]);
    }

    #[test]
    fn what_mends_the_machine_comes_first() {
        let check = |name: &str, verdict, remedy: &str| Check {
            name: name.to_owned(),
            verdict,
            found: "found".to_owned(),
            cost: String::new(),
            remedy: remedy.to_owned(),
        };
        let checks = vec![
            check("kernel", Finding::Good, ""),
            check("overlay", Finding::Missing, "load it"),
            check("reflink", Finding::Less, "another disk"),
        ];
        let problem = Problem::new(Code::MachineUnable, "no").hint("zeno doctor");
        let explained = explained(problem, &Report { usable: false, checks });
        assert_eq!(explained.hints, ["overlay (found): load it", "zeno doctor"]);
    }
}
