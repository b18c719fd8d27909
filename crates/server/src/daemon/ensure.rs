//! The client's side of the daemon's life: start it when there is none, replace one that is older.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::home::{answering, is_locked, noted_version};
use crate::api::Health;
use crate::client::{Client, ClientError};
use crate::paths;

/// A client of the running daemon; `exe daemon run` is started with `ZENO_HOME` if there is none, or one older than
/// this client. Sandboxes are not touched.
pub async fn ensure(home: &Path, exe: &Path) -> Result<Client, ClientError> {
    match Client::connect(home).await {
        Ok(client) => {
            // A daemon notes its version before it listens, so a connection means that the note is its own.
            if noted_version(home).is_some_and(|version| !is_older(&version, crate::VERSION)) {
                return Ok(client);
            }
            let health: Health = match client.get("/healthz").await {
                Ok(health) => health,
                // It ended between the connection and the question.
                Err(ClientError::Send(_) | ClientError::Receive(_)) => return start(home, exe).await,
                Err(error) => return Err(error),
            };
            if !is_older(&health.version, crate::VERSION) {
                return Ok(client);
            }
            stop(home, client).await?;
            start(home, exe).await
        }
        Err(ClientError::NoDaemon { .. } | ClientError::Refused { .. }) => start(home, exe).await,
        Err(error) => Err(error),
    }
}

/// Ends the daemon and waits until it has let go of the home.
pub async fn stop(home: &Path, client: Client) -> Result<(), ClientError> {
    let () = client.post("/v1/daemon/stop", &()).await?;
    drop(client);
    let deadline = Instant::now() + PATIENCE;
    while is_locked(home).map_err(|source| ClientError::Lock { lock: paths::lock(home), source })? {
        if Instant::now() > deadline {
            return Err(ClientError::NotStopped);
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

async fn start(home: &Path, exe: &Path) -> Result<Client, ClientError> {
    let deadline = Instant::now() + PATIENCE;
    let mut child = spawn(home, exe)?;
    let mut saw_another = false;
    loop {
        match Client::connect(home).await {
            Ok(client) => {
                end_surplus(&mut child, home, exe)?;
                return Ok(client);
            }
            Err(ClientError::NoDaemon { .. } | ClientError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        // When several clients start one at once, all but one of the daemons find the lock taken and end.
        if has_ended(&mut child, exe)? {
            let locked =
                is_locked(home).map_err(|source| ClientError::Lock { lock: paths::lock(home), source })?;
            match (locked, saw_another) {
                (true, _) => saw_another = true,
                // The other one was on its way out.
                (false, true) => {
                    child = spawn(home, exe)?;
                    saw_another = false;
                }
                (false, false) => {
                    return Err(ClientError::NotStarted { reason: last_words(&mut child, home) });
                }
            }
        }
        if Instant::now() > deadline {
            return Err(ClientError::NotStarted { reason: log_tail(home) });
        }
        tokio::time::sleep(POLL).await;
    }
}

fn spawn(home: &Path, exe: &Path) -> Result<Child, ClientError> {
    let at = |source| ClientError::Spawn { exe: exe.to_owned(), source };
    Command::new(std::path::absolute(exe).map_err(at)?)
        .args(["daemon", "run"])
        .env("ZENO_HOME", std::path::absolute(home).map_err(at)?)
        // It must not keep the caller's folder from being unmounted.
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Only for a reason why it does not start. Once we are gone, what it writes there goes nowhere.
        .stderr(Stdio::piped())
        .spawn()
        .map_err(at)
}

/// Ends the daemon that we started if another answers. Slow to start, it might find that one gone, and succeed it when
/// nobody asks for it any more.
fn end_surplus(child: &mut Child, home: &Path, exe: &Path) -> Result<(), ClientError> {
    let is_surplus =
        answering(home).is_some_and(|pid| pid.as_raw_nonzero().get().cast_unsigned() != child.id());
    if is_surplus && !has_ended(child, exe)? {
        let ended = child.kill().and_then(|()| child.wait());
        ended.map_err(|source| ClientError::Spawn { exe: exe.to_owned(), source })?;
    }
    Ok(())
}

fn has_ended(child: &mut Child, exe: &Path) -> Result<bool, ClientError> {
    let status = child.try_wait().map_err(|source| ClientError::Spawn { exe: exe.to_owned(), source })?;
    Ok(status.is_some())
}

/// Only the release counts: two builds of the same version are equals. What is not a version is not judged.
fn is_older(theirs: &str, ours: &str) -> bool {
    match (semver::Version::parse(theirs), semver::Version::parse(ours)) {
        (Ok(theirs), Ok(ours)) => theirs.cmp_precedence(&ours).is_lt(),
        (Err(error), _) | (_, Err(error)) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "not a version");
            false
        }
    }
}

/// What an ended daemon said; one that could not even make its folder has no log.
fn last_words(child: &mut Child, home: &Path) -> String {
    let mut said = Vec::new();
    let heard = child.stderr.take().map(|pipe| pipe.take(TAIL).read_to_end(&mut said));
    match heard {
        Some(Ok(1..)) => tail_of(&said),
        Some(Err(error)) => {
            tracing::debug!(error = &error as &dyn std::error::Error, "cannot hear the daemon");
            log_tail(home)
        }
        Some(Ok(0)) | None => log_tail(home),
    }
}

fn log_tail(home: &Path) -> String {
    let path = paths::log(home);
    match read_tail(&path) {
        Ok(tail) => tail,
        Err(error) => format!("({}: {error})", path.display()),
    }
}

fn read_tail(path: &PathBuf) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(tail_of(&bytes))
}

fn tail_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Long: before it answers, a new daemon brings to an end what was under way when the last one was killed.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);
const TAIL: u64 = 8 << 10;
const TAIL_LINES: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_daemon_that_does_not_start_is_reported_with_its_log() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(paths::log(home.path()), "first\nthe reason\n").unwrap();
        let error = ensure(home.path(), Path::new("/bin/false")).await.unwrap_err();
        assert!(
            matches!(&error, ClientError::NotStarted { reason } if reason == "first\nthe reason"),
            "{error}"
        );
    }

    #[test]
    fn builds_of_one_version_are_equals() {
        assert!(is_older("0.1.0", "0.1.1"));
        assert!(is_older("0.9.0", "0.10.0"));
        for (theirs, ours) in [("0.1.0", "0.1.0"), ("0.1.0+a", "0.1.0+b"), ("0.2.0", "0.1.0"), ("x", "0.1.0")]
        {
            assert!(!is_older(theirs, ours), "{theirs} {ours}");
        }
    }
}
