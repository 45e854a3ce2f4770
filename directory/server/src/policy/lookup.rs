//! The policy of an entry, looked up.

use super::account::Account;
use super::attributes::subentry;
use super::limits::POLICIES_KEPT_MAX;
use super::policies::Policies;
use super::rules::Policy;
use crate::failure::Result;
use crate::log::{Severity, Value};
use crate::naming::{self, Place};
use crate::state::Snapshot;
use keyway_codec::message::ResultCode;
use keyway_schema::{EntryAttributes, EntryName, OBJECT_CLASS};
use keyway_store::{EntryId, EntryRef, View};
use std::sync::Arc;

impl Policies {
    /// The policy of an entry that names `own`, if it names one. `version` is that of a committed state,
    /// whose policies may be remembered.
    pub fn of(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        version: Option<u64>,
        own: Option<&str>,
    ) -> Result<Arc<Policy>> {
        let (default, built_in) = self.defaults();
        for dn in own.into_iter().chain(default.as_deref()) {
            if let Some(policy) = self.named(snapshot, view, version, dn)? {
                return Ok(policy);
            }
        }
        Ok(built_in)
    }

    fn named(
        &self,
        snapshot: &Snapshot,
        view: View<'_>,
        version: Option<u64>,
        dn: &str,
    ) -> Result<Option<Arc<Policy>>> {
        if let Some(version) = version
            && let Some(policy) = self.kept().at(version).get(dn)
        {
            return Ok(Some(policy.clone()));
        }
        let Some(policy) = read(snapshot, view, dn)?.map(Arc::new) else {
            self.miss(snapshot, dn);
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

    /// Says that there is no such policy, unless that was said before.
    fn miss(&self, snapshot: &Snapshot, dn: &str) {
        let missed = &mut self.kept().missed;
        if missed.len() >= POLICIES_KEPT_MAX || missed.iter().any(|known| known == dn) {
            return;
        }
        missed.push(dn.to_owned());
        let text = "there is no entry of class pwdPolicy of this name: accounts that are to have it \
                    have the default policy, or the built-in one";
        let fields = [("dn", Value::Text(dn)), ("text", Value::Text(text))];
        snapshot.shared.log.say(
            snapshot.shared.now(),
            Severity::Warning,
            "password-policy",
            &fields,
        );
    }
}

/// The attributes of an entry as they are to be seen, where its account has changed and the state of the
/// store that they are of may lack it: a bind is answered before what follows from it is written.
pub(crate) fn as_seen(
    snapshot: &Snapshot,
    view: View<'_>,
    version: u64,
    id: EntryId,
    entry: &EntryRef<'_>,
) -> Result<Option<EntryAttributes>> {
    let pending = &snapshot.shared.policies.pending;
    if !pending.is_ahead_of(version) {
        return Ok(None);
    }
    let events = pending.events(id);
    if events.is_empty() {
        return Ok(None);
    }
    let policy = snapshot.shared.policies.of(snapshot, view, Some(version), subentry(entry))?;
    let account = Account::read(&snapshot.schema, entry);
    let account = events.iter().fold(account, |account, events| account.after(&policy, events));
    let mut attributes = entry.to_entry().attributes;
    account.put(&mut attributes);
    Ok(Some(attributes))
}

/// The policy of this name; `None` if no entry of that class has it.
fn read(snapshot: &Snapshot, view: View<'_>, dn: &str) -> Result<Option<Policy>> {
    let Ok(name) = EntryName::parse(&snapshot.schema, dn) else { return Ok(None) };
    let contexts = snapshot.shared.contexts();
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
