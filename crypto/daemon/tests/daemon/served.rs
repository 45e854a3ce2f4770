//! A daemon of its own for a test.
#![allow(dead_code, reason = "each test program uses a part of it")]

use keyway_daemon::limits::ClientLimits;
use keyway_daemon::{Admission, Daemon, Options, listen};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

pub struct Served {
    _daemon: Daemon,
    folder: TempDir,
}

impl Served {
    pub fn start() -> Self {
        Self::with(ClientLimits::default())
    }

    pub fn with(limits: ClientLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = listen(&folder.path().join("socket")).unwrap();
        let options = Options {
            admission: Admission::default(),
            limits,
            pumps: 1,
            spin: Duration::from_micros(20),
        };
        let engine = keyway_drivers::engine();
        let daemon = Daemon::start(&engine, listener, options).unwrap();
        Served { _daemon: daemon, folder }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }
}
