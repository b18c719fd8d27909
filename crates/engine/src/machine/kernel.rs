//! Which kernel this is, and whether it is one of those on which an overlay gives root away.

use std::fs;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// As `uname -r` says it.
    pub release: String,
    pub major: u32,
    pub minor: u32,
    /// The exact version it was made from; `None` where a distribution hides it behind a `.0`.
    pub exact: Option<(u32, u32, u32)>,
    /// Ubuntu's own number, the 91 of `5.15.0-91`.
    pub ubuntu: Option<u32>,
}

/// A known way from an overlay mount to root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub cve: &'static str,
    range: Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// From the first version up to, not including, the one that mended it.
    Exact { from: (u32, u32, u32), mended: (u32, u32, u32) },
    /// Ubuntu kernels of this series below this number of Ubuntu's.
    Ubuntu { series: (u32, u32), mended: u32 },
}

impl Kernel {
    pub(super) fn probe() -> Self {
        let uname = rustix::system::uname();
        let signature = fs::read_to_string("/proc/version_signature").ok();
        Self::read(
            &uname.release().to_string_lossy(),
            &uname.version().to_string_lossy(),
            signature.as_deref(),
        )
    }

    /// `version` is `uname -v`, where Debian tells; `signature` is Ubuntu's `/proc/version_signature`.
    fn read(release: &str, version: &str, signature: Option<&str>) -> Self {
        // A release that is no version at all counts as very old: doctor then says what to do.
        let (major, minor, patch) = numbers(release).unwrap_or((0, 0, 0));
        let ubuntu = signature.filter(|text| text.starts_with("Ubuntu ")).and_then(|_| own_number(release));
        let told = match signature {
            Some(signature) => signature.split_whitespace().nth(2).and_then(numbers),
            None => version.split_once("Debian ").and_then(|(_, rest)| numbers(rest)),
        };
        let is_hidden = patch == 0 && own_number(release).is_some();
        let exact = told.or_else(|| (!is_hidden).then_some((major, minor, patch)));
        Self { release: release.to_owned(), major, minor, exact, ubuntu }
    }

    #[must_use]
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// The flaws this kernel has, as far as its version tells. Ubuntu's own number decides for Ubuntu, which
    /// mends without changing the version.
    pub fn flaws(&self) -> impl Iterator<Item = &'static Flaw> {
        FLAWS.iter().filter(|flaw| match flaw.range {
            Range::Exact { from, mended } => {
                self.ubuntu.is_none() && self.exact.is_some_and(|exact| (from..mended).contains(&exact))
            }
            Range::Ubuntu { series, mended } => {
                (self.major, self.minor) == series && self.ubuntu.is_some_and(|number| number < mended)
            }
        })
    }
}

/// `5.15.0-91-generic` is `(5, 15, 0)`.
fn numbers(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || parts.next()?.ok();
    Some((next()?, next()?, next().unwrap_or(0)))
}

