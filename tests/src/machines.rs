//! `keyway cryptod --vm`: a daemon with virtual machines, for tests with QEMU and for those with a hypervisor without a
//! guest.

use crate::cryptod::{Cryptod, eventually};
use crate::hypervisor::Hypervisor;
use crate::ring_client::Client;
use crate::{finish, keyway};
use keyway_ring::control::{Answer, Ask, ClientStatus};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// A daemon with virtual machines by these names.
pub struct Site {
    /// `None` while another one is to be started.
    pub cryptod: Option<Cryptod>,
    /// The data folder is `data` in it, and the machines' sockets are beside that.
    pub folder: Arc<TempDir>,
    flags: Vec<String>,
}

impl Site {
    /// Starts one, with more flags.
    ///
    /// # Panics
    /// If it does not start.
    pub fn new(names: &[&str], more: &[&str]) -> Site {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let mut flags: Vec<String> = more.iter().map(|it| (*it).to_owned()).collect();
        for name in names {
            let socket = folder.path().join(name).display().to_string();
            flags.extend(["--vm".to_owned(), format!("{name}={socket}")]);
        }
        let mut site = Site { cryptod: None, folder, flags };
        site.start(&[]);
        site
    }

    /// Starts one where one has been, or is to be taken over from, with the flags that it has and these.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(&mut self, more: &[&str]) {
        let flags: Vec<&str> =
            self.flags.iter().map(String::as_str).chain(more.iter().copied()).collect();
        self.cryptod = Some(Cryptod::start_on(&self.folder, &flags));
    }

    /// The daemon.
    ///
    /// # Panics
    /// If it is not there.
    pub fn cryptod(&self) -> &Cryptod {
        self.cryptod.as_ref().expect("a daemon")
    }

    /// The socket of a machine, for its hypervisor.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What `keyway key` says, on the daemon's data folder.
    ///
    /// # Panics
    /// If it fails.
    pub fn key(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(keyway());
        command.arg("key").args(arguments).arg("--data").arg(self.cryptod().data());
        finish(&mut command, "").expect(0).out
    }

    /// A hypervisor without a guest that is this machine.
    ///
    /// # Panics
    /// If it is not let in.
    pub fn machine(&self, name: &str) -> Hypervisor {
        // The one before may not be gone yet.
        let mut connected = None;
        eventually("the machine is let in", || {
            connected = Hypervisor::try_connect(&self.socket(name)).ok();
            connected.is_some()
        });
        eventually("the machine is a client", || self.row(name).is_some());
        connected.expect("it is there")
    }

    /// How a machine is as a client; `None` if it is not there.
    ///
    /// # Panics
    /// If the daemon does not say.
    pub fn row(&self, name: &str) -> Option<ClientStatus> {
        let Answer::Status(status) = Client::new(self.cryptod().socket()).ask(&Ask::Status) else {
            panic!("no status")
        };
        status.clients.into_iter().find(|row| row.name == format!("vm:{name}"))
    }

    /// Waits until a machine has nothing of the daemon.
    ///
    /// # Panics
    /// If it keeps something.
    #[track_caller]
    pub fn is_empty(&self, name: &str) {
        eventually("all is given back", || {
            self.row(name).is_some_and(|row| row.queues + row.sessions + row.regions == 0)
        });
    }

    /// The lines of the audit log.
    ///
    /// # Panics
    /// If one is no JSON.
    pub fn audit(&self) -> Vec<Value> {
        let log = self.cryptod().data().join("cryptod/keys/audit.log");
        let log = fs::read_to_string(log).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}
