//! Whether a password is good enough: its length, and that it is not made of its owner's names.
//!
//! pwdCheckQuality 1 and 2 are the same here: who may bring a password that is hashed already, and
//! so cannot be checked, is the administrator, and no policy is his.

use super::limits::{DIFFERENT_CHARACTERS_MIN, NAME_CHARACTERS_MIN};
use super::rules::Policy;
use crate::failure::{Failure, Result};
use keyway_codec::message::ResultCode;
use keyway_codec::password_policy::PasswordError;
use std::collections::BTreeSet;
use zeroize::Zeroizing;

/// Attributes whose values may not be in the password.
pub const NAMES: &[&str] = &["uid", "cn", "givenName", "sn", "displayName", "mail"];

/// Checks a password by a policy, beside its owner's names: values of [`NAMES`].
///
/// # Errors
/// `constraintViolation`, and which of the policy's errors it is.
pub fn check<'v>(
    policy: &Policy,
    password: &[u8],
    names: impl Iterator<Item = &'v [u8]>,
) -> Result<()> {
    if policy.check_quality == 0 {
        return Ok(());
    }
    let text = Zeroizing::new(String::from_utf8_lossy(password).to_lowercase());
    // If it is no text, each byte counts.
    let length = str::from_utf8(password).map_or(password.len(), |text| text.chars().count());
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    if length < policy.min_length {
        let why = format!("a password has at least {} characters", policy.min_length);
        return Err(refused(PasswordError::PasswordTooShort, why));
    }
    if policy.max_length > 0 && length > policy.max_length {
        let why = format!("a password has at most {} characters", policy.max_length);
        return Err(refused(PasswordError::PasswordTooLong, why));
    }
    let different: BTreeSet<char> = text.chars().collect();
    if different.len() < DIFFERENT_CHARACTERS_MIN.min(usize::try_from(length).unwrap_or(0)) {
        let why =
            format!("a password has at least {DIFFERENT_CHARACTERS_MIN} different characters");
        return Err(refused(PasswordError::InsufficientPasswordQuality, why));
    }
    for name in names {
        let name = String::from_utf8_lossy(name).to_lowercase();
        let name = name.split('@').next().unwrap_or_default();
        if name.chars().count() >= NAME_CHARACTERS_MIN && text.contains(name) {
            let why = "a password does not contain a name of its owner";
            return Err(refused(PasswordError::InsufficientPasswordQuality, why));
        }
    }
    Ok(())
}

fn refused(error: PasswordError, why: impl Into<String>) -> Failure {
    Failure::policy(ResultCode::ConstraintViolation, error, why)
}
