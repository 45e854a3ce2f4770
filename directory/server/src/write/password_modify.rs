//! Password Modify (RFC 3062): a password that is changed by an operation of its own.

use super::secret::hashed_already;
use super::submit::RequestOrigin;
use super::validate::Validation;
use crate::access::Subject;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::log::Audit;
use keyway_codec::message::ResultCode;
use keyway_password::{BindHistory, Given, PasswordCheck};
use zeroize::Zeroizing;

/// The answer where a password of no entry is to be changed; also of one that the subject may not know of.
pub fn no_such_identity() -> Failure {
    Failure::new(ResultCode::NoSuchObject, "no entry is of that identity")
}

/// A password change that was asked for by an extended operation (RFC 3062).
pub struct PasswordModify {
    /// The request that asks for it.
    pub origin: RequestOrigin,
    /// Who asks for it.
    pub subject: Subject,
    /// The DN of the entry whose password it is.
    pub target: String,
    /// The password that the entry has, if the client gave it.
    pub old: Option<Zeroizing<Vec<u8>>>,
    /// The password that it is to have.
    pub new: Zeroizing<Vec<u8>>,
    /// Whether the server has made the new one.
    pub is_generated: bool,
    /// The line of the audit log, if there is to be one.
    pub audit: Option<Audit>,
}

impl PasswordModify {
    /// The password that a client gave.
    ///
    /// # Errors
    /// `constraintViolation` for a value that names a scheme: as in a modify, it is never taken for the password
    /// itself.
    pub fn given(new: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        match keyway_password::classify(new) {
            Ok(Given::Password(new)) => Ok(Zeroizing::new(new.to_vec())),
            Ok(Given::Hashed) => Err(hashed_already()),
            Err(error) => Err(Failure::new(ResultCode::ConstraintViolation, error.to_string())),
        }
    }

    /// Changes it. Returns the new password if the server has made it.
    ///
    /// # Errors
    /// `insufficientAccessRights`, `noSuchObject`, `invalidCredentials` for a wrong old password, what the
    /// policy refuses, or the store's or the engine's.
    pub async fn carry_out(mut self, directory: &Directory) -> Result<Option<Zeroizing<Vec<u8>>>> {
        // Asked first, so that this is no way to try passwords of others.
        let allowed = directory.may_set_password(&self.subject, &self.target);
        allowed.map_err(|failure| match failure.code {
            ResultCode::NoSuchObject => no_such_identity(),
            _ => failure,
        })?;
        if let Some(old) = &self.old {
            self.check_old(directory, old).await?;
        }
        let validation = Validation {
            subject: &self.subject,
            from: self.origin.from,
            gave_old: self.old.is_some(),
            // A password that is made here is good enough.
            is_good: self.is_generated,
        };
        validation.validate(directory, &self.target, &self.new).await?;
        let hashed = directory.shared.passwords.hash(self.new.clone())?.await?;
        let audit = self.audit.take();
        let PasswordModify { subject, target, .. } = &self;
        let gave_old = self.old.is_some();
        let password = (target.as_str(), hashed, gave_old);
        let set: Result<_> = directory.set_password(subject, password, self.origin, audit).await;
        set?;
        Ok(self.is_generated.then_some(self.new))
    }

    async fn check_old(&self, directory: &Directory, old: &Zeroizing<Vec<u8>>) -> Result<()> {
        let name = directory.entry_name(&self.target)?;
        let found = directory.credentials_of(&name)?;
        let entry = found.as_ref().and_then(|found| found.subject.id());
        let values = found.map(|found| found.passwords).unwrap_or_default();
        let passwords = &directory.shared.passwords;
        // A connection tries many of these at once, so that how it has fared says nothing.
        let attempt =
            passwords.attempt(self.origin.from, &name.name().canonical(), BindHistory::default());
        let verdict = match passwords.check(attempt, entry.map(|id| id.0), old.clone(), &values)? {
            PasswordCheck::Known(verdict) => verdict,
            PasswordCheck::Pending(pending) => pending.await?,
        };
        if verdict.is_right() {
            return Ok(());
        }
        Err(Failure::new(ResultCode::InvalidCredentials, "the old password is another"))
    }
}
