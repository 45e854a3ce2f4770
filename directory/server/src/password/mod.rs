//! Password values: what is stored, how one is made, how one is checked.
//!
//! Every primitive is an engine request. Plain digests run on the caller's stack; slow derivations
//! wait for their turn (`Admission`) and go to the engine's bounded pool, and whoever gets no turn
//! is told [`Error::Busy`]. A driver of the engine may remember what was right lately; whoever has
//! shown a right password is answered from there first. What is stored names its scheme and its
//! cost; both are bounded by [`limits`], so that a hostile value cannot buy minutes or gigabytes of
//! ours.

pub mod limits;
mod scheme;
mod stored;

use crate::admission::{Admission, Attempt, Begun, Recognition, Standing, Turn};
use crate::log::stages::{self, Stage};
use futures_util::future::{Either, select};
use keyway_engine::{
    Algorithm, Cost, Effort, Engine, Key, Operation, Parameters, Request, Session, Task,
};
use keyway_store::EntryId;
use limits::*;
pub use scheme::Scheme;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use stored::Stored;
pub use stored::StoredError;
use subtle::ConstantTimeEq;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

/// What a new value costs to make and to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argon2Cost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
    /// Lanes.
    pub lanes: u32,
}

impl Default for Argon2Cost {
    /// 19 MiB, two passes, one lane: OWASP's first choice, about 20 ms of one core.
    fn default() -> Self {
        Argon2Cost { memory_kib: 19 << 10, passes: 2, lanes: 1 }
    }
}

impl From<Argon2Cost> for Cost {
    fn from(cost: Argon2Cost) -> Self {
        let Argon2Cost { memory_kib, passes, lanes } = cost;
        Cost::Argon2 { memory_kib, passes, lanes }
    }
}

/// Why a password was not made or checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The password is longer than [`PASSWORD_BYTES_MAX`].
    TooLong,
    /// Too many wait for their turn, or it did not come in time; try again later.
    Busy,
    /// The engine could not do it.
    Engine(keyway_engine::Error),
    /// The engine cannot use the key that the stored value is, or is to be, peppered with.
    Pepper(keyway_engine::Error),
}

impl From<keyway_engine::Error> for Error {
    fn from(error: keyway_engine::Error) -> Self {
        match error {
            keyway_engine::Error::Busy => Error::Busy,
            other => Error::Engine(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TooLong => write!(f, "a password may have {PASSWORD_BYTES_MAX} bytes at most"),
            Error::Busy => f.write_str("too many passwords are being checked; try again later"),
            Error::Engine(error) => write!(f, "the password could not be worked on: {error}"),
            Error::Pepper(error) => write!(
                f,
                "the key that passwords are peppered with cannot be used here now: {error}"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoredError::UnknownScheme => f.write_str(
                "the value names a password scheme that is not known here; \
                 give the password itself or a value of a known scheme",
            ),
            StoredError::Malformed(why) => write!(f, "the value does not fit its scheme: {why}"),
            StoredError::NotAccepted(scheme) => write!(
                f,
                "the value is of scheme \"{}\", which is not among those that [password] accept \
                 names in the configuration; give the password itself",
                scheme.name()
            ),
            StoredError::TooCostly => f.write_str("the value asks for more work than is allowed"),
        }
    }
}

impl std::error::Error for StoredError {}

/// What somebody gave as a value to store. `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Given<'a> {
    /// A password, to be hashed before it is stored.
    Password(&'a [u8]),
    /// A value of a known scheme, fit to be stored as it is.
    Hashed,
}

impl fmt::Debug for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Given::Password(_) => "Password(..)",
            Given::Hashed => "Hashed",
        })
    }
}

