//! `cargo xtask test`: everything the tests need, then the whole suite, as every kind of user it must work for.
//!
//! Never passes over a skipped test in CI: a machine that cannot run a test there is a broken machine.

mod delegation;
mod suite;
mod tally;
mod user;

use model::env::Environment;

use delegation::{Delegation, DelegationError};
use suite::{Suite, SuiteError};
use tally::Tally;
use user::{Staged, UserError};

use crate::packages::{self, Consent, Need, NeedsError};
use crate::sdks::{Sdks, SdksError};

/// Every program the tests start that is not ours.
const NEEDS: &[Need] = &[
    Need { program: "git", package: "git", why: "workspaces are git worktrees" },
    Need { program: "python3", package: "python3", why: "raw syscalls and servers inside sandboxes" },
    Need { program: "bwrap", package: "bubblewrap", why: "the peer that speed is compared with" },
    Need { program: "setfattr", package: "attr", why: "extended attributes in captures" },
    Need { program: "setfacl", package: "acl", why: "access control lists in captures" },
    Need {
        program: "setcap",
        package: "libcap2-bin",
        why: "files with capabilities, which are not promoted",
    },
    Need { program: "mkfs.ext4", package: "e2fsprogs", why: "small file systems that fill up" },
    Need { program: "chattr", package: "e2fsprogs", why: "immutable files in captures" },
    Need { program: "curl", package: "curl", why: "a way out that sandboxes must not have" },
    Need { program: "wget", package: "wget", why: "a way out that sandboxes must not have" },
    Need { program: "nc", package: "netcat-openbsd", why: "a way out that sandboxes must not have" },
    Need { program: "ssh", package: "openssh-client", why: "a way out that sandboxes must not have" },
    Need { program: "ping", package: "iputils-ping", why: "a way out that sandboxes must not have" },
    Need { program: "ip", package: "iproute2", why: "network namespaces for tests of the gateway" },
    Need { program: "openssl", package: "openssl", why: "certificates of servers that sandboxes reach" },
    Need { program: "node", package: "nodejs", why: "a client through the gateway" },
    Need { program: "npm", package: "npm", why: "installs from inside a sandbox" },
    Need { program: "pip3", package: "python3-pip", why: "installs from inside a sandbox, and E2B's SDK" },
    Need { program: "javac", package: "default-jdk-headless", why: "a client through the gateway" },
    Need { program: "go", package: "golang-go", why: "a client through the gateway" },
    Need { program: "nghttpd", package: "nghttp2-server", why: "HTTP/2 through the gateway" },
    Need { program: "pg_ctlcluster", package: "postgresql", why: "a database behind the gateway" },
    Need { program: "psql", package: "postgresql-client", why: "a client through the gateway" },
    Need { program: "redis-server", package: "redis-server", why: "a store behind the gateway" },
    Need { program: "redis-cli", package: "redis-tools", why: "a client through the gateway" },
    Need { program: "ps", package: "procps", why: "looking at processes inside sandboxes" },
    Need { program: "setpriv", package: "util-linux", why: "running the suite as an ordinary user" },
    Need { program: "useradd", package: "passwd", why: "making that ordinary user" },
];

/// Install what the tests need and run them all
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only tests whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Run only this suite of crates/cli/tests: zeno, real or escape
    #[arg(long, value_name = "SUITE")]
    suite: Option<String>,
    /// Install without asking
    #[arg(long)]
    yes: bool,
}

pub(crate) fn test(args: &Args) -> Result<(), TestError> {
    let environment = Environment::read();
    let consent = Consent::of(args.yes);
    packages::ensure(NEEDS, consent)?;
    // The other suites speak to no door.
    let uses_sdks = args.suite.as_deref().is_none_or(|suite| suite == "real");
    let sdks = if uses_sdks { Some(Sdks::ensure(consent)?) } else { None };

    let is_root = rustix::process::geteuid().is_root();
    let suite = Suite::build(args.only.clone(), args.suite.as_deref(), sdks)?;
    let mut tally = Tally::default();
    println!("== the suite as {}", if is_root { "root" } else { "yourself" });
    suite.run_here(is_root, &mut tally)?;
    if is_root {
        as_ordinary_user(&suite, &mut tally)?;
    } else {
        println!("== not root: the suite ran as yourself only; `sudo cargo xtask test` runs every form");
    }

    for line in &tally.reasons {
        println!("{line}");
    }
    for name in &tally.unsteady {
        println!("UNSTEADY: {name} failed, and passed when it was asked again");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed + tally.broken.len());
    tally.verdict(environment.ci)
}

/// The same tests again for a user without rights, with and without cgroups of its own.
fn as_ordinary_user(suite: &Suite, tally: &mut Tally) -> Result<(), TestError> {
    let user = user::ensure()?;
    let staged = Staged::new(suite)?;
    println!("== the suite as {} with delegated cgroups", user.name);
    match Delegation::new(&user) {
        Ok(delegation) => {
            let ran = staged.run(suite, &user, "usable", tally);
            delegation.remove()?;
            ran?;
        }
        Err(DelegationError::NoHierarchy) => {
            tally.skip("no cgroup v1 hierarchy to delegate: the form with delegated cgroups did not run");
        }
        Err(error) => return Err(error.into()),
    }
    println!("== the suite as {} without cgroups", user.name);
    staged.run(suite, &user, "none", tally)?;
    Ok(staged.remove()?)
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TestError {
    #[error(transparent)]
    Needs(#[from] NeedsError),
    #[error(transparent)]
    Sdks(#[from] SdksError),
    #[error(transparent)]
    Suite(#[from] SuiteError),
    #[error(transparent)]
    User(#[from] UserError),
    #[error(transparent)]
    Delegation(#[from] DelegationError),
    #[error("{failed} tests failed{}", broken_list(.broken))]
    Failed { failed: usize, broken: Vec<String> },
    #[error("too many tests failed and passed when they were asked again:\n  {}", .unsteady.join("\n  "))]
    Unsteady { unsteady: Vec<String> },
    #[error("no test ran")]
    NothingRan,
    #[error("{} tests were skipped, which CI does not accept:\n  {}", .skipped.len(), .skipped.join("\n  "))]
    Skipped { skipped: Vec<String> },
}

fn broken_list(broken: &[String]) -> String {
    if broken.is_empty() { String::new() } else { format!("; ended without a result: {}", broken.join(", ")) }
}
