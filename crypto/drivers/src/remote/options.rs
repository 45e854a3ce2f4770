//! The daemon that a remote driver speaks to.

use keyway_engine::Selection;
use keyway_ring::{DEFAULT_SOCKET, Socket};
use std::path::PathBuf;
use std::sync::Arc;

/// The daemon, and how the engine is to see it.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The daemon's socket; or in a virtual machine, the folder in sysfs of the device by which the host's daemon is
    /// reached, or [`DEVICES`](keyway_ring::DEVICES) for the first one. Where no socket is at
    /// [`DEFAULT_SOCKET`], a device is looked for.
    pub path: PathBuf,
    /// A connection to the daemon that is there already, in the place of one to the path. It is the only one: when it has
    /// ended, the daemon does not come back.
    pub connection: Option<Arc<Socket>>,
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
            connection: None,
            client: client.into(),
            name: "remote".to_owned(),
            selection: Selection::Any,
            at_once: true,
        }
    }

    /// The daemon at the other end of a connection.
    pub fn connected(connection: Socket, client: impl Into<String>) -> Self {
        let connection = Some(Arc::new(connection));
        RemoteOptions { connection, ..RemoteOptions::new("", client) }
    }

    /// The daemon of this system at [`DEFAULT_SOCKET`], else that of the host of this virtual machine.
    pub fn of_this_machine(client: impl Into<String>) -> Self {
        RemoteOptions::new(DEFAULT_SOCKET, client)
    }
}
