//! Whose home folders there are on this machine: where secrets lie, and files that a login executes.
//!
//! Never asks the request alone: who leaves `HOME` out of it must not see more.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Every home that this process may read, by its real path: its user's own, that of its caller and, for root, everybody's.
#[must_use]
pub fn homes(callers: Option<&Path>) -> BTreeSet<PathBuf> {
    let own = rustix::process::geteuid();
    let mut homes = listed(&passwd(), |user| match user {
        User { uid, .. } if uid == own.as_raw() => true,
        // Those of the system's own users lie where nobody keeps a secret, unless one of them may log in.
        User { logs_in, .. } => own.is_root() && logs_in,
    });
    if own.is_root() {
        // Those of a directory service are in no file.
        homes.extend(folders(Path::new("/home")).unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read who lives in /home");
            Vec::new()
        }));
    }
    homes.extend(callers.filter(|home| home.is_absolute()).map(Path::to_owned));
    // Everything else is named by where it really is.
    let real = homes.iter().filter_map(|home| home.canonicalize().ok());
    real.filter(|home| home.is_dir() && home != Path::new("/")).collect()
}

/// The home of the user who runs this.
pub(crate) fn own_home() -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    listed(&passwd(), |user| user.uid == own).into_iter().next()
}

fn passwd() -> String {
    fs::read_to_string("/etc/passwd").unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read who lives on this machine");
        String::new()
    })
}

#[derive(Clone, Copy)]
struct User {
    uid: u32,
    logs_in: bool,
}

/// Homes in a passwd file.
fn listed(passwd: &str, wanted: impl Fn(User) -> bool) -> BTreeSet<PathBuf> {
    let home = |line: &str| {
        let [_, _, uid, _, _, home, shell] = line.split(':').collect::<Vec<_>>()[..] else { return None };
        let logs_in = !["nologin", "false", "sync"].iter().any(|none| shell.ends_with(none));
        let user = User { uid: uid.parse().ok()?, logs_in };
        (wanted(user) && home.starts_with('/')).then(|| PathBuf::from(home))
    };
    passwd.lines().filter_map(home).collect()
}

/// What is in a folder. No such folder: nobody lives there.
fn folders(place: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
sync:x:4:65534:sync:/bin:/bin/sync
postgres:x:105:113::/var/lib/postgresql:/bin/bash
ada:x:1000:1000:Ada,,,:/srv/ada:/bin/zsh
bad line
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

    #[test]
    fn who_may_log_in_has_a_home() {
        let all = listed(PASSWD, |user| user.logs_in);
        assert_eq!(all, ["/root", "/srv/ada", "/var/lib/postgresql"].map(PathBuf::from).into());
        assert_eq!(listed(PASSWD, |user| user.uid == 1000), [PathBuf::from("/srv/ada")].into());
    }

    #[test]
    fn a_request_without_a_home_has_that_of_the_user_who_runs_this() {
        let own = own_home().unwrap().canonicalize().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(homes(None).contains(&own));
        let both = homes(Some(elsewhere.path()));
        assert!(both.contains(&own) && both.contains(&elsewhere.path().canonicalize().unwrap()), "{both:?}");
        assert!(homes(Some(Path::new("relative"))).iter().all(|home| home.is_absolute()));
    }
}
