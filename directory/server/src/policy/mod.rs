//! Password policy (draft-behera-ldap-password-policy-10): who is locked out, whose password has
//! expired or must be changed, and what a new one has to be.
//!
//! A policy is an entry of class `pwdPolicy`; an entry names its own in `pwdPolicySubentry`, and the
//! settings may name one for all others. What is noted of an account is ordinary operational
//! attributes of its entry. `docs/design/004-passwords.md` says how lockout goes together with the
//! brake on guessing.
//!
//! - [`rules`]: what a policy says
//! - [`account`]: what is noted of an account, and what follows from both
//! - [`pending`]: what has happened and is not in the entry yet
//! - [`quality`], [`change`], [`history`]: what a new password has to be, and what it changes

pub mod account;
mod change;
mod history;
pub mod limits;
mod pending;
mod quality;
mod rules;
#[cfg(test)]
mod tests;
mod time;

pub(crate) use quality::NAMES as OWNER_NAMES;

pub(crate) use account::{Account, Age, Events, Lock, Status};
pub(crate) use change::{PasswordChange, Upkeep, check_new, in_history};
pub(crate) use pending::{Event, Pending};
pub(crate) use rules::Policy;
pub(crate) use time::micros;

use crate::directory::Core;
use crate::failure::Result;
use crate::log::{Severity, Value};
use crate::naming::{self, Place};
use keyway_codec::message::ResultCode;
use keyway_schema::{EntryAttributes, EntryName, OBJECT_CLASS};
use keyway_store::{EntryId, EntryRef, View};
use limits::POLICIES_KEPT_MAX;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

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
/// What 389 Directory Server disables an account with.
pub(crate) const ACCOUNT_LOCK: &str = "nsAccountLock";

/// What the server notes by itself.
pub(crate) const KEPT: [&str; 7] =
    [CHANGED_TIME, LOCKED_TIME, FAILURE_TIME, HISTORY, GRACE_USE_TIME, RESET, LAST_SUCCESS];

/// Whether an attribute is about the account. Most are not, and are told from it by a letter.
fn is_state(name: &str) -> bool {
    name.starts_with("pwd") || name == ACCOUNT_LOCK
}

