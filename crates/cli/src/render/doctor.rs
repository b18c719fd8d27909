//! `zeno doctor`.

use model::doctor::{Check, Finding, Report};

use super::paint::Paint;

pub(crate) fn doctor(report: &Report, paint: Paint) -> String {
    let width = report.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text: String = report.checks.iter().map(|check| line(check, width, paint)).collect();
    let missing = report.checks.iter().filter(|check| check.verdict == Finding::Missing).count();
    text += "\n";
    text += &match (report.usable, missing) {
        (true, _) => "Sandboxes can be made on this machine.\n".to_owned(),
        (false, 0) => "No sandbox can be made on this machine.\n".to_owned(),
        (false, missing) => format!("No sandbox can be made on this machine: {missing} missing above.\n"),
    };
    text
}

fn line(check: &Check, width: usize, paint: Paint) -> String {
    let verdict = match check.verdict {
        Finding::Good => paint.green("good   "),
        Finding::Less => paint.yellow("less   "),
        Finding::Missing => paint.red("missing"),
    };
    let mut text = format!("{verdict}  {:width$}  {}", check.name, check.found).trim_end().to_owned() + "\n";
    for (word, told) in [("costs", &check.cost), ("mend", &check.remedy)] {
        if !told.is_empty() {
            text += &format!("{:9}{}  {told}\n", "", paint.dim(&format!("{word:5}")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, verdict: Finding, found: &str, cost: &str, remedy: &str) -> Check {
        let [name, found, cost, remedy] = [name, found, cost, remedy].map(ToOwned::to_owned);
        Check { name, verdict, found, cost, remedy }
    }

    #[test]
    fn a_machine_with_less_and_one_that_cannot() {
        let kernel = check("kernel", Finding::Good, "6.18.44", "", "");
        let cgroups = check(
            "cgroups",
            Finding::Less,
            "not delegated",
            "limits are refused",
            "systemctl --user daemon-reload",
        );
        let namespaces = check(
            "user-namespaces",
            Finding::Missing,
            "",
            "no sandboxes",
            "sysctl user.max_user_namespaces=10000",
        );
        let fair = Report { usable: true, checks: vec![kernel.clone(), cgroups] };
        insta::assert_snapshot!(doctor(&fair, Paint::Plain), @"
        good     kernel   6.18.44
        less     cgroups  not delegated
                 costs  limits are refused
                 mend   systemctl --user daemon-reload

        Sandboxes can be made on this machine.
        ");
        let poor = Report { usable: false, checks: vec![kernel, namespaces] };
        insta::assert_snapshot!(doctor(&poor, Paint::Plain), @"
        good     kernel           6.18.44
        missing  user-namespaces
                 costs  no sandboxes
                 mend   sysctl user.max_user_namespaces=10000

        No sandbox can be made on this machine: 1 missing above.
        ");
    }
}
