//! The one who makes password values and has them checked.

use crate::admission::{Admission, Attempt, BindHistory};
use crate::cost::Argon2Cost;
use crate::derivation::{Derive, Derived, Lap, in_turn};
use crate::error::{Error, StoredError};
use crate::given::{self, Given};
use crate::limits::*;
use crate::scheme::Scheme;
use crate::stored::{self, Stored};
use keyway_engine::{Algorithm, Engine, Key, Operation, Parameters, Session, Task};
use keyway_lock::Unpoisoned;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, RwLock, RwLockReadGuard};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The policy, which may change while passwords are made and checked.
struct Policy {
    cost: Argon2Cost,
    accepted: Vec<Scheme>,
    /// The name of the key that new values are peppered with.
    pepper: Option<Arc<str>>,
}

/// Makes and checks password values. Cheap to clone; used by all threads at once.
#[derive(Clone)]
pub struct Passwords {
    engine: Engine,
    policy: Arc<RwLock<Policy>>,
    pub(crate) sessions: Arc<RwLock<Vec<Open>>>,
    pub(crate) admission: Admission,
    pub(crate) lap: fn(Lap),
}

/// A session for one algorithm with one pepper or none.
pub(crate) struct Open {
    pepper: Option<String>,
    session: Session,
}

impl Passwords {
    /// New values are Argon2id of this cost. Values of the default schemes are verified.
    pub fn new(engine: Engine, cost: Argon2Cost) -> Self {
        let policy = Policy { cost, accepted: Scheme::defaults(), pepper: None };
        let (policy, admission) = (RwLock::new(policy), Admission::new(engine.slow_threads()));
        Passwords {
            engine,
            policy: policy.into(),
            sessions: Arc::default(),
            admission,
            lap: |_| {},
        }
    }

    /// Calls this whenever a check or a new value has waited for its turn or had it, in the task that awaits it.
    #[must_use]
    pub fn timed_by(self, lap: fn(Lap)) -> Self {
        Passwords { lap, ..self }
    }

    /// Verifies values of these schemes, and Argon2's.
    #[must_use]
    pub fn accepting(self, schemes: &[Scheme]) -> Self {
        let (cost, pepper) = (self.cost(), self.pepper());
        self.set_policy(cost, schemes, pepper.as_deref());
        self
    }

    /// New values are of this cost from now on and peppered with the key of this name, and those of
    /// these schemes are verified. A value that was stored with another pepper, or without one, is verified
    /// as it is.
    pub fn set_policy(&self, cost: Argon2Cost, schemes: &[Scheme], pepper: Option<&str>) {
        let policy = Policy { cost, accepted: schemes.into(), pepper: pepper.map(Arc::from) };
        *self.policy.write().unpoisoned() = policy;
    }

    /// Whether new values can be peppered with the key of this name, if there is to be one.
    ///
    /// # Errors
    /// The engine's, which says that nothing holds such a key.
    pub fn check_pepper(&self, pepper: Option<&str>) -> Result<(), keyway_engine::Error> {
        self.session(Algorithm::Argon2id, pepper).map(drop)
    }

    fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        self.policy.read().unpoisoned()
    }

    pub(crate) fn cost(&self) -> Argon2Cost {
        self.policy().cost
    }

    pub(crate) fn pepper(&self) -> Option<Arc<str>> {
        self.policy().pepper.clone()
    }

    /// A session of this algorithm with this pepper.
    pub(crate) fn session(
        &self,
        algorithm: Algorithm,
        pepper: Option<&str>,
    ) -> Result<Session, keyway_engine::Error> {
        let is_it =
            |it: &&Open| it.session.algorithm() == algorithm && it.pepper.as_deref() == pepper;
        let open = self.sessions.read().unpoisoned();
        if let Some(found) = open.iter().find(is_it) {
            return Ok(found.session.clone());
        }
        drop(open);
        let session = self
            .engine
            .session(Parameters::new(algorithm, pepper.map_or(Key::None, Key::Named)))?;
        let mut open = self.sessions.write().unpoisoned();
        // Names of peppers come from stored values, and so from any client that can write one.
        if open.len() >= SESSIONS_MAX {
            open.clear();
        }
        open.push(Open { pepper: pepper.map(str::to_owned), session: session.clone() });
        Ok(session)
    }

    /// As the function [`classify`](given::classify), and it must be of a scheme that is verified here.
    ///
    /// # Errors
    /// As the function's.
    pub fn classify<'a>(&self, value: &'a [u8]) -> Result<Given<'a>, StoredError> {
        self.parse(value)?;
        given::classify(value)
    }

    /// The label for the scheme of a value that no password will match because of this error.
    pub fn label(value: &[u8], why: StoredError) -> String {
        stored::label(value, why)
    }

    pub(crate) fn parse<'a>(&self, value: &'a [u8]) -> Result<Stored<'a>, StoredError> {
        let stored = stored::parse(value)?;
        match stored.scheme().filter(|scheme| !self.policy().accepted.contains(scheme)) {
            Some(scheme) => Err(StoredError::NotAccepted(scheme)),
            None => Ok(stored),
        }
    }

    /// Lets so many checks wait for their turn at most.
    pub fn set_waiting_max(&self, waiting_max: usize) {
        self.admission.set_waiting_max(waiting_max);
    }

    /// Describes who is going to try a password: from where, at which name (in a form in which
    /// equal names are equal, whether or not there is such an entry), and how his connection has
    /// fared so far.
    pub fn attempt(&self, from: IpAddr, name: &[u8], history: BindHistory) -> Attempt {
        self.admission.attempt(from, name, history)
    }

    /// Starts to hash a password into the value to store. It waits in line, and is done in its
    /// turn whether or not the future is polled; dropping that drops the result only.
    ///
    /// # Errors
    /// [`Error::TooLong`], [`Error::Busy`], or the engine's.
    pub fn hash(
        &self,
        password: Zeroizing<Vec<u8>>,
    ) -> Result<impl Future<Output = Result<Vec<u8>, Error>> + Send + 'static + use<>, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Error::TooLong);
        }
        let mut salt = vec![0; SALT_BYTES];
        self.engine.random(&mut salt)?;
        let (cost, pepper) = (self.cost(), self.pepper());
        let session = self.session(Algorithm::Argon2id, pepper.as_deref());
        let session = session.map_err(Error::Pepper)?;
        let derive = Operation::derive(cost.into(), password, &salt[..], DERIVED_BYTES);
        let (derive, derived) = self.in_turn(Task::new(&session, derive));
        self.admission.wait_to_hash(derive)?;
        Ok(async move {
            let task = derived.end().await?.task;
            Ok(stored::argon2id(cost, pepper.as_deref(), &salt, task.output()?))
        })
    }

    /// Hashes a password to be stored as `{SSHA512}`, in microseconds: a thief of the hash can try as
    /// fast. For test data.
    ///
    /// # Errors
    /// [`Error::TooLong`], or the engine's.
    pub fn hash_fast(&self, password: &[u8]) -> Result<Vec<u8>, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Error::TooLong);
        }
        let (mut digest, mut salt) = ([0; 64], [0; SALT_BYTES]);
        self.engine.random(&mut salt)?;
        self.engine.digest(Algorithm::Sha512, &[password, &salt], &mut digest)?;
        Ok(stored::salted_sha512(&digest, &salt))
    }

    /// For how long the source of an attempt is known to have the name's right password, in
    /// milliseconds; `None` if it is not, or has failed at it since.
    pub fn trusted_ms(&self, attempt: &Attempt) -> Option<u64> {
        self.admission.trusted_ms(attempt)
    }

    /// A fresh password for a client that gave none (RFC 3062): 120 bits in 24 characters that are
    /// not mistaken for each other.
    pub fn generate(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
        let mut bytes = Zeroizing::new(vec![0; GENERATED_CHARACTERS]);
        self.engine.random(&mut bytes)?;
        for byte in bytes.iter_mut() {
            *byte = ALPHABET.get(usize::from(*byte % 32)).copied().unwrap_or(b'a');
        }
        Ok(bytes)
    }

    pub(crate) fn digest_matches(
        &self,
        algorithm: Algorithm,
        password: &[u8],
        salt: &[u8],
        expected: &[u8],
    ) -> Result<bool, Error> {
        let mut digest = Zeroizing::new(vec![0; algorithm.output_bytes().unwrap_or_default()]);
        self.engine.digest(algorithm, &[password, salt], &mut digest)?;
        Ok(digest.ct_eq(expected).into())
    }

    /// A task that waits for its turn, and what it comes to.
    pub(crate) fn in_turn(&self, task: Box<Task>) -> (Derive, Derived) {
        in_turn(self.engine.clone(), self.lap, task)
    }
}
