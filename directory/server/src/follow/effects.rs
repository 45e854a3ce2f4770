//! What a row's changes have to do with that is not in the store.

use crate::access::{RULE, holds_rules};
use crate::directory::Directory;
use crate::failure::Result;
use crate::feed::{ChangeNote, Reason};
use crate::naming_contexts::{META_CONTEXTS, load_contexts};
use crate::policy::{USER_PASSWORD, is_state};
use crate::state::Snapshot;
use crate::write::take_rules;
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_schema::base;
use keyway_store::{Change, EntryId, RawRow};

/// What is to be looked up again when rows are in the store.
#[derive(Default)]
pub(super) struct Effects {
    rules: bool,
    groups: bool,
    contexts: bool,
    /// Accounts that were changed by something else than a bind.
    accounts: Vec<EntryId>,
}

impl Effects {
    /// Those of rows.
    pub fn of(snapshot: &Snapshot, rows: &[RawRow]) -> Effects {
        let mut effects = Effects::default();
        let is_of_binds =
            |note: &[u8]| ChangeNote::decode(note).is_some_and(|note| note.reason == Reason::Bind);
        for row in rows {
            let of_binds = row.notes().all(is_of_binds);
            row.changes().for_each(|change| effects.add(snapshot, change, of_binds));
        }
        effects
    }

    fn add(&mut self, snapshot: &Snapshot, change: &Change, of_binds: bool) {
        let is_membership = |name: &str| snapshot.integrity.is_membership(name);
        match change {
            Change::Inserted(whole) => {
                self.rules |= holds_rules(&whole.entry.attributes);
                let names = whole.entry.attributes.iter().map(|(name, _)| name);
                let large = whole.entry.large.iter().map(|large| &large.name);
                self.groups |= names.chain(large).any(|name| is_membership(name));
            }
            // Groups and their members go by their names.
            Change::Deleted(whole) => {
                self.rules |= holds_rules(&whole.entry.attributes);
                self.groups = true;
            }
            Change::Moved(_) => (self.rules, self.groups) = (true, true),
            Change::Updated(updated) => {
                let [before, after] = &updated.rdn;
                self.groups |= before != after;
                let names = updated.attributes.iter().map(|edit| edit.name.as_str());
                for name in names.chain(updated.large.iter().map(|large| large.name.as_str())) {
                    self.rules |= base(name) == RULE;
                    self.groups |= is_membership(name);
                    if !of_binds && (name == USER_PASSWORD || is_state(name)) {
                        self.accounts.push(updated.id);
                    }
                }
            }
            Change::Meta(meta) => {
                self.contexts |= meta.name == META_CONTEXTS;
                self.groups |= meta.name.starts_with("schema");
            }
        }
    }

    /// Has them.
    pub fn take(self, directory: &Directory) -> Result<()> {
        let snapshot = directory.snapshot();
        if self.contexts {
            let contexts = load_contexts(&directory.store, &snapshot.schema);
            let contexts =
                contexts.map_err(|why| crate::Failure::new(ResultCode::Other, why.to_string()))?;
            *snapshot.shared.contexts.write().unpoisoned() = contexts.into();
        }
        if self.rules {
            let rules = snapshot.stored_rules(directory.store.read()?.view())?;
            take_rules(&directory.current, rules);
        }
        if self.groups {
            snapshot.shared.access.groups_changed();
        }
        let pending = &snapshot.shared.policies.pending;
        self.accounts.into_iter().for_each(|id| pending.forget(id));
        Ok(())
    }
}
