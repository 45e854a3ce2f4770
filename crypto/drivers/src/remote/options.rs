//! The daemon that a remote driver speaks to.

use keyway_engine::Selection;
use std::path::PathBuf;

/// The daemon, and how the engine is to see it.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The daemon's socket.
    pub path: PathBuf,
    /// This client's name, for those who watch the daemon.
    pub client: String,
    /// The driver's name.
    pub name: String,
    /// Whether the engine may choose it by itself.
    pub selection: Selection,
    /// Whether it is an error that the daemon is not there at first. Else it is waited for.
    pub at_once: bool,
}

impl RemoteOptions {
    /// The daemon of this socket as driver `remote`, which the engine may choose, and which has to
    /// be there.
    pub fn new(path: impl Into<PathBuf>, client: impl Into<String>) -> Self {
        RemoteOptions {
            path: path.into(),
            client: client.into(),
            name: "remote".to_owned(),
            selection: Selection::Any,
            at_once: true,
        }
    }
}
