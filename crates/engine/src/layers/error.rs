//! What can go wrong.

use std::io;
use std::path::PathBuf;

use model::LayerId;

#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error("could not make the folder of layers `{path}`")]
    Open { path: PathBuf, source: io::Error },
    #[error("the layer {layer} is gone")]
    Gone { layer: LayerId },
    #[error("could not look at the layer {layer}")]
    Look { layer: LayerId, source: io::Error },
    #[error("could not look at `{path}`")]
    LookAt { path: PathBuf, source: io::Error },
    #[error("could not seal `{path}` as the layer {layer}")]
    Seal { layer: LayerId, path: PathBuf, source: io::Error },
    #[error("could not copy `{path}` into the layer {layer}")]
    Copy { layer: LayerId, path: PathBuf, source: io::Error },
    #[error("could not make one layer, {layer}, of several")]
    Squash { layer: LayerId, source: io::Error },
    #[error("could not make the layer {layer} for another base")]
    Rebase { layer: LayerId, source: io::Error },
    #[error("nothing is mounted at `{path}` any more, where the sandbox has changed something")]
    Unmounted { path: PathBuf },
    #[error("could not make `{path}` look like the folder it stands for")]
    Dress { path: PathBuf, source: io::Error },
    #[error("could not list the layers")]
    List(#[source] io::Error),
    #[error("could not throw away `{path}`")]
    ThrowAway { path: PathBuf, source: io::Error },
    #[error("could not empty the trash `{path}`")]
    EmptyTrash { path: PathBuf, source: io::Error },
}