/// Says whether a value given for `userPassword` is a password or is hashed already.
///
/// # Errors
/// A value that names a scheme which is not known, or does not fit it, or asks for more work than
/// the limits allow. Storing or hashing it would make it look right and never match, or worse,
/// make the hash itself the password.
pub fn classify(value: &[u8]) -> Result<Given<'_>, StoredError> {
    match stored::parse(value)? {
        Stored::Clear(password) => Ok(Given::Password(password)),
        Stored::Digest { .. } | Stored::Derived { .. } | Stored::Locked => Ok(Given::Hashed),
    }
}

/// What may change while passwords are made and checked.
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
    sessions: Arc<RwLock<Vec<Open>>>,
    admission: Admission,
}

/// A session for one algorithm with one pepper or none.
struct Open {
    pepper: Option<String>,
    session: Session,
}

impl Passwords {
    /// New values are Argon2id of this cost. Values of the default schemes are verified.
    pub fn new(engine: Engine, cost: Argon2Cost) -> Self {
        let policy = Policy { cost, accepted: Scheme::defaults(), pepper: None };
        let (policy, admission) = (RwLock::new(policy), Admission::new(engine.slow_threads()));
        Passwords { engine, policy: policy.into(), sessions: Arc::default(), admission }
    }

    /// The same, but values of these schemes are verified, and Argon2's.
    #[must_use]
    pub fn accepting(self, schemes: &[Scheme]) -> Self {
        let (cost, pepper) = (self.cost(), self.pepper());
        self.set_policy(cost, schemes, pepper.as_deref());
        self
    }

