//! The keys of a cryptod, as those of an agent.

use super::constraints::{Confirmation, Expiry};
use keyway_drivers::remote::{Remote, RemoteOptions};
use keyway_engine::{Engine, Error, Key, Parameters, Selection};
use keyway_folder::control::Control;
use keyway_host::failure::{Failure, plain};
use keyway_lock::Unpoisoned;
use keyway_ring::control::GrantedKey;
use keyway_ssh_agent::{AgentKey, Keys, Signing, Unavailable};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The agent's name for those who watch the daemon.
const CLIENT: &str = "keyway ssh-agent";

/// The keys that this process may use for signatures of SSH, in the cryptod at a socket.
pub struct HeldKeys {
    cryptod: PathBuf,
    /// The only ones; all if there are none.
    only: Vec<String>,
    confirmation: Option<Confirmation>,
    expiry: Option<Expiry>,
    engine: Engine,
    remote: Mutex<Option<Remote>>,
    known: Mutex<Arc<[AgentKey]>>,
    /// The refusal that was reported last: a client that tries again and again is told of once.
    reported: Mutex<String>,
}

impl HeldKeys {
    /// Looks which keys there are.
    ///
    /// # Errors
    /// If there is no cryptod, or one of the keys that are named cannot be used.
    pub fn open(
        cryptod: &Path,
        only: &[String],
        confirmation: Option<Confirmation>,
        expiry: Option<Expiry>,
    ) -> Result<HeldKeys, Failure> {
        let held = HeldKeys {
            cryptod: cryptod.to_owned(),
            only: only.to_vec(),
            confirmation,
            expiry,
            engine: keyway_drivers::engine(),
            remote: Mutex::new(None),
            known: Mutex::new(Arc::new([])),
            reported: Mutex::default(),
        };
        let keys = held.look()?;
        let is_there = |name: &&String| keys.iter().any(|key| key.name() == name.as_str());
        if let Some(missing) = only.iter().find(|name| !is_there(name)) {
            return Err(Failure::new(format!(
                "the cryptod at {} has no key {missing} that this user and program may use and SSH can sign with; \
                 keyway key list --usable shows which keys there are, keyway ssh-agent --help for which algorithms",
                cryptod.display()
            )));
        }
        held.connect(&mut held.remote.lock().unpoisoned()).map_err(|why| {
            let shown = cryptod.display();
            Failure::new(format!("cannot use the cryptod at {shown}: {}", plain(&why)))
        })?;
        Ok(held)
    }

    fn look(&self) -> Result<Arc<[AgentKey]>, Failure> {
        let granted = Control::connect(&self.cryptod, CLIENT)?.granted()?;
        let keys: Arc<[_]> = granted.iter().filter_map(|key| self.take(key)).collect();
        *self.known.lock().unpoisoned() = keys.clone();
        Ok(keys)
    }

    fn is_over(&self) -> bool {
        self.expiry.is_some_and(|expiry| expiry.left().is_zero())
    }

    /// Tells the operator why a request is refused: the protocol cannot.
    fn report(&self, what: &str, why: &impl Display) -> Unavailable {
        let line = format!("keyway ssh-agent: {what}: {why}");
        let mut reported = self.reported.lock().unpoisoned();
        if *reported != line {
            eprintln!("{line}");
            *reported = line;
        }
        Unavailable
    }

    fn take(&self, key: &GrantedKey) -> Option<AgentKey> {
        let is_wanted = self.only.is_empty() || self.only.contains(&key.name);
        if !is_wanted || !key.purposes.iter().any(|purpose| purpose == "sign") {
            return None;
        }
        let algorithms: Vec<_> =
            key.algorithms.iter().filter_map(|name| name.parse().ok()).collect();
        AgentKey::new(&key.name, &algorithms, &key.public_key)
    }

    /// Connects, unless it is connected. The driver does the same by itself, but with pauses.
    fn connect(&self, remote: &mut Option<Remote>) -> io::Result<()> {
        if remote.as_ref().is_some_and(|remote| remote.wait(Duration::ZERO)) {
            return Ok(());
        }
        // The engine has one driver of that name.
        *remote = None;
        let options = RemoteOptions {
            selection: Selection::Named,
            ..RemoteOptions::new(&self.cryptod, CLIENT)
        };
        *remote = Some(Remote::connect(&self.engine, options)?);
        Ok(())
    }

    fn sign_once(&self, key: &AgentKey, signing: Signing, data: &[u8]) -> Result<Vec<u8>, Error> {
        self.connect(&mut self.remote.lock().unpoisoned()).map_err(|_| Error::Gone)?;
        let named = Parameters::new(signing.algorithm, Key::Named(key.name()));
        let session = self.engine.session(named)?;
        // Its key may have another version by now, or another key its name: sessions keep theirs.
        if session.public_key()? != key.public_key() {
            return Err(Error::InvalidKey("it is another key by now"));
        }
        session.sign(data)
    }
}

impl Keys for HeldKeys {
    fn list(&self) -> Result<Arc<[AgentKey]>, Unavailable> {
        if self.is_over() {
            return Ok(Arc::new([]));
        }
        self.look().map_err(|why| self.report("the keys are not listed", &why))
    }

    fn known(&self) -> Arc<[AgentKey]> {
        self.known.lock().unpoisoned().clone()
    }

    fn sign(&self, key: &AgentKey, signing: Signing, data: &[u8]) -> Result<Vec<u8>, Unavailable> {
        let what = format!("no signature with {}", key.name());
        if self.is_over() {
            return Err(self.report(&what, &"the agent's lifetime is over"));
        }
        if self.confirmation.as_ref().is_some_and(|confirmation| !confirmation.allows(key.name())) {
            return Err(self.report(&what, &"it was not confirmed"));
        }
        let signed = match self.sign_once(key, signing, data) {
            // The daemon may be another one since the last signature.
            Err(Error::Gone) => self.sign_once(key, signing, data),
            signed => signed,
        };
        signed.map_err(|why| {
            // The next request looks which keys there are.
            *self.known.lock().unpoisoned() = Arc::new([]);
            self.report(&what, &why)
        })
    }
}