/// Sets an attribute to these values; without any it goes.
fn put<V: Into<Vec<u8>>>(
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

fn remove(attributes: &mut EntryAttributes, name: &str) {
    attributes.retain(|(stored, _)| stored != name);
}

/// The policies there are, and what has happened to accounts.
pub(crate) struct Policies {
    defaults: RwLock<Defaults>,
    kept: Mutex<Kept>,
    pub pending: Pending,
}

/// What holds for entries that name no policy.
struct Defaults {
    dn: Option<Arc<str>>,
    built_in: Arc<Policy>,
}

/// Policies of one state of the store, by the names that they were found by.
#[derive(Default)]
struct Kept {
    version: u64,
    policies: HashMap<String, Arc<Policy>>,
    /// The names of policies that were missed, so that it is said once of each.
    missed: Vec<String>,
}

impl Policies {
    /// Policies of which the one of this name is that of all entries that name none. Without a name,
    /// these have passwords of at least so many characters.
    pub fn new(dn: Option<&str>, min_length: u32) -> Policies {
        let defaults = RwLock::new(Defaults::new(dn, min_length));
        Policies { defaults, kept: Mutex::default(), pending: Pending::default() }
    }

    /// Takes another default from now on.
    pub fn set(&self, dn: Option<&str>, min_length: u32) {
        *self.defaults.write().unwrap_or_else(PoisonError::into_inner) =
            Defaults::new(dn, min_length);
        *self.kept() = Kept::default();
    }

    /// The policy of an entry that names `own`, if it names one. `version` is that of a committed state,
    /// whose policies may be remembered.
    pub fn of(
        &self,
        core: &Core,
        view: View<'_>,
        version: Option<u64>,
        own: Option<&str>,
    ) -> Result<Arc<Policy>> {
        let (default, built_in) = {
            let defaults = self.defaults.read().unwrap_or_else(PoisonError::into_inner);
            (defaults.dn.clone(), defaults.built_in.clone())
        };
        for dn in own.into_iter().chain(default.as_deref()) {
            if let Some(policy) = self.named(core, view, version, dn)? {
                return Ok(policy);
            }
        }
        Ok(built_in)
    }

    fn named(
        &self,
        core: &Core,
        view: View<'_>,
        version: Option<u64>,
        dn: &str,
    ) -> Result<Option<Arc<Policy>>> {
        if let Some(version) = version
            && let Some(policy) = self.kept().at(version).get(dn)
        {
            return Ok(Some(policy.clone()));
        }
        let Some(policy) = read(core, view, dn)?.map(Arc::new) else {
            self.miss(core, dn);
            return Ok(None);
        };
        if let Some(version) = version {
            let mut kept = self.kept();
            let policies = kept.at(version);
            if policies.len() < POLICIES_KEPT_MAX {
                policies.insert(dn.to_owned(), policy.clone());
            }
        }
        Ok(Some(policy))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that there is no such policy, unless that was said before.
    fn miss(&self, core: &Core, dn: &str) {
        let missed = &mut self.kept().missed;
        if missed.len() >= POLICIES_KEPT_MAX || missed.iter().any(|known| known == dn) {
            return;
        }
        missed.push(dn.to_owned());
        let text = "there is no entry of class pwdPolicy of this name: accounts that are to have it \
                    have the default policy, or the built-in one";
        let fields = [("dn", Value::Text(dn)), ("text", Value::Text(text))];
        core.shared.log.say(core.shared.now(), Severity::Warning, "password-policy", &fields);
    }
}

impl Defaults {
    fn new(dn: Option<&str>, min_length: u32) -> Defaults {
        let built_in = Arc::new(Policy::built_in(min_length));
        Defaults { dn: dn.map(Arc::from), built_in }
    }
}

impl Kept {
    /// What is remembered of this state; of others nothing is.
    fn at(&mut self, version: u64) -> &mut HashMap<String, Arc<Policy>> {
        if self.version != version {
            self.version = version;
            self.policies.clear();
        }
        &mut self.policies
    }
}

/// The attributes of an entry as they are to be seen, where its account has changed and the state of the
/// store that they are of may lack it: a bind is answered before what follows from it is written.
pub(crate) fn as_seen(
    core: &Core,
    view: View<'_>,
    version: u64,
    id: EntryId,
    entry: &EntryRef<'_>,
) -> Result<Option<EntryAttributes>> {
    let pending = &core.shared.policies.pending;
    if !pending.is_ahead_of(version) {
        return Ok(None);
    }
    let events = pending.events(id);
    if events.is_empty() {
        return Ok(None);
    }
    let policy = core.shared.policies.of(core, view, Some(version), subentry(entry))?;
    let account = Account::read(&core.schema, entry);
    let account = events.iter().fold(account, |account, events| account.after(&policy, events));
    let mut attributes = entry.to_entry().attributes;
    account.put(&mut attributes);
    Ok(Some(attributes))
}

/// The policy of this name; `None` if no entry of that class has it.
fn read(core: &Core, view: View<'_>, dn: &str) -> Result<Option<Policy>> {
    let Ok(name) = EntryName::parse(&core.schema, dn) else { return Ok(None) };
    let contexts = core.shared.contexts();
    let Place::Inside { context, below } = naming::place(&contexts, &name) else { return Ok(None) };
    let id = match naming::resolve(view, context, &name, below) {
        Ok(id) => id,
        Err(failure) if failure.code == ResultCode::NoSuchObject => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let entry = view.entry(id)?;
    Ok(entry.filter(is_policy).map(|entry| Policy::read(&entry)))
}

fn is_policy(entry: &EntryRef<'_>) -> bool {
    let mut classes = entry.values(OBJECT_CLASS);
    classes.any(|class| class.eq_ignore_ascii_case(b"pwdPolicy") || class == CLASS_OID)
}

const CLASS_OID: &[u8] = b"1.3.6.1.4.1.42.2.27.8.2.1";

/// The name of the policy that an entry asks for.
pub(crate) fn subentry<'t>(entry: &EntryRef<'t>) -> Option<&'t str> {
    str::from_utf8(entry.values(POLICY_SUBENTRY).next()?).ok()
}