    /// New values are of this cost from now on and peppered with the key of this name, and those of
    /// these schemes are verified. What was stored with another pepper, or without one, is verified
    /// as it is.
    pub fn set_policy(&self, cost: Argon2Cost, schemes: &[Scheme], pepper: Option<&str>) {
        let policy = Policy { cost, accepted: schemes.into(), pepper: pepper.map(Arc::from) };
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// Whether new values can be peppered with the key of this name, if there is to be one.
    ///
    /// # Errors
    /// The engine's, which says that nothing holds such a key.
    pub fn check_pepper(&self, pepper: Option<&str>) -> Result<(), keyway_engine::Error> {
        self.session(Algorithm::Argon2id, pepper).map(drop)
    }

    fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn cost(&self) -> Argon2Cost {
        self.policy().cost
    }

    fn pepper(&self) -> Option<Arc<str>> {
        self.policy().pepper.clone()
    }

    /// A session of this algorithm with this pepper.
    fn session(
        &self,
        algorithm: Algorithm,
        pepper: Option<&str>,
    ) -> Result<Session, keyway_engine::Error> {
        let is_it =
            |it: &&Open| it.session.algorithm() == algorithm && it.pepper.as_deref() == pepper;
        let open = self.sessions.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = open.iter().find(is_it) {
            return Ok(found.session.clone());
        }
        drop(open);
        let session = self
            .engine
            .session(Parameters::new(algorithm, pepper.map_or(Key::None, Key::Named)))?;
        let mut open = self.sessions.write().unwrap_or_else(PoisonError::into_inner);
        // Names of peppers come from stored values, and so from whoever can write one.
        if open.len() >= SESSIONS_MAX {
            open.clear();
        }
        open.push(Open { pepper: pepper.map(str::to_owned), session: session.clone() });
        Ok(session)
    }

    /// As the function [`classify`], and it must be of a scheme that is verified here.
    ///
    /// # Errors
    /// As the function's.
    pub fn classify<'a>(&self, value: &'a [u8]) -> Result<Given<'a>, StoredError> {
        self.parse(value)?;
        classify(value)
    }

    /// What to call the scheme of a value that no password will match because of this error.
    pub fn label(value: &[u8], why: StoredError) -> String {
        stored::label(value, why)
    }

    fn parse<'a>(&self, value: &'a [u8]) -> Result<Stored<'a>, StoredError> {
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
    pub fn attempt(&self, from: IpAddr, name: &[u8], standing: Standing) -> Attempt {
        self.admission.attempt(from, name, standing)
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
    pub(crate) fn hash_fast(&self, password: &[u8]) -> Result<Vec<u8>, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(Error::TooLong);
        }
        let (mut digest, mut salt) = ([0; 64], [0; SALT_BYTES]);
        self.engine.random(&mut salt)?;
        self.engine.digest(Algorithm::Sha512, &[password, &salt], &mut digest)?;
        Ok(stored::salted_sha512(&digest, &salt))
    }

    /// Checks a password against an entry's stored values; any one that matches will do.
    ///
    /// A wrong password costs at least a check of a value of our own, whatever is stored: no such
    /// entry, no password, a fast hash, a scheme that is not known. So time does not tell who
    /// exists. What it can tell, until an upgrade, is that a stored value is slower than ours or
    /// that there are several slow ones. A right password has nothing to hide: one with a fast
    /// hash is answered at once, and so is one of this `entry` that the engine remembers, where it
    /// was shown from the same source lately. A wrong one of such a name is compared first as well, and
    /// then waits, and is derived, as if nothing had been.
    ///
    /// The brake on guessing says when it begins, and nothing is compared before.
    ///
    /// # Errors
    /// [`Error::Busy`] or the engine's; never for what is stored.
    pub fn check(
        &self,
        attempt: Attempt,
        entry: Option<EntryId>,
        password: Zeroizing<Vec<u8>>,
        values: &[Vec<u8>],
    ) -> Result<Check, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(Check::Known(Verdict::Wrong));
        }
        let (fast, slow) = self.understand(values, &password);
        let checking = Checking { passwords: self.clone(), attempt, entry, password, slow };
        let recognition = self.admission.recognition(attempt);
        // Compared for every client, so that it takes as long; told only to one that may know.
        let recognised = checking.recognise(&fast)?;
        match (recognition, recognised) {
            (Recognition::Now(begun), Some(right)) => {
                begun.ended(true);
                return Ok(Check::Known(right));
            }
            (Recognition::Later, _) => {
                let recognise = checking.clone().recognise_later(fast.clone());
                let check = Box::pin(checking.go_the_strangers_way(fast));
                return Ok(Check::Pending(Box::pin(async move {
                    match select(Box::pin(recognise), check).await {
                        Either::Left((Some(right), _)) => Ok(right),
                        Either::Left((None, check)) => check.await,
                        Either::Right((verdict, _)) => verdict,
                    }
                })));
            }
            // One that has begun was wrong.
            (Recognition::Now(_) | Recognition::Never, _) => {}
        }
        let begun = if fast.is_empty() { None } else { self.admission.begin_now(attempt) };
        match begun {
            Some(begun) => Ok(match checking.compare(begun, &fast)? {
                Verdict::Wrong => Check::Pending(Box::pin(checking.derive_after())),
                right => Check::Known(right),
            }),
            None => Ok(Check::Pending(Box::pin(checking.go_the_strangers_way(fast)))),
        }
    }

    /// For how long the source of an attempt is known to have the name's right password, in
    /// milliseconds; `None` if it is not, or has failed at it since.
    pub(crate) fn trusted_ms(&self, attempt: &Attempt) -> Option<u64> {
        self.admission.trusted_ms(attempt)
    }

    /// Whether one of these values is that of a password. It is no attempt at any: whoever asks may set
    /// the password of this `entry`. All the same he waits for his turn, as an attempt would.
    ///
    /// # Errors
    /// As [`Passwords::check`].
    pub(crate) async fn is_one_of(
        &self,
        attempt: Attempt,
        entry: EntryId,
        password: &Zeroizing<Vec<u8>>,
        values: &[Vec<u8>],
    ) -> Result<bool, Error> {
        for values in values.chunks(STORED_VALUES_MAX) {
            let (fast, slow) = self.understand(values, password);
            let (passwords, password) = (self.clone(), password.clone());
            let checking = Checking { passwords, attempt, entry: Some(entry), password, slow };
            if checking.find(&fast)?.is_some() {
                return Ok(true);
            }
            if checking.slow.is_empty() {
                continue;
            }
            match checking.derive_each(false).await {
                // What is under a key that is gone, nobody can have shown.
                Ok(Verdict::Wrong) | Err(Error::Pepper(_)) => {}
                other => return other.map(Verdict::is_right),
            }
        }
        Ok(false)
    }

    /// The values that can be checked on the spot, and those that take the slow class.
    fn understand(&self, values: &[Vec<u8>], password: &[u8]) -> (Vec<Fast>, Vec<Slow>) {
        let (mut fast, mut slow) = (Vec::new(), Vec::new());
        for (index, value) in values.iter().enumerate().take(STORED_VALUES_MAX) {
            let Ok(stored) = self.parse(value) else { continue };
            let outdated = self.is_outdated(&stored) && is_whole(&stored, password);
            let right = Verdict::Right { outdated: outdated.then_some(index) };
            match stored {
                Stored::Clear(expected) => {
                    let expected = Zeroizing::new(expected.to_vec());
                    fast.push(Fast { algorithm: None, expected, salt: Vec::new(), right });
                }
                Stored::Locked => {}
                Stored::Digest { algorithm, digest, salt } => {
                    let (algorithm, expected) = (Some(algorithm), Zeroizing::new(digest));
                    fast.push(Fast { algorithm, expected, salt, right });
                }
                Stored::Derived { algorithm, cost, pepper, salt, expected } => {
                    slow.push(Slow { algorithm, cost, pepper, salt, expected, right });
                }
            }
        }
        slow.retain(|value| value.fits(password));
        (fast, slow)
    }

    /// Whether a value takes a guesser less work than one that would be made now.
    fn is_outdated(&self, stored: &Stored<'_>) -> bool {
        let work = |memory_kib, passes| u64::from(memory_kib) * u64::from(passes);
        match stored {
            Stored::Derived {
                algorithm: Algorithm::Argon2id,
                cost: Cost::Argon2 { memory_kib, passes, .. },
                pepper,
                ..
            } => {
                let (ours, our_pepper) = (self.cost(), self.pepper());
                // Without the old one it would stay as it is for ever.
                let other = our_pepper.is_some() && pepper.as_deref() != our_pepper.as_deref();
                other || work(*memory_kib, *passes) < work(ours.memory_kib, ours.passes)
            }
            _ => true,
        }
    }

    /// A fresh password for somebody who gave none (RFC 3062): 120 bits in 24 characters that are
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

    fn digest_matches(
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

    /// What a password is checked against where nothing slow is stored. None is right.
    fn dummy(&self) -> Slow {
        Slow {
            algorithm: Algorithm::Argon2id,
            cost: self.cost().into(),
            pepper: self.pepper().as_deref().map(str::to_owned),
            salt: vec![0; SALT_BYTES],
            expected: vec![0; DERIVED_BYTES],
            right: Verdict::Wrong,
        }
    }

    /// What is to be done when the turn for a derivation has come, and what that comes to.
    fn in_turn(&self, task: Box<Task>) -> (Derive, Derived) {
        let ((started, start), (finished, end)) = (oneshot::channel(), oneshot::channel());
        let engine = self.engine.clone();
        let derive = move |turn: Result<Turn, Error>| {
            let submitted = turn.and_then(|Turn { begun, thread }| {
                let done = move |task| {
                    // Nobody may be waiting any more: the connection is gone.
                    let _ = finished.send(Done { task, begun });
                    drop(thread);
                };
                Ok(engine.submit_task(task, done)?)
            });
            let _ = started.send(submitted);
        };
        (Box::new(derive), Derived { start, end })
    }
}

