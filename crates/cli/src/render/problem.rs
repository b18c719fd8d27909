//! What went wrong: what failed, why, what to do next.

use model::Problem;

use super::paint::Paint;
use super::words::clean;

pub(crate) fn problem(problem: &Problem, paint: Paint) -> String {
    let mut text = format!("{} {}\n", paint.red("error:"), lines(&problem.detail));
    for cause in &problem.causes {
        text += &format!("  {} {}\n", paint.dim("because:"), lines(cause));
    }
    for hint in &problem.hints {
        text += &format!("  {} {}\n", paint.bold("try:"), clean(hint));
    }
    text
}

/// Some details hold a piece of a log; its lines stay lines.
fn lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n    ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use model::Code;

    use super::*;
    use crate::failure::Failure;

    #[test]
    fn what_failed_why_and_what_to_do() {
        let full = Problem {
            causes: vec!["the kernel answered EINVAL".to_owned(), "CONFIG_OVERLAY_FS is off".to_owned()],
            ..Problem::new(Code::MachineUnable, "cannot mount the view")
        };
        insta::assert_snapshot!(problem(&full.hint("zeno doctor"), Paint::Plain), @"
        error: cannot mount the view
          because: the kernel answered EINVAL
          because: CONFIG_OVERLAY_FS is off
          try: zeno doctor
        ");
    }

    #[test]
    fn a_log_keeps_its_lines() {
        let told = Problem::new(Code::Internal, "the daemon did not start; its log:\nfirst\x1b[2J\nsecond");
        insta::assert_snapshot!(problem(&told, Paint::Plain), @r"
        error: the daemon did not start; its log:
            first\u{1b}[2J
            second
        ");
    }

    #[test]
    fn a_failure_of_ours_shows_its_chain() {
        let failure =
            Failure::ReadHost { path: "notes\x07".into(), source: io::ErrorKind::PermissionDenied.into() };
        insta::assert_snapshot!(problem(&failure.problem(), Paint::Plain), @r"
        error: cannot read `notes\u{7}`
          because: permission denied
        ");
        insta::assert_snapshot!(problem(&Failure::Unconfirmed { sandboxes: 3 }.problem(), Paint::Plain), @"
        error: this would remove 3 sandboxes, and nobody is there to confirm it
          try: zeno destroy --all --yes
        ");
    }
}
