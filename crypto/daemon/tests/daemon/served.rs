//! A daemon of its own for a test.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway_daemon::keys::{KeyStore, Master, MasterKey};
use keyway_daemon::limits::ClientLimits;
use keyway_daemon::{Admission, Daemon, HandedOver, Options, listen};
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub struct Served {
    daemon: Daemon,
    options: Options,
    handed_over: Arc<Mutex<Option<Sender<()>>>>,
    folder: TempDir,
}

impl Served {
    pub fn start() -> Self {
        Self::with(ClientLimits::default())
    }

    pub fn with(limits: ClientLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = listen(&folder.path().join("socket")).unwrap();
        let engine = keyway_drivers::engine();
        let master = MasterKey::create_file(&folder.path().join("master"), &engine).unwrap();
        let keys = KeyStore::create(&keys_of(&folder), Master::Key(&master), &engine, drop_report);
        let options = Options {
            admission: Admission::default(),
            keys: Some(Arc::new(keys.unwrap())),
            limits,
            pumps: 1,
            spin: Duration::from_micros(20),
        };
        let handed_over = Arc::new(Mutex::new(None::<Sender<()>>));
        let tell = handed_over.clone();
        let call: HandedOver = Box::new(move || {
            if let Some(tell) = tell.lock().unwrap().take() {
                tell.send(()).unwrap();
            }
        });
        let daemon = Daemon::start(&engine, listener, options.clone(), call).unwrap();
        Served { daemon, options, handed_over, folder }
    }

    /// Has another daemon take over.
    pub fn replace(&mut self) {
        let (tell, told) = std::sync::mpsc::channel();
        // The one that is there tells the test that it has handed everything over.
        *self.handed_over.lock().unwrap() = Some(tell);
        let engine = keyway_drivers::engine();
        let handed_over = self.handed_over();
        let options = || {
            let master = MasterKey::from_file(&self.folder.path().join("master")).unwrap();
            let keys = keys_of(&self.folder);
            let keys = KeyStore::open(&keys, Master::Key(&master), &engine, drop_report).unwrap();
            Ok(Options { keys: Some(Arc::new(keys)), ..self.options.clone() })
        };
        let daemon = Daemon::take_over(&engine, &self.socket(), options, handed_over).unwrap();
        told.recv().unwrap();
        self.daemon = daemon;
    }

    fn handed_over(&self) -> HandedOver {
        let tell = self.handed_over.clone();
        Box::new(move || {
            if let Some(tell) = tell.lock().unwrap().take() {
                tell.send(()).unwrap();
            }
        })
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}

fn keys_of(folder: &TempDir) -> PathBuf {
    folder.path().join("keys")
}

fn drop_report(_: &str) {}
