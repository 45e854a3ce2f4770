//! Passwords in a write: none of them reaches the store as it was given.

use super::modify::Modify;
use super::operation::Operation;
use crate::failure::{Failure, Result};
use crate::policy::USER_PASSWORD;
use keyway_codec::message::ResultCode;
use keyway_password::{Given, Passwords};
use keyway_schema::base;
use std::pin::Pin;
use zeroize::{Zeroize, Zeroizing};

/// The giver of the passwords of an operation; it says whether they may be hashed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasswordSource {
    /// A user. It could give a hash that costs a guesser nothing, or one that many passwords
    /// match, and it gives passwords only.
    User,
    /// The administrator. It may bring what another server stored, if it can be verified here.
    Administrator,
    /// An import. It brings whatever another server stored; a value that cannot be verified here
    /// matches nothing.
    Import,
}

type Hash = Pin<Box<dyn Future<Output = Result<Vec<u8>, keyway_password::Error>> + Send>>;

/// Passwords that are being hashed, and where they go.
pub(crate) struct Secrets {
    hashes: Vec<(usize, Hash)>,
    /// The labels of those that cannot be verified.
    pub unverified: Vec<String>,
}

impl Secrets {
    /// Takes the passwords out of an operation and starts to hash them.
    ///
    /// # Errors
    /// `constraintViolation` for a value of an unknown scheme, one that is hashed already and may
    /// not be, or a password that is too long; `busy`, or the engine's.
    pub fn take(
        passwords: &Passwords,
        operation: &mut Operation,
        source: PasswordSource,
    ) -> Result<Secrets> {
        let mut hashes: Vec<(usize, Hash)> = Vec::new();
        let mut unverified = Vec::new();
        for (index, value) in values(operation).enumerate() {
            match passwords.classify(value) {
                Ok(Given::Password(password)) => {
                    let password = Zeroizing::new(password.to_vec());
                    value.zeroize();
                    hashes.push((index, Box::pin(passwords.hash(password)?)));
                }
                Ok(Given::Hashed) if source == PasswordSource::User => return Err(hashed_already()),
                Ok(Given::Hashed) => {}
                Err(error) if source == PasswordSource::Import => {
                    unverified.push(Passwords::label(value, error));
                }
                Err(error) => {
                    let text = error.to_string();
                    return Err(Failure::new(ResultCode::ConstraintViolation, text));
                }
            }
        }
        Ok(Secrets { hashes, unverified })
    }

    /// Hashes the passwords of an operation with a hash that is fast, and says how many there were.
    ///
    /// # Errors
    /// `constraintViolation` for a password that is too long; the engine's.
    pub fn store_fast(passwords: &Passwords, operation: &mut Operation) -> Result<u64> {
        let mut count = 0;
        for value in values(operation) {
            if let Ok(Given::Password(password)) = passwords.classify(value) {
                let hashed = passwords.hash_fast(password)?;
                value.zeroize();
                *value = hashed;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Whether there is nothing to wait for.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// How many passwords are being hashed.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Puts the hashes where the passwords were.
    pub async fn put_hashed(self, operation: &mut Operation) -> Result<()> {
        for (index, hash) in self.hashes {
            let hashed = hash.await?;
            if let Some(value) = values(operation).nth(index) {
                *value = hashed;
            }
        }
        Ok(())
    }
}

/// The passwords that a modify would store and that are not hashed yet.
pub(super) fn clear_values(passwords: &Passwords, modify: &Modify) -> Vec<Zeroizing<Vec<u8>>> {
    let edits = modify.edits.iter();
    let stored = edits.filter(|edit| edit.stores() && base(&edit.name) == USER_PASSWORD);
    let clear =
        stored.flat_map(|edit| &edit.values).filter_map(|value| match passwords.classify(value) {
            Ok(Given::Password(password)) => Some(Zeroizing::new(password.to_vec())),
            _ => None,
        });
    clear.collect()
}

/// The answer to a value that is hashed already.
pub(crate) fn hashed_already() -> Failure {
    Failure::new(
        ResultCode::ConstraintViolation,
        "the value is hashed already, and only an administrator may store such a one; give the \
         password itself, it is hashed here",
    )
}

/// The password values that an operation would store, always in the same order.
fn values(operation: &mut Operation) -> impl Iterator<Item = &mut Vec<u8>> {
    let (added, edited) = match operation {
        Operation::Add(add) => (Some(add.attributes.iter_mut()), None),
        Operation::Modify(modify) => (None, Some(modify.edits.iter_mut())),
        Operation::Delete(_)
        | Operation::Rename(_)
        | Operation::Redefine(_)
        | Operation::Virtual(_) => (None, None),
    };
    let added = added.into_iter().flatten().map(|(name, values)| (&*name, values));
    let edited = edited.into_iter().flatten();
    let edited = edited.filter(|edit| edit.stores()).map(|edit| (&edit.name, &mut edit.values));
    let all = added.map(|(name, values)| (name.as_str(), values));
    let all = all.chain(edited.map(|(name, values)| (name.as_str(), values)));
    all.filter(|(name, _)| base(name) == USER_PASSWORD).flat_map(|(_, values)| values)
}

impl Operation {
    /// The giver of the passwords that it would store.
    pub(super) fn password_source(&self) -> PasswordSource {
        let request = match self {
            Operation::Add(add) => add.request(),
            Operation::Modify(modify) => modify.request(),
            // They store none.
            Operation::Delete(_)
            | Operation::Rename(_)
            | Operation::Redefine(_)
            | Operation::Virtual(_) => return PasswordSource::User,
        };
        if request.is_relaxed {
            // Whatever was stored comes back.
            PasswordSource::Import
        } else if request.subject.is_administrator() {
            PasswordSource::Administrator
        } else {
            PasswordSource::User
        }
    }
}
