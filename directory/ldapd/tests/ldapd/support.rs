//! A server in this process, on a loopback port of its own.

use crate::directory::{self, Guard};
use crate::gate::{self, Gate};
use keyway_drivers::{Remember, Verifier};
use keyway_engine::Driver;
use keyway_ldapd::{ConnectionSettings, LdapServer, Listener, Mode};
use keyway_password::Argon2Cost;
use keyway_server::Directory;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many derivations may wait for the one slow thread.
pub const SLOW_DEPTH: usize = 1;
/// How long a right password is remembered where it is.
pub const REMEMBERED: Duration = Duration::from_secs(600);
/// A cost that is no cost.
pub const COST: Argon2Cost = Argon2Cost { memory_kib: 8, passes: 1, lanes: 1 };

pub struct Running {
    pub address: SocketAddr,
    pub gate: Arc<Gate>,
    pub server: LdapServer,
    pub directory: Arc<Directory>,
    _folder: Guard,
}

/// Starts a server whose password derivations are not held up.
pub async fn start(mode: Mode, settings: ConnectionSettings) -> Running {
    start_gated(mode, settings, true).await
}

/// The same, with a gate that begins open or closed.
pub async fn start_gated(mode: Mode, settings: ConnectionSettings, open: bool) -> Running {
    let gate = Gate::new(open);
    let driver = gate::driver(&gate);
    serve(mode, settings, gate, driver).await
}

/// A server in the clear whose engine remembers right passwords for [`REMEMBERED`], by a clock that
/// the test moves.
pub async fn remembering() -> (Running, Arc<AtomicU64>) {
    let (gate, now_s) = (Gate::new(true), Arc::<AtomicU64>::default());
    let time = now_s.clone();
    let clock = Box::new(move || Duration::from_secs(time.load(Ordering::Relaxed)));
    let remember = Remember { most: 10, age: REMEMBERED };
    let driver = Verifier::new(gate::driver(&gate), remember, clock).unwrap();
    (serve(Mode::Plain, ConnectionSettings::default(), gate, driver).await, now_s)
}

async fn serve(
    mode: Mode,
    settings: ConnectionSettings,
    gate: Arc<Gate>,
    driver: Arc<dyn Driver>,
) -> Running {
    let engine = gate::engine(driver, SLOW_DEPTH);
    let (directory, guard) = directory::open(engine).await;
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let listeners = vec![Listener { socket: socket.into(), mode }];
    let server = LdapServer::start(directory.clone(), listeners, settings).unwrap();
    Running { address, gate, server, directory, _folder: guard }
}

/// A server in the clear with the settings that servers start with.
pub async fn plain() -> Running {
    start(Mode::Plain, ConnectionSettings::default()).await
}