/// `5.15.0-91-generic` is `91`.
fn own_number(release: &str) -> Option<u32> {
    let (_, rest) = release.split_once('-')?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Mainline: the stable branches that took 4f11ada10d0a ("ovl: fail on invalid uid/gid mapping at copy up"), whose
/// branches in between ended without it; before 5.11 no ordinary user could mount an overlay. Ubuntu: the versions
/// its CVE tracker gives for `linux` and `linux-hwe`. Ubuntu's kernels for clouds count from 1000, each by itself;
/// nothing is claimed of them.
const FLAWS: &[Flaw] = &[
    Flaw { cve: "CVE-2023-0386", range: Range::Exact { from: (5, 11, 0), mended: (5, 15, 91) } },
    Flaw { cve: "CVE-2023-0386", range: Range::Exact { from: (5, 16, 0), mended: (6, 1, 9) } },
    Flaw { cve: "CVE-2023-0386", range: Range::Ubuntu { series: (5, 15), mended: 70 } },
    Flaw { cve: "CVE-2023-0386", range: Range::Ubuntu { series: (5, 19), mended: 41 } },
    Flaw { cve: "CVE-2023-2640 and CVE-2023-32629", range: Range::Ubuntu { series: (5, 19), mended: 50 } },
    Flaw { cve: "CVE-2023-2640 and CVE-2023-32629", range: Range::Ubuntu { series: (6, 2), mended: 26 } },
    Flaw { cve: "CVE-2023-32629", range: Range::Ubuntu { series: (5, 4), mended: 155 } },
    Flaw { cve: "CVE-2021-3493", range: Range::Ubuntu { series: (5, 4), mended: 72 } },
    Flaw { cve: "CVE-2021-3493", range: Range::Ubuntu { series: (5, 8), mended: 50 } },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(release: &str, version: &str, signature: Option<&str>, expected: &[&str]) {
        let kernel = Kernel::read(release, version, signature);
        assert_eq!(kernel.flaws().map(|flaw| flaw.cve).collect::<Vec<_>>(), expected, "{kernel:?}");
    }

    #[test]
    fn flawed_kernels_are_known_by_what_they_were_made_from() {
        check("6.1.8", "#1 SMP", None, &["CVE-2023-0386"]);
        check("6.1.9", "#1 SMP", None, &[]);
        check("6.18.44-fc-v445", "#1 SMP", None, &[]);
        check("6.1.0-3-amd64", "#1 SMP Debian 6.1.8-1 (2023-01-29)", None, &["CVE-2023-0386"]);
        check("6.1.0-18-amd64", "#1 SMP Debian 6.1.76-1 (2024-02-01)", None, &[]);
        // What RHEL mended cannot be seen; nothing is claimed.
        check("5.14.0-284.el9.x86_64", "#1 SMP", None, &[]);
        check("5.15.0-91-generic", "#101-Ubuntu", Some("Ubuntu 5.15.0-91.101-generic 5.15.131"), &[]);
        check("5.15.0-60-generic", "", Some("Ubuntu 5.15.0-60.66-generic 5.15.78"), &["CVE-2023-0386"]);
    }

    #[test]
    fn every_range_ends_where_it_was_mended() {
        #[track_caller]
        fn ubuntu(series: &str, number: u32, expected: &[&str]) {
            let release = format!("{series}.0-{number}-generic");
            check(&release, "", Some(&format!("Ubuntu {series}.0-{number}.1-generic {series}.1")), expected);
        }
        let both = "CVE-2023-2640 and CVE-2023-32629";
        ubuntu("5.15", 69, &["CVE-2023-0386"]);
        ubuntu("5.15", 70, &[]);
        ubuntu("5.19", 40, &["CVE-2023-0386", both]);
        ubuntu("5.19", 41, &[both]);
        ubuntu("5.19", 50, &[]);
        ubuntu("6.2", 25, &[both]);
        ubuntu("6.2", 26, &[]);
        ubuntu("5.4", 71, &["CVE-2023-32629", "CVE-2021-3493"]);
        ubuntu("5.4", 72, &["CVE-2023-32629"]);
        ubuntu("5.4", 155, &[]);
        ubuntu("5.8", 49, &["CVE-2021-3493"]);
        ubuntu("5.8", 50, &[]);
        // A cloud's kernel: 1033 of aws is older than 70 of generic, and cannot be told.
        ubuntu("5.15", 1033, &[]);
        for (release, expected) in [
            ("5.10.200", &[][..]),
            ("5.11.0", &["CVE-2023-0386"]),
            ("5.15.90", &["CVE-2023-0386"]),
            ("5.15.91", &[]),
            ("5.15.200", &[]),
            ("5.16.0", &["CVE-2023-0386"]),
            ("6.0.19", &["CVE-2023-0386"]),
            ("6.1.8", &["CVE-2023-0386"]),
            ("6.1.9", &[]),
            ("6.2.0", &[]),
        ] {
            check(release, "#1 SMP", None, expected);
        }
    }
}
