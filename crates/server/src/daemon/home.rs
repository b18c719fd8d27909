//! The daemon's folder: made private, locked by one daemon, with its socket and token.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::Pid;
use tokio::net::UnixListener;

use crate::api::Token;
use crate::{best_effort, paths};

/// Makes the home, or checks that one which exists is ours alone.
pub(super) fn create(home: &Path) -> Result<(), HomeError> {
    let at = |source| HomeError::Create { home: home.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(at)?;
    let metadata = fs::metadata(home).map_err(at)?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(HomeError::Foreign { home: home.to_owned(), owner: metadata.uid() });
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(home, Permissions::from_mode(0o700)).map_err(at)?;
    }
    Ok(())
}

/// Held as long as the daemon lives; the kernel gives it back however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    home: PathBuf,
    _file: File,
}

impl Lock {
    pub(super) fn take(home: &Path) -> Result<Self, HomeError> {
        let path = paths::lock(home);
        let at = |source| HomeError::Lock { path: path.clone(), source };
        let file = private().read(true).create(true).truncate(false).open(&path).map_err(at)?;
        // A client that looks whether the lock is free holds it for a moment.
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    // Clients read here which version runs; that is quicker than asking it.
                    file.set_len(0)
                        .and_then(|()| (&file).write_all(crate::VERSION.as_bytes()))
                        .map_err(at)?;
                    return Ok(Self { home: home.to_owned(), _file: file });
                }
                // Whoever answers stays: waiting for its end would make us a daemon nobody asked for.
                Err(Errno::WOULDBLOCK) if answering(home).is_some() => {
                    return Err(HomeError::Running { home: home.to_owned() });
                }
                Err(Errno::WOULDBLOCK) if Instant::now() < deadline => std::thread::sleep(LOCK_POLL),
                Err(Errno::WOULDBLOCK) => return Err(HomeError::Running { home: home.to_owned() }),
                Err(errno) => return Err(at(errno.into())),
            }
        }
    }
}

/// The version that the lock's last holder noted.
pub(super) fn noted_version(home: &Path) -> Option<String> {
    fs::read_to_string(paths::lock(home)).ok().filter(|version| !version.is_empty())
}

/// The daemon that answers, if one does.
pub(super) fn answering(home: &Path) -> Option<Pid> {
    let socket = paths::socket(home);
    let connected = paths::Short::of(&socket).and_then(|short| UnixStream::connect(short.as_path()));
    connected.ok().and_then(|stream| socket_peercred(stream).ok()).map(|peer| peer.pid)
}

/// Is there a daemon that holds the lock? A home without a lock file has none.
pub(super) fn is_locked(home: &Path) -> io::Result<bool> {
    let file = match File::open(paths::lock(home)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(Errno::WOULDBLOCK) => Ok(true),
        Err(errno) => Err(errno.into()),
    }
}

pub(super) struct Socket {
    pub(super) listener: UnixListener,
    pub(super) name: SocketName,
}

pub(super) struct SocketName(PathBuf);

impl Socket {
    /// Puts a listening socket in place of whatever a dead daemon left. Only the lock's holder may.
    pub(super) fn bind(lock: &Lock) -> Result<Self, HomeError> {
        let path = paths::socket(&lock.home);
        let fresh = lock.home.join("daemon.sock.new");
        let at = |source| HomeError::Socket { path: path.clone(), source };
        match fs::remove_file(&fresh) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at(error)),
        }
        // Under another name first: at its own it appears listening and private, or not at all.
        let address = paths::Short::of(&fresh).map_err(at)?;
        let listener = UnixListener::bind(address.as_path()).map_err(at)?;
        fs::set_permissions(&fresh, Permissions::from_mode(0o600)).map_err(at)?;
        fs::rename(&fresh, &path).map_err(at)?;
        Ok(Self { listener, name: SocketName(path) })
    }
}

impl SocketName {
    pub(super) fn remove(self) {
        best_effort("remove the socket", fs::remove_file(&self.0));
    }
}

/// The token of the TCP door, made on first use.
pub(super) fn token(home: &Path) -> Result<Token, HomeError> {
    let path = paths::token(home);
    let at = |source| HomeError::Token { path: path.clone(), source };
    match private().create_new(true).open(&path) {
        Ok(mut file) => {
            let mut random = [0; 32];
            getrandom::fill(&mut random).map_err(HomeError::Random)?;
            let text = random.iter().fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").expect("a string takes all");
                text
            });
            file.write_all(text.as_bytes()).map_err(at)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(at(error)),
    }
    let mut file = OpenOptions::new().read(true).custom_flags(NOFOLLOW).open(&path).map_err(at)?;
    let metadata = file.metadata().map_err(at)?;
    if metadata.mode() & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(HomeError::TokenExposed { path });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(at)?;
    Token::parse(text.trim()).ok_or(HomeError::BadToken { path })
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(NOFOLLOW);
    options
}

#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("failed to make the folder `{}`", home.display())]
    Create {
        home: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the folder `{}` belongs to user {owner}", home.display())]
    Foreign { home: PathBuf, owner: u32 },
    #[error("failed to lock `{}`", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a daemon already runs for `{}`", home.display())]
    Running { home: PathBuf },
    #[error("failed to listen on `{}`", path.display())]
    Socket {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to read or write the token `{}`", path.display())]
    Token {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("others can read the token `{}`: remove it, a new one is made at the next start", path.display())]
    TokenExposed { path: PathBuf },
    #[error("`{}` does not hold a token: remove it, a new one is made at the next start", path.display())]
    BadToken { path: PathBuf },
    #[error("no random bytes to be had")]
    Random(#[source] getrandom::Error),
    #[error("failed to open the log `{}`", path.display())]
    Log {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{filter}` is not a log filter")]
    LogFilter {
        filter: String,
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    #[error("failed to start logging")]
    LogStart(#[source] tracing::subscriber::SetGlobalDefaultError),
}

const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_POLL: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, ClientError};

    #[test]
    fn a_home_is_private_and_has_one_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("deep/home");
        assert!(!is_locked(&home).unwrap());
        create(&home).unwrap();
        assert_eq!(fs::metadata(&home).unwrap().mode() & 0o777, 0o700);
        let lock = Lock::take(&home).unwrap();
        assert!(is_locked(&home).unwrap());
        assert!(matches!(Lock::take(&home), Err(HomeError::Running { .. })));
        drop(lock);
        assert!(!is_locked(&home).unwrap());
        Lock::take(&home).unwrap();
    }

    #[test]
    fn an_open_home_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        create(folder.path()).unwrap();
        assert_eq!(fs::metadata(folder.path()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_token_is_made_once_and_refused_when_others_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let first = token(folder.path()).unwrap();
        assert_eq!(token(folder.path()).unwrap(), first);
        let path = paths::token(folder.path());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(token(folder.path()), Err(HomeError::TokenExposed { .. })));
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        assert!(matches!(token(folder.path()), Err(HomeError::BadToken { .. })));
    }

    #[tokio::test]
    async fn a_socket_takes_the_place_of_a_dead_one() {
        let folder = tempfile::tempdir().unwrap();
        // Longer than a socket's address can be.
        let home = folder.path().join("deep".repeat(40));
        create(&home).unwrap();
        let lock = Lock::take(&home).unwrap();
        let dead = Socket::bind(&lock).unwrap();
        drop(dead.listener);
        assert!(matches!(Client::connect(&home).await, Err(ClientError::Refused { .. })));
        let socket = Socket::bind(&lock).unwrap();
        let path = paths::socket(&home);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        Client::connect(&home).await.unwrap();
        socket.name.remove();
        assert!(!path.exists());
    }
}
