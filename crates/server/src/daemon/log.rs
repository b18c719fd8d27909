//! The daemon's own log: a file in its home, put aside at a start when it has grown.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use super::home::HomeError;
use crate::paths;

/// Sends what the process logs to `daemon.log`.
pub(super) fn start(home: &Path, filter: Option<&str>) -> Result<(), HomeError> {
    // Beginning and end of each MCP connection are no news.
    let filter = filter.unwrap_or("info,rmcp=warn");
    let filter = EnvFilter::try_new(filter)
        .map_err(|source| HomeError::LogFilter { filter: filter.to_owned(), source })?;
    let path = paths::log(home);
    let at = |source| HomeError::Log { path: path.clone(), source };
    put_aside(&path).map_err(at)?;
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(at)?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(Mutex::new(file))
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(HomeError::LogStart)
}

fn put_aside(path: &Path) -> std::io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX => fs::rename(path, older(path)),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

const MAX: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_grown_log_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = paths::log(folder.path());
        put_aside(&path).unwrap();
        let file = fs::File::create(&path).unwrap();
        file.set_len(MAX).unwrap();
        put_aside(&path).unwrap();
        assert!(path.exists());
        file.set_len(MAX + 1).unwrap();
        put_aside(&path).unwrap();
        assert!(!path.exists() && older(&path).exists());
    }
}
