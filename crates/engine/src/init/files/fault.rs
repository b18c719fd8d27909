//! Why nothing came of it.

use std::io;

use model::Code;
use model::files::FileOp;
use rustix::io::Errno;

#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it is a folder")]
    Folder,
    #[error("it is not a folder")]
    NotFolder,
    #[error("it is neither a file nor a folder")]
    Special,
    #[error("it is there already")]
    Exists,
    #[error("only one's own home can be written as `~`")]
    Home,
    #[error("no path is given")]
    Empty,
    #[error("there are more than {most} folders in it, or more than this machine watches for one user")]
    Watches { most: usize },
    #[error("more happened than could be told")]
    Overflow,
}

impl From<Errno> for Fault {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Fault {
    pub(super) fn code(&self, op: &FileOp) -> Code {
        match self {
            Self::Io(error) => code(error, op),
            Self::Exists => Code::Conflict,
            Self::Watches { .. } | Self::Overflow => Code::TooLarge,
            Self::Folder | Self::NotFolder | Self::Special | Self::Home | Self::Empty => Code::BadRequest,
        }
    }
}

fn code(error: &io::Error, op: &FileOp) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::PermissionDenied => Code::Refused,
        io::ErrorKind::ReadOnlyFilesystem if op.is_at_home() => Code::Refused,
        // Nothing can be at a path that leads through a file.
        io::ErrorKind::NotADirectory if matches!(op, FileOp::Entry { .. } | FileOp::Download { .. }) => {
            Code::NotFound
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::DiskFull,
        _ => Code::BadRequest,
    }
}

/// There is nothing at a path.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