/// What is called when the turn for a derivation has come, or it is known that it never will.
type Derive = Box<dyn FnOnce(Result<Turn, Error>) + Send>;

/// A check that has not ended.
#[derive(Clone)]
struct Checking {
    passwords: Passwords,
    attempt: Attempt,
    entry: Option<EntryId>,
    password: Zeroizing<Vec<u8>>,
    slow: Vec<Slow>,
}

impl Checking {
    /// The verdict on this password, if it is known to be right without a derivation.
    fn recognise(&self, fast: &[Fast]) -> Result<Option<Verdict>, Error> {
        if let Some(right) = self.find(fast)? {
            return Ok(Some(right));
        }
        // Who does not exist is asked for as well.
        let dummy = self.slow.is_empty().then(|| self.passwords.dummy());
        Ok(self.slow.iter().chain(&dummy).find(|value| self.recalls(value)).map(|it| it.right))
    }

    /// Whether the engine remembers this password to be right for a value.
    fn recalls(&self, value: &Slow) -> bool {
        let session = self.passwords.session(value.algorithm, value.pepper.as_deref());
        let recall = |request: &mut Request<'_>| session?.run(request);
        matches!(self.verification(value, Effort::Recall).with(recall), Ok(1..))
    }

    /// The same, when the brake lets it. `None` also if it does not.
    async fn recognise_later(self, fast: Vec<Fast>) -> Option<Verdict> {
        let begun = self.passwords.admission.recognise(self.attempt).await.ok()?;
        let right = self.recognise(&fast).ok()??;
        begun.ended(true);
        Some(right)
    }

