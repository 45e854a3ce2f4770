//! A daemon in this process, and sessions of a client of it.

use crate::client::Client;
use keyway_daemon::keys::{KeyStore, Master, MasterKey};
use keyway_daemon::limits::{ClientLimits, SharedLimits};
use keyway_daemon::{
    Admission, Daemon, HandedOver, Machines, NameSpaces, Options, Weights, listen,
};
use keyway_ring::control::{Key, PacketKey, PacketKeys, Secret, Step};
use keyway_ring::descriptor::SessionHandle;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// One daemon, until another has taken over from it.
pub struct Served {
    _daemon: Daemon,
    folder: TempDir,
    handed_over: Arc<AtomicBool>,
}

impl Served {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|why| panic!("{why}"));
        let handed_over = Arc::new(AtomicBool::new(false));
        let tell = handed_over.clone();
        let tell: HandedOver = Box::new(move |_| tell.store(true, Ordering::Release));
        let listener = listener(&folder.path().join("socket"));
        let engine = keyway_drivers::engine();
        let master = MasterKey::create_file(&folder.path().join("master"), &engine);
        let master = master.unwrap_or_else(|why| panic!("{why}"));
        let (keys, master) = (folder.path().join("keys"), Master::Key(&master));
        let keys = KeyStore::create(&keys, master, &engine, |_| {});
        let keys = Some(Arc::new(keys.unwrap_or_else(|why| panic!("{why}"))));
        let daemon = Daemon::start(&engine, listener, Options { keys, ..options() }, tell);
        let _daemon = daemon.unwrap_or_else(|why| panic!("{why}"));
        Served { _daemon, folder, handed_over }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub fn is_handed_over(&self) -> bool {
        self.handed_over.load(Ordering::Acquire)
    }
}

pub fn listener(path: &Path) -> OwnedFd {
    listen(path).unwrap_or_else(|why| panic!("{why}"))
}

/// Without keys.
pub fn options() -> Options {
    let (admission, limits) = (Admission::default(), ClientLimits::default());
    Options {
        admission,
        limits,
        shared: SharedLimits::of_this_machine(),
        weights: Weights::default(),
        name_spaces: NameSpaces::default(),
        machines: Machines::default(),
        keys: None,
        socket: None,
        pumps: 1,
        spin: Duration::from_micros(50),
    }
}

/// Chains of algorithms, with the lengths of their keys.
const CHAINS: &[&[(&str, usize)]] =
    &[&[("aes-128-cbc", 16), ("hmac-sha-1", 20)], &[("aes-256-ctr", 32), ("aes-256-cmac", 32)]];

/// A session of every algorithm that takes a key made up here, or makes its own, and of chains.
pub fn sessions(client: &Client) -> Vec<SessionHandle> {
    let single = client.algorithms.iter().filter_map(|algorithm| session(client, algorithm));
    let step = |(algorithm, bytes): &(&str, usize)| Step {
        algorithm: (*algorithm).to_owned(),
        key: Key::Secret(secret(*bytes)),
    };
    let chains =
        CHAINS.iter().filter_map(|steps| client.try_open(steps.iter().map(step).collect()).ok());
    single.chain(chains).collect()
}

fn session(client: &Client, algorithm: &str) -> Option<SessionHandle> {
    let packet = |bytes| {
        let current = PacketKey { key: secret(bytes), iv: secret(12) };
        let (header, phase, since) = (secret(bytes), false, 0);
        let keys = PacketKeys { header, current, phase, since, previous: None, next: None };
        Key::Packet(Box::new(keys))
    };
    let lengths = [16, 20, 24, 32, 48, 64];
    let secrets = lengths.map(|bytes| Key::Secret(secret(bytes)));
    let packets = lengths.map(packet);
    let keys = [Key::Generate, Key::None].into_iter().chain(secrets).chain(packets);
    let mut steps = keys.map(|key| vec![Step { algorithm: algorithm.to_owned(), key }]);
    steps.find_map(|steps| client.try_open(steps).ok())
}

/// No two bytes of it are the same, since a key's halves may not be.
fn secret(bytes: usize) -> Secret {
    Secret((0..bytes).map(|at| at as u8).collect())
}
