//! A password checked against stored values, at once or in its turn.

use crate::admission::{Attempt, Begun, Recognition};
use crate::derivation::{Done, Lap};
use crate::error::Error;
use crate::limits::*;
use crate::passwords::Passwords;
use crate::stored::Stored;
use futures_util::future::{Either, select};
use keyway_engine::{Algorithm, Cost, Effort, Operation, Request, Task};
use std::future::Future;
use std::pin::Pin;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// No value matched.
    Wrong,
    /// One did.
    Right {
        /// Its place among the values, if it takes a guesser less work than one that would be made
        /// now.
        outdated: Option<usize>,
    },
}

impl CheckOutcome {
    /// Whether a value matched.
    pub fn is_right(self) -> bool {
        matches!(self, CheckOutcome::Right { .. })
    }
}

/// A password check: done, or under way.
pub enum PasswordCheck {
    /// It is done.
    Known(CheckOutcome),
    /// Await it. Dropping it abandons the check.
    Pending(Pending),
}

/// A check that waits or is under way; resolves to its verdict.
pub type Pending = Pin<Box<dyn Future<Output = Result<CheckOutcome, Error>> + Send>>;

impl Passwords {
    /// Checks a password against an entry's stored values; any one that matches will do. `entry` is the entry's
    /// number, which no other entry has at any time.
    ///
    /// A wrong password costs at least a check of a value of our own, whatever is stored: no such
    /// entry, no password, a fast hash, a scheme that is not known. So time does not tell who
    /// exists. Until an upgrade it can tell only that a stored value is slower than ours, or
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
        entry: Option<u64>,
        password: Zeroizing<Vec<u8>>,
        values: &[Vec<u8>],
    ) -> Result<PasswordCheck, Error> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(PasswordCheck::Known(CheckOutcome::Wrong));
        }
        let (fast, slow) = self.understand(values, &password);
        let checking = Checking { passwords: self.clone(), attempt, entry, password, slow };
        let recognition = self.admission.recognition(attempt);
        // Compared for every client, so that it takes as long; told only to one that may know.
        let recognised = checking.recognise(&fast)?;
        match (recognition, recognised) {
            (Recognition::Now(begun), Some(right)) => {
                begun.ended(true);
                return Ok(PasswordCheck::Known(right));
            }
            (Recognition::Later, _) => {
                let recognise = checking.clone().recognise_later(fast.clone());
                let check = Box::pin(checking.go_the_strangers_way(fast));
                return Ok(PasswordCheck::Pending(Box::pin(async move {
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
                CheckOutcome::Wrong => PasswordCheck::Pending(Box::pin(checking.derive_after())),
                right => PasswordCheck::Known(right),
            }),
            None => Ok(PasswordCheck::Pending(Box::pin(checking.go_the_strangers_way(fast)))),
        }
    }

    /// Whether one of these values is that of a password. It is no attempt at any: the client that asks may set
    /// the password of this `entry`. All the same he waits for his turn, as an attempt would.
    ///
    /// # Errors
    /// As [`Passwords::check`].
    pub async fn is_one_of(
        &self,
        attempt: Attempt,
        entry: u64,
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
                // No client can have shown a password whose pepper is gone.
                Ok(CheckOutcome::Wrong) | Err(Error::Pepper(_)) => {}
                other => return other.map(CheckOutcome::is_right),
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
            let right = CheckOutcome::Right { outdated: outdated.then_some(index) };
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

    /// The value that a password is checked against where nothing slow is stored. No password is right.
    fn dummy(&self) -> Slow {
        Slow {
            algorithm: Algorithm::Argon2id,
            cost: self.cost().into(),
            pepper: self.pepper().as_deref().map(str::to_owned),
            salt: vec![0; SALT_BYTES],
            expected: vec![0; DERIVED_BYTES],
            right: CheckOutcome::Wrong,
        }
    }
}

/// A check that has not ended.
#[derive(Clone)]
struct Checking {
    passwords: Passwords,
    attempt: Attempt,
    entry: Option<u64>,
    password: Zeroizing<Vec<u8>>,
    slow: Vec<Slow>,
}

impl Checking {
    /// The verdict on this password, if it is known to be right without a derivation.
    fn recognise(&self, fast: &[Fast]) -> Result<Option<CheckOutcome>, Error> {
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

    /// As [`Checking::recognise`], when the brake lets it. `None` also if it does not.
    async fn recognise_later(self, fast: Vec<Fast>) -> Option<CheckOutcome> {
        let begun = self.passwords.admission.recognise(self.attempt).await.ok()?;
        let right = self.recognise(&fast).ok()??;
        begun.ended(true);
        Some(right)
    }

    /// Waits for a stranger's turn, and compares and derives then: what every wrong password goes through.
    async fn go_the_strangers_way(self, fast: Vec<Fast>) -> Result<CheckOutcome, Error> {
        if fast.is_empty() {
            return self.derive_each(true).await;
        }
        let begun = self.passwords.admission.begin(self.attempt).await?;
        (self.passwords.lap)(Lap::Waiting);
        match self.compare(begun, &fast)? {
            CheckOutcome::Wrong => self.derive_after().await,
            right => Ok(right),
        }
    }

    fn verification(&self, value: &Slow, effort: Effort) -> Operation {
        Operation::VerifyPassword {
            effort,
            cost: value.cost,
            entry: self.entry.map(|entry| entry.to_be_bytes().to_vec()).unwrap_or_default(),
            password: self.password.clone(),
            salt: value.salt.clone(),
            expected: value.expected.clone(),
        }
    }

    /// Compares with the values that can be checked on the spot, and notes how that ended.
    fn compare(&self, begun: Begun, fast: &[Fast]) -> Result<CheckOutcome, Error> {
        let right = self.find(fast)?;
        begun.ended(right.is_some());
        Ok(right.unwrap_or(CheckOutcome::Wrong))
    }

    /// The meaning of the password as one of these, if it is one.
    fn find(&self, fast: &[Fast]) -> Result<Option<CheckOutcome>, Error> {
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
    async fn derive_after(self) -> Result<CheckOutcome, Error> {
        let begins = !self.slow.is_empty();
        self.derive_each(begins).await
    }

    /// Checks the values that take the slow class, each in a turn of its own, and notes how that
    /// ended. If the attempt begins with the first turn, the brake has a say in when that is.
    async fn derive_each(mut self, begins: bool) -> Result<CheckOutcome, Error> {
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
            None => Ok(CheckOutcome::Wrong),
        }
    }
}

/// A stored value that is checked on the spot.
#[derive(Clone)]
struct Fast {
    /// The algorithm of the digest; `None` for the password itself.
    algorithm: Option<Algorithm>,
    expected: Zeroizing<Vec<u8>>,
    salt: Vec<u8>,
    right: CheckOutcome,
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
    /// The meaning of a match.
    right: CheckOutcome,
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