    /// Waits for a stranger's turn, and compares and derives then: what every wrong password goes through.
    async fn go_the_strangers_way(self, fast: Vec<Fast>) -> Result<Verdict, Error> {
        if fast.is_empty() {
            return self.derive_each(true).await;
        }
        let begun = self.passwords.admission.begin(self.attempt).await?;
        stages::lap(Stage::Queue);
        match self.compare(begun, &fast)? {
            Verdict::Wrong => self.derive_after().await,
            right => Ok(right),
        }
    }

    fn verification(&self, value: &Slow, effort: Effort) -> Operation {
        Operation::VerifyPassword {
            effort,
            cost: value.cost,
            entry: self.entry.map(|entry| entry.0.to_be_bytes().to_vec()).unwrap_or_default(),
            password: self.password.clone(),
            salt: value.salt.clone(),
            expected: value.expected.clone(),
        }
    }

    /// Compares with the values that can be checked on the spot, and notes how that ended.
    fn compare(&self, begun: Begun, fast: &[Fast]) -> Result<Verdict, Error> {
        let right = self.find(fast)?;
        begun.ended(right.is_some());
        Ok(right.unwrap_or(Verdict::Wrong))
    }

    /// What it means that the password is one of these, if it is.
    fn find(&self, fast: &[Fast]) -> Result<Option<Verdict>, Error> {
        for value in fast {
            let matches = match value.algorithm {
                None => value.expected.ct_eq(&self.password).into(),
                Some(algorithm) => {
                    let Fast { expected, salt, .. } = value;
                    self.passwords.digest_matches(algorithm, &self.password, salt, expected)?
                }
            };
            if matches {
                return Ok(Some(value.right));
            }
        }
        Ok(None)
    }

    /// Goes on when nothing on the spot has matched. If nothing else can match, this is for the
    /// time that it takes, and no other attempt.
    async fn derive_after(self) -> Result<Verdict, Error> {
        let begins = !self.slow.is_empty();
        self.derive_each(begins).await
    }

