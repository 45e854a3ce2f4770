//! A server in this process, on a loopback port of its own.

use crate::directory::{self, Guard};
use crate::gate::{self, Gate};
use keyway_server::network::{Listener, Mode, Server, Settings};
use keyway_server::password::Argon2Cost;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// How many derivations may wait for the one slow thread.
pub const SLOW_DEPTH: usize = 1;
/// A cost that is no cost.
pub const COST: Argon2Cost = Argon2Cost { memory_kib: 8, passes: 1, lanes: 1 };

pub struct Running {
    pub address: SocketAddr,
    pub gate: Arc<Gate>,
    pub server: Server,
    _directory: Guard,
}

/// Starts a server whose password derivations are not held up.
pub async fn start(mode: Mode, settings: Settings) -> Running {
    start_gated(mode, settings, true).await
}

/// The same, with a gate that begins open or closed.
pub async fn start_gated(mode: Mode, settings: Settings, open: bool) -> Running {
    let gate = Gate::new(open);
    let engine = gate::engine(&gate, SLOW_DEPTH);
    let (directory, guard) = directory::open(engine).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let listeners = vec![Listener { socket, mode }];
    let server = Server::start(directory, listeners, settings).unwrap();
    Running { address, gate, server, _directory: guard }
}

/// A server in the clear with the settings that servers start with.
pub async fn plain() -> Running {
    start(Mode::Plain, Settings::default()).await
}
