//! The key store through its public interface.

mod audit;
mod disk;
mod master;
mod model;
mod operations;
mod rollback;
mod usable;

use keyway_daemon::keys::{Caller, KeyStore, Master, MasterKey, Purpose, Purposes, Spec, Who};
use keyway_engine::{Algorithm, Engine};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

static ENGINE: LazyLock<Engine> = LazyLock::new(keyway_drivers::engine);

/// A folder for a store, and the file of its master key beside it.
struct Place {
    dir: TempDir,
}

impl Place {
    /// With an empty store, which is closed.
    fn new() -> Self {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        let master = MasterKey::create_file(&place.master(), &ENGINE).unwrap();
        KeyStore::create(&place.folder(), Master::Key(&master), &ENGINE, no_report).unwrap();
        place
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("keys")
    }

    fn master(&self) -> PathBuf {
        self.dir.path().join("master")
    }

    fn key_file(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{name}.key"))
    }

    fn try_open(&self) -> Result<KeyStore, keyway_daemon::keys::Error> {
        try_open(&self.folder(), &self.master())
    }

    fn open(&self) -> KeyStore {
        self.try_open().unwrap()
    }

    /// Opens it although keys of it are disabled, which is reported.
    fn open_damaged(&self) -> KeyStore {
        let master = MasterKey::from_file(&self.master()).unwrap();
        KeyStore::open(&self.folder(), Master::Key(&master), &ENGINE, |what| {
            assert!(what.contains("is disabled") || what.contains("not named like"), "{what}");
        })
        .unwrap()
    }
}

fn try_open(folder: &Path, master: &Path) -> Result<KeyStore, keyway_daemon::keys::Error> {
    KeyStore::open(folder, Master::Key(&MasterKey::from_file(master)?), &ENGINE, no_report)
}

/// Why a key may not be used, if so.
fn disabled(store: &KeyStore, name: &str) -> Option<String> {
    store.list().into_iter().find(|key| key.name == name).and_then(|key| key.disabled)
}

fn no_report(what: &str) {
    panic!("nothing is to be reported, but was: {what}");
}

/// The manager in these tests.
fn manager() -> Caller {
    caller(0)
}

fn caller(uid: u32) -> Caller {
    Caller {
        uid,
        gid: 100,
        groups: vec![],
        pid: 1,
        executable: Ok("/usr/bin/client".into()),
        vm: None,
    }
}

fn user(uid: u32) -> Who {
    Who { uid: Some(uid), ..Who::ANY }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn now() -> SystemTime {
    at(1_700_000_000)
}

fn purposes(all: &[Purpose]) -> Purposes {
    all.iter().copied().collect()
}

const MAC: Spec<'static> = Spec { algorithms: &[Algorithm::HmacSha256], purposes: MAC_PURPOSE };
const MAC_PURPOSE: Purposes = Purposes::of(Algorithm::HmacSha256);
