//! What can go wrong while freezing, one variant per operation.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("failed to open the store of frozen workspaces at {}", path.display())]
    OpenStore {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to find the workspace {}", path.display())]
    FindWorkspace {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the workspace {} is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error(
        "the workspace {} and zeno's own store {} lie inside each other: choose another workspace, or move ZENO_HOME",
        workspace.display(), store.display()
    )]
    StoreInside { workspace: PathBuf, store: PathBuf },
    #[error("failed to read {} in the workspace", path.display())]
    ReadWorkspace {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to write the frozen copy of {}", path.display())]
    WriteLayer {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to merge layers in {}", path.display())]
    MergeLayers {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to save the index of the frozen copy at {}", path.display())]
    SaveIndex {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("failed to encode the index of the frozen copy at {}", path.display())]
    EncodeIndex {
        path: PathBuf,
        #[source]
        source: postcard::Error,
    },
    #[error("failed to note a change in the journal at {}", path.display())]
    WriteJournal {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the frozen layer {} is gone: the sandbox cannot be started again", path.display())]
    LayerGone { path: PathBuf },
    #[error("{} is not a layer of this store", path.display())]
    NotALayer { path: PathBuf },
}
