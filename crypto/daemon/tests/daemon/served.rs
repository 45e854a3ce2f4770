//! A daemon of its own for a test.
#![allow(dead_code, reason = "each test program uses a part of it")]

use crate::client::Client;
use keyway_daemon::keys::{KeyStore, Master, MasterKey};
use keyway_daemon::limits::{ClientLimits, SharedLimits};
use keyway_daemon::{
    Admission, Daemon, HandedOver, Machines, NameSpaces, Options, Weights, listen,
};
use keyway_engine::{Algorithm, Key, Parameters};
use keyway_ring::descriptor::Status;
use keyway_ring::with_address;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub struct Served {
    daemon: Daemon,
    options: Options,
    handed_over: Arc<Mutex<Option<Sender<u32>>>>,
    folder: TempDir,
}

impl Served {
    pub fn start() -> Self {
        Self::with(ClientLimits::default())
    }

    pub fn with(limits: ClientLimits) -> Self {
        Self::sharing(limits, SharedLimits::of_this_machine(), Weights::default())
    }

    pub fn sharing(limits: ClientLimits, shared: SharedLimits, weights: Weights) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = listen(&folder.path().join("socket")).unwrap();
        Self::at(folder, listener, limits, (shared, weights))
    }

    /// At a socket that takes files, as all do before Linux 6.16.
    pub fn open_to_files() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let listener = rustix::net::socket_with(kind.0, kind.1, flags, None).unwrap();
        let path = folder.path().join("socket");
        with_address(&path, |address| rustix::net::bind(&listener, address)).unwrap();
        rustix::net::listen(&listener, 16).unwrap();
        let shared = (SharedLimits::of_this_machine(), Weights::default());
        Self::at(folder, listener, ClientLimits::default(), shared)
    }

    fn at(
        folder: TempDir,
        listener: OwnedFd,
        limits: ClientLimits,
        (shared, weights): (SharedLimits, Weights),
    ) -> Self {
        let engine = keyway_drivers::engine();
        let master = MasterKey::create_file(&folder.path().join("master"), &engine).unwrap();
        let keys = KeyStore::create(&keys_of(&folder), Master::Key(&master), &engine, drop_report);
        let options = Options {
            admission: Admission::default(),
            keys: Some(Arc::new(keys.unwrap())),
            limits,
            shared,
            weights,
            name_spaces: NameSpaces::default(),
            machines: Machines::default(),
            socket: None,
            pumps: 1,
            spin: Duration::from_micros(20),
        };
        let handed_over = Arc::new(Mutex::new(None::<Sender<u32>>));
        let call = telling(&handed_over);
        let daemon = Daemon::start(&engine, listener, options.clone(), call).unwrap();
        Served { daemon, options, handed_over, folder }
    }

    /// Has another daemon take over.
    pub fn replace(&mut self) {
        let (tell, told) = std::sync::mpsc::channel();
        // The one that is there tells the test that it has handed everything over.
        *self.handed_over.lock().unwrap() = Some(tell);
        let engine = keyway_drivers::engine();
        let handed_over = telling(&self.handed_over);
        let options = || {
            let master = MasterKey::from_file(&self.folder.path().join("master")).unwrap();
            let keys = keys_of(&self.folder);
            let keys = KeyStore::open(&keys, Master::Key(&master), &engine, drop_report).unwrap();
            Ok(Options { keys: Some(Arc::new(keys)), ..self.options.clone() })
        };
        let daemon = Daemon::take_over(&engine, &self.socket(), options, handed_over).unwrap();
        assert_eq!(told.recv().unwrap(), std::process::id());
        self.daemon = daemon;
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

fn telling(teller: &Arc<Mutex<Option<Sender<u32>>>>) -> HandedOver {
    let teller = teller.clone();
    Box::new(move |process| {
        if let Some(tell) = teller.lock().unwrap().take() {
            tell.send(process).unwrap();
        }
    })
}

fn keys_of(folder: &TempDir) -> PathBuf {
    folder.path().join("keys")
}

fn drop_report(_: &str) {}

/// Seals a text and looks at it: what an honest client does, to see whether it is still served.
pub fn is_served(socket: &Path) {
    let client = Client::new(socket);
    let (mut pair, region, session) = (client.pair(8), client.region(4096), client.aes());
    let completion = pair.run(&region.seal(session, b"text"));
    assert_eq!((completion.status, completion.used, completion.cookie), (Status::Done, 4, 5));
    let (text, tag) = sealed(b"text");
    assert_eq!((region.bytes(0, 4), completion.result), (text, tag));
}

/// That text, sealed by the engine itself.
pub fn sealed(text: &[u8]) -> (Vec<u8>, [u8; 16]) {
    let engine = keyway_drivers::engine();
    let session = engine.session(Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16])));
    let mut text = text.to_vec();
    let tag = session.unwrap().seal(&[0; 12], &[], &mut text).unwrap();
    (text, tag)
}
