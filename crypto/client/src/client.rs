//! The client of a process and of those that are forked from it.

use crate::channel::Life;
use crate::connection::{Connection, KeyAndChain, NamedKey, User, With};
use crate::error::{ClientError, Fault};
use crate::limits::{BUSY, PAUSE_MAX, PAUSE_MIN, QUIET};
use crate::own_key::OwnKey;
use crate::place::Place;
use keyway_engine::{Algorithm, Request};
use keyway_fork::Generation;
use keyway_lock::Unpoisoned;
use keyway_ring::control::KeyPolicy;
use once_cell::race::OnceBox;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// A client of the daemon at a socket. To make one opens nothing: a connection is made when a key is used, and made
/// anew after the daemon has ended, after a fork, and after a change of user.
///
/// All threads use it at once. A child that is forked has its own connection; it takes no lock that its parent may
/// have held, and sends nothing on what it inherited.
pub struct KeyClient {
    place: Place,
    name: String,
    /// The era of the process that made it. Those of its children follow.
    first: Era,
}

/// A process' own part.
struct Era {
    process: Generation,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Until when the daemon is asked nothing, since it did not answer.
    quiet_until: Mutex<Option<Instant>>,
    /// That of a process that was forked from this one. Setting it takes no lock.
    next: OnceBox<Era>,
}

impl Era {
    fn new() -> Era {
        let process = Generation::current();
        Era {
            process,
            connection: Mutex::new(None),
            quiet_until: Mutex::new(None),
            next: OnceBox::new(),
        }
    }
}

impl KeyClient {
    /// A client of the daemon that listens there, under this name for those who watch it.
    pub fn new(socket: PathBuf, name: impl Into<String>) -> KeyClient {
        KeyClient { place: Place::new(socket), name: name.into(), first: Era::new() }
    }

    /// The daemon's socket.
    pub fn socket(&self) -> &Path {
        self.place.path()
    }

    /// Keeps a way to the socket for a process that changes its root later: one descriptor.
    pub fn prepare(&self) {
        self.place.prepare();
    }

    /// The keys that this process may use.
    ///
    /// # Errors
    /// If no daemon answers, or it does not admit this user.
    pub fn keys(&self) -> Result<Vec<NamedKey>, ClientError> {
        self.glance()?.granted()
    }

    /// The keys that this process may use, each with its certificates in DER, that of the key first.
    ///
    /// # Errors
    /// As [`KeyClient::keys`].
    pub fn keys_and_certificates(&self) -> Result<Vec<KeyAndChain>, ClientError> {
        let connection = self.glance()?;
        let with_certificates = |key: NamedKey| {
            let certificates = match key.has_certificates {
                true => connection.certificates(&key.name)?,
                false => Vec::new(),
            };
            Ok((key, certificates))
        };
        connection.granted()?.into_iter().map(with_certificates).collect()
    }

    /// Whether a daemon answers that admits this process.
    ///
    /// # Errors
    /// If not.
    pub fn reach(&self) -> Result<(), ClientError> {
        self.glance().map(drop)
    }

    /// Gives up this process' connection; the next use of a key makes a new one.
    pub fn disconnect(&self) {
        *self.era().connection.lock().unpoisoned() = None;
    }

    /// The key of a name: one that this process may use or, for the daemon's administrators, any.
    ///
    /// # Errors
    /// As [`KeyClient::keys`], and if there is none.
    pub fn find(&self, name: &str) -> Result<NamedKey, ClientError> {
        self.glance()?.find(name)
    }

    /// Where this process may make keys of its own: their names begin with one of these. None, for most.
    ///
    /// # Errors
    /// As [`KeyClient::keys`].
    pub fn name_spaces(&self) -> Result<Vec<String>, ClientError> {
        self.glance()?.name_spaces()
    }

    /// Has a key made in a name space of this process, and gives it.
    ///
    /// # Errors
    /// As [`KeyClient::keys`]; the daemon's refusal.
    pub fn generate(&self, name: &str, policy: KeyPolicy) -> Result<NamedKey, ClientError> {
        let connection = self.glance()?;
        patiently(|| connection.generate(name, policy.clone()))
    }

    /// Destroys a key in a name space of this process, for good.
    ///
    /// # Errors
    /// As [`KeyClient::generate`].
    pub fn destroy(&self, name: &str) -> Result<(), ClientError> {
        let connection = self.glance()?;
        patiently(|| connection.destroy(name))
    }

