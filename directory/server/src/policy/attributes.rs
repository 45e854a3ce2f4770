//! The attributes of an entry that are about its password.

use keyway_schema::EntryAttributes;
use keyway_store::EntryRef;

/// The attribute that passwords are in.
pub const USER_PASSWORD: &str = "userPassword";

pub(crate) const CHANGED_TIME: &str = "pwdChangedTime";
pub(crate) const LOCKED_TIME: &str = "pwdAccountLockedTime";
pub(crate) const FAILURE_TIME: &str = "pwdFailureTime";
pub(crate) const HISTORY: &str = "pwdHistory";
pub(crate) const GRACE_USE_TIME: &str = "pwdGraceUseTime";
pub(crate) const RESET: &str = "pwdReset";
pub(crate) const POLICY_SUBENTRY: &str = "pwdPolicySubentry";
pub(crate) const START_TIME: &str = "pwdStartTime";
pub(crate) const END_TIME: &str = "pwdEndTime";
pub(crate) const LAST_SUCCESS: &str = "pwdLastSuccess";
/// The attribute that 389 Directory Server disables an account with.
pub(crate) const ACCOUNT_LOCK: &str = "nsAccountLock";

/// The attributes that the server notes by itself.
pub(crate) const KEPT: [&str; 7] =
    [CHANGED_TIME, LOCKED_TIME, FAILURE_TIME, HISTORY, GRACE_USE_TIME, RESET, LAST_SUCCESS];

/// Whether an attribute is about the account. Most are not, and are told from it by a letter.
pub(crate) fn is_state(name: &str) -> bool {
    name.starts_with("pwd") || name == ACCOUNT_LOCK
}

/// Sets an attribute to these values; without any it goes.
pub(crate) fn put<V: Into<Vec<u8>>>(
    attributes: &mut EntryAttributes,
    name: &str,
    values: impl IntoIterator<Item = V>,
) {
    let values: Vec<Vec<u8>> = values.into_iter().map(Into::into).collect();
    if values.is_empty() {
        remove(attributes, name);
    } else if let Some((_, held)) = attributes.iter_mut().find(|(stored, _)| stored == name) {
        *held = values;
    } else {
        attributes.push((name.to_owned(), values));
    }
}

pub(crate) fn remove(attributes: &mut EntryAttributes, name: &str) {
    attributes.retain(|(stored, _)| stored != name);
}

/// The name of the policy that an entry asks for.
pub(crate) fn subentry<'t>(entry: &EntryRef<'t>) -> Option<&'t str> {
    str::from_utf8(entry.values(POLICY_SUBENTRY).next()?).ok()
}
