//! Password values: what is stored, how one is made, how one is checked.
//!
//! Every primitive is an engine request. Plain digests run on the caller's stack; slow derivations
//! go to the engine's bounded pool, and a full pool is [`Error::Busy`]. What is stored names its
//! scheme and its cost; both are bounded by [`limits`], so that a hostile value cannot buy minutes
//! or gigabytes of ours.

pub mod limits;
mod scheme;
mod stored;

use keyway_engine::{Algorithm, Cost, Derivation, Engine};
use limits::*;
pub use scheme::Scheme;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::task::{Context, Poll, ready};
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
    /// The slow pool is full; try again later.
    Busy,
    /// The engine could not do it.
    Engine(keyway_engine::Error),
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
}

/// Makes and checks password values. Cheap to clone; used by all threads at once.
#[derive(Clone)]
pub struct Passwords {
    engine: Engine,
    policy: Arc<RwLock<Policy>>,
}

impl Passwords {
    /// New values are Argon2id of this cost. Values of the default schemes are verified.
    pub fn new(engine: Engine, cost: Argon2Cost) -> Self {
        let policy = Policy { cost, accepted: Scheme::defaults().into() };
        Passwords { engine, policy: Arc::new(RwLock::new(policy)) }
    }

    /// The same, but values of these schemes are verified, and Argon2's.
    #[must_use]
    pub fn accepting(self, schemes: &[Scheme]) -> Self {
        self.set_policy(self.cost(), schemes);
        self
    }

    /// New values are of this cost from now on, and those of these schemes are verified.
    pub fn set_policy(&self, cost: Argon2Cost, schemes: &[Scheme]) {
        let policy = Policy { cost, accepted: schemes.into() };
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    fn policy(&self) -> RwLockReadGuard<'_, Policy> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn cost(&self) -> Argon2Cost {
        self.policy().cost
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

    /// Starts to hash a password into the value to store. The work is submitted before this
    /// returns; dropping the future drops its result only.
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
        let cost = self.cost();
        let derived = self.derive(Derivation {
            algorithm: Algorithm::Argon2id,
            cost: cost.into(),
            password,
            salt: salt.clone(),
            output_bytes: DERIVED_BYTES,
        })?;
        Ok(async move { Ok(stored::argon2id(cost, &salt, &derived.await?)) })
    }

    /// Checks a password against an entry's stored values; any one that matches will do.
    ///
    /// A wrong password costs at least a check of a value of our own, whatever is stored: no such
    /// entry, no password, a fast hash, a scheme that is not known. So time does not tell who
    /// exists. What it can tell, until an upgrade, is that a stored value is slower than ours or
    /// that there are several slow ones. A right password has nothing to hide: one with a fast
    /// hash is answered at once.
    ///
    /// # Errors
    /// [`Error::Busy`] or the engine's; never for what is stored.
    pub fn check(&self, password: Zeroizing<Vec<u8>>, values: &[Vec<u8>]) -> Result<Check, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(Check::Known(Verdict::Wrong));
        }
        let mut slow = Vec::new();
        for (index, value) in values.iter().enumerate().take(STORED_VALUES_MAX) {
            let Ok(stored) = self.parse(value) else { continue };
            let right = Verdict::Right { outdated: self.is_outdated(&stored).then_some(index) };
            match stored {
                Stored::Clear(expected) => {
                    if bool::from(expected.ct_eq(&password)) {
                        return Ok(Check::Known(right));
                    }
                }
                Stored::Locked => {}
                Stored::Digest { algorithm, digest, salt } => {
                    if self.digest_matches(algorithm, &password, &salt, &digest)? {
                        return Ok(Check::Known(right));
                    }
                }
                Stored::Derived { algorithm, cost, salt, expected } => {
                    slow.push(Slow { algorithm, cost, salt, expected, right });
                }
            }
        }
        slow.retain(|value| value.fits(&password));
        let first = slow.pop().unwrap_or_else(|| self.dummy());
        let running = self.derive(first.derivation(&password))?;
        let passwords = self.clone();
        let Slow { expected, right, .. } = first;
        let pending = Pending { passwords, password, left: slow, expected, right, running };
        Ok(Check::Pending(Box::new(pending)))
    }

    /// Whether a value takes a guesser less work than one that would be made now.
    fn is_outdated(&self, stored: &Stored<'_>) -> bool {
        let work = |memory_kib, passes| u64::from(memory_kib) * u64::from(passes);
        match stored {
            Stored::Derived {
                algorithm: Algorithm::Argon2id,
                cost: Cost::Argon2 { memory_kib, passes, .. },
                ..
            } => {
                let ours = self.cost();
                work(*memory_kib, *passes) < work(ours.memory_kib, ours.passes)
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
            salt: vec![0; SALT_BYTES],
            expected: vec![0; DERIVED_BYTES],
            right: Verdict::Wrong,
        }
    }

    fn derive(&self, derivation: Derivation) -> Result<Derived, Error> {
        let (sender, receiver) = oneshot::channel();
        let done = Box::new(move |result| {
            // Nobody may be waiting any more: the connection is gone.
            let _ = sender.send(result);
        });
        self.engine.submit(derivation, done)?;
        Ok(Derived(receiver))
    }
}

/// A stored value that takes the slow class to check.
struct Slow {
    algorithm: Algorithm,
    cost: Cost,
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
            // HMAC pads its key with zeros: to PBKDF2, and scrypt on it, a password and the same followed by NUL
            // are one. It is not the same password.
            Cost::Pbkdf2 { .. } | Cost::Scrypt { .. } => password.last() != Some(&0),
            Cost::Argon2 { .. } => true,
        }
    }

    fn derivation(&self, password: &[u8]) -> Derivation {
        Derivation {
            algorithm: self.algorithm,
            cost: self.cost,
            password: Zeroizing::new(password.to_vec()),
            salt: self.salt.clone(),
            output_bytes: self.expected.len(),
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

/// A password check: done, or under way in the slow class.
pub enum Check {
    /// It is done.
    Known(Verdict),
    /// Await it.
    Pending(Box<Pending>),
}

/// A check under way; resolves to its verdict. Dropping it abandons the check.
pub struct Pending {
    passwords: Passwords,
    password: Zeroizing<Vec<u8>>,
    left: Vec<Slow>,
    expected: Vec<u8>,
    right: Verdict,
    running: Derived,
}

impl Future for Pending {
    type Output = Result<Verdict, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            let derived = ready!(Pin::new(&mut this.running).poll(context))?;
            if bool::from(derived.ct_eq(&this.expected)) {
                return Poll::Ready(Ok(this.right));
            }
            let Some(next) = this.left.pop() else {
                return Poll::Ready(Ok(Verdict::Wrong));
            };
            this.running = this.passwords.derive(next.derivation(&this.password))?;
            this.expected = next.expected;
            this.right = next.right;
        }
    }
}

/// The engine's answer to one submitted derivation.
struct Derived(oneshot::Receiver<Result<Zeroizing<Vec<u8>>, keyway_engine::Error>>);

impl Future for Derived {
    type Output = Result<Zeroizing<Vec<u8>>, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(match result {
            Ok(result) => result.map_err(Error::from),
            Err(_) => Err(Error::Engine(keyway_engine::Error::Closed)),
        })
    }
}

#[cfg(test)]
mod tests;