    /// Checks the values that take the slow class, each in a turn of its own, and notes how that
    /// ended. If the attempt begins with the first turn, the brake has a say in when that is.
    async fn derive_each(mut self, begins: bool) -> Result<Verdict, Error> {
        let mut begun = None;
        let mut without_pepper = None;
        if self.slow.is_empty() {
            self.slow.push(self.passwords.dummy());
        }
        while let Some(value) = self.slow.pop() {
            let session = self.passwords.session(value.algorithm, value.pepper.as_deref());
            let session = match session {
                Ok(session) => session,
                Err(error) => {
                    without_pepper = Some(error);
                    continue;
                }
            };
            let (derive, derived) = self
                .passwords
                .in_turn(Task::new(&session, self.verification(&value, Effort::Full)));
            let begins = begins && begun.is_none();
            let _place = self.passwords.admission.wait_for_thread(self.attempt, begins, derive);
            let Done { task, begun: began } = derived.end().await?;
            begun = begun.or(began);
            match task.result() {
                Err(keyway_engine::Error::Authentication) => {}
                result => {
                    result?;
                    begun.into_iter().for_each(|begun: Begun| begun.ended(value.right.is_right()));
                    return Ok(value.right);
                }
            }
        }
        begun.into_iter().for_each(|begun| begun.ended(false));
        match without_pepper {
            Some(error) => Err(Error::Pepper(error)),
            None => Ok(Verdict::Wrong),
        }
    }
}

/// A stored value that is checked on the spot.
#[derive(Clone)]
struct Fast {
    /// What makes the digest; `None` for the password itself.
    algorithm: Option<Algorithm>,
    expected: Zeroizing<Vec<u8>>,
    salt: Vec<u8>,
    right: Verdict,
}

/// Whether a match says that all of the password is right: bcrypt does not look at all of a long
/// one.
fn is_whole(stored: &Stored<'_>, password: &[u8]) -> bool {
    let bcrypt = matches!(stored, Stored::Derived { algorithm: Algorithm::Bcrypt, .. });
    !bcrypt || password.len() <= BCRYPT_PASSWORD_BYTES
}

/// A stored value that takes the slow class to check.
#[derive(Clone)]
struct Slow {
    algorithm: Algorithm,
    cost: Cost,
    pepper: Option<String>,
    salt: Vec<u8>,
    expected: Vec<u8>,
    /// What a match means.
    right: Verdict,
}

impl Slow {
    /// Whether the value can be checked against this password, and may be.
    fn fits(&self, password: &[u8]) -> bool {
        match self.cost {
            // The time grows with the password, so the two are bounded together.
            Cost::ShaCrypt { rounds } => {
                u64::from(rounds) * password.len() as u64 <= SHA_CRYPT_WORK_BYTES_MAX
            }
            // HMAC pads its key with zeros: to PBKDF2, and scrypt on it, a password and the same
            // followed by NUL are one. It is not the same password.
            Cost::Pbkdf2 { .. } | Cost::Scrypt { .. } => password.last() != Some(&0),
            // crypt(3) takes a password up to its first NUL. It is not the same password either.
            Cost::Bcrypt { .. } | Cost::Md5Crypt => !password.contains(&0),
            Cost::Argon2 { .. } => true,
        }
    }
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No value matched.
    Wrong,
    /// One did.
    Right {
        /// Its place among the values, if it takes a guesser less work than one that would be made
        /// now.
        outdated: Option<usize>,
    },
}

impl Verdict {
    /// Whether a value matched.
    pub fn is_right(self) -> bool {
        matches!(self, Verdict::Right { .. })
    }
}

/// A password check: done, or under way.
pub enum Check {
    /// It is done.
    Known(Verdict),
    /// Await it. Dropping it abandons the check.
    Pending(Pending),
}

/// A check that waits or is under way; resolves to its verdict.
pub type Pending = Pin<Box<dyn Future<Output = Result<Verdict, Error>> + Send>>;

/// A derivation that waits for its turn or is under way.
struct Derived {
    start: oneshot::Receiver<Result<(), Error>>,
    end: oneshot::Receiver<Done>,
}

/// What it came to.
struct Done {
    task: Box<Task>,
    /// The attempt that began with it.
    begun: Option<Begun>,
}

impl Derived {
    async fn end(self) -> Result<Done, Error> {
        let closed = |_| Error::Engine(keyway_engine::Error::Closed);
        let submitted = self.start.await.map_err(closed)?;
        stages::lap(Stage::Queue);
        submitted?;
        let done = self.end.await.map_err(closed);
        stages::lap(Stage::Crypto);
        done
    }
}

#[cfg(test)]
mod tests;