    /// Has a request done with a key, whose public half, as a SubjectPublicKeyInfo, is that one.
    ///
    /// # Errors
    /// If no daemon answers, the key may not be used, or is another one by now; or as the daemon says. A daemon that
    /// ends is an error within some tens of milliseconds, and the request is offered to its successor once.
    pub fn run(
        &self,
        key: &str,
        public_key: &[u8],
        algorithm: Algorithm,
        request: &mut Request<'_>,
    ) -> Result<usize, ClientError> {
        let with = With::Named(key, public_key, algorithm);
        self.with_connection(|it| it.run(with, request)).map_err(|why| why.about(key))
    }

    /// Has a request done that needs no key, such as a verification.
    ///
    /// # Errors
    /// As [`KeyClient::run`].
    pub fn run_without_key(
        &self,
        algorithm: Algorithm,
        request: &mut Request<'_>,
    ) -> Result<usize, ClientError> {
        self.with_connection(|it| it.run(With::Nothing(algorithm), request))
    }

    /// Has a request done with a key of the program's.
    ///
    /// # Errors
    /// As [`KeyClient::run`].
    pub fn run_with_own(
        &self,
        key: &OwnKey,
        request: &mut Request<'_>,
    ) -> Result<usize, ClientError> {
        self.with_connection(|it| it.run(With::Own(key), request))
    }

    /// Has the daemon look at a key of the program's, and keep it for requests.
    ///
    /// # Errors
    /// As [`KeyClient::run`]: with [`Fault::Key`] if the daemon does not do the algorithm or the key is none for it.
    pub fn admit(&self, key: &OwnKey) -> Result<(), ClientError> {
        self.with_connection(|it| it.admit(key))
    }

    /// Has the daemon forget a key of the program's, as far as this process has given it.
    pub fn forget(&self, key: &OwnKey) {
        let held = usable(&self.era().connection.lock().unpoisoned());
        if let Some(connection) = held {
            connection.forget(key);
        }
    }

    /// Does something with the connection, again if the daemon has ended or while it is busy.
    fn with_connection<T>(
        &self,
        mut action: impl FnMut(&Connection) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut was_gone = false;
        loop {
            // Not where no connection is made, since the daemon was silent a moment ago or has no place for one: that
            // would be so for ever, or for long.
            let done = self
                .connection()
                .and_then(|connection| patiently(|| self.heard(action(&connection))));
            match done {
                Err(why) if why.fault == Fault::Unreachable && !was_gone => was_gone = true,
                result => return result,
            }
        }
    }

    /// This process' own. The locks of others may be held by threads that this one does not have.
    fn era(&self) -> &Era {
        let mut era = &self.first;
        while !era.process.is_current() {
            era = era.next.get_or_init(|| Box::new(Era::new()));
        }
        era
    }

    /// The connection that there is, or a new one that is kept.
    fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        let mut held = self.era().connection.lock().unpoisoned();
        if let Some(connection) = usable(&held) {
            return Ok(connection);
        }
        // A connection of an earlier user ends when the last thread is done with it.
        *held = None;
        let connection = Arc::new(self.connect()?);
        *held = Some(connection.clone());
        Ok(connection)
    }

    /// The connection that there is, or a new one that is not kept: a program that only loads keys, such as the
    /// master of worker processes, has none.
    fn glance(&self) -> Result<Arc<Connection>, ClientError> {
        let held = usable(&self.era().connection.lock().unpoisoned());
        match held {
            Some(connection) => Ok(connection),
            None => Ok(Arc::new(self.connect()?)),
        }
    }

    /// A new connection, if the daemon has not been silent a moment ago.
    fn connect(&self) -> Result<Connection, ClientError> {
        let until = *self.era().quiet_until.lock().unpoisoned();
        if until.is_some_and(|until| Instant::now() < until) {
            return Err(ClientError::silent(self.place.path()));
        }
        self.heard(Connection::new(&self.place, &self.name))
    }

    /// Notes that the daemon was silent.
    fn heard<T>(&self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        if let Err(ClientError { fault: Fault::Silent, .. }) = &result {
            *self.era().quiet_until.lock().unpoisoned() = Some(Instant::now() + QUIET);
        }
        result
    }
}

/// Tries again while the daemon has too much to do, for a while.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, ClientError>) -> Result<T, ClientError> {
    let (begun, mut pause) = (Instant::now(), PAUSE_MIN);
    loop {
        match ask() {
            Err(why) if why.fault == Fault::Busy && begun.elapsed() < BUSY => {
                thread::sleep(pause);
                pause = (2 * pause).min(PAUSE_MAX);
            }
            result => return result,
        }
    }
}

fn usable(held: &Option<Arc<Connection>>) -> Option<Arc<Connection>> {
    let is_usable = |it: &&Arc<Connection>| it.user == User::current() && !it.is_over();
    held.as_ref().filter(is_usable).cloned()
}
