//! The ends of binds, noted and written into the entries.

use super::account::{Account, Events};
use super::attributes::subentry;
use super::pending::Event;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::feed::{ChangeNote, Reason};
use crate::follow::{encode, taker_of};
use crate::state::{CurrentSnapshot, DirectoryState, Snapshot};
use keyway_codec::message::ResultCode;
use keyway_lock::Unpoisoned;
use keyway_store::{EntryId, Store, Write};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Directory {
    /// Notes how a bind ended. It counts from now on, and is written soon by a task of the runtime.
    pub(crate) fn note(&self, id: EntryId, event: Event) {
        let pending = &self.shared.policies.pending;
        pending.add(id, event);
        if pending.is_free() {
            let (shared, current) = (self.shared.clone(), self.current.clone());
            tokio::spawn(write_all(self.store.clone(), shared, current));
        }
    }

    /// Writes what has happened and is not on the disk yet, and waits for it.
    pub fn write_pending(&self) {
        let (snapshot, events) = (self.snapshot(), self.shared.policies.pending.all());
        if !events.is_empty() && !self.is_following() {
            // Events that cannot be written now are forgotten with the process.
            let note = ChangeNote::own(Reason::Bind, self.now()).encode();
            let _ = self.store.write_now(move |write| {
                write.note(&note);
                events.iter().try_for_each(|(id, events)| update(&snapshot, write, *id, events))
            });
        }
    }
}

impl Directory {
    /// Writes what has happened to accounts elsewhere.
    pub(crate) fn write_events(
        &self,
        accounts: HashMap<EntryId, Events>,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let (current, note) = (self.current.clone(), ChangeNote::own(Reason::Bind, self.now()));
        let (sender, receiver) = oneshot::channel();
        let note = note.encode();
        let job = move |write: &mut Write<'_>| {
            write.note(&note);
            let snapshot = current.read().unpoisoned().clone();
            accounts.iter().try_for_each(|(id, events)| update(&snapshot, write, *id, events))
        };
        let submitted = self.store.submit(job, move |result: Result<()>| drop(sender.send(result)));
        async move {
            submitted?;
            let gone = |_| Failure::new(ResultCode::Unavailable, "the store was closed");
            receiver.await.map_err(gone)?
        }
    }
}

/// Writes all that there is, one commit after the other.
async fn write_all(store: Store, shared: Arc<DirectoryState>, current: CurrentSnapshot) {
    let pending = &shared.policies.pending;
    while let Some(accounts) = pending.begin() {
        if let Some(taker) = taker_of(&shared) {
            if !taker.take(encode(&accounts)).await {
                // They count here meanwhile. The next bind tries again.
                return pending.put_back();
            }
            pending.end(store.read().map_or(0, |read| read.version()));
            continue;
        }
        if store.is_following() {
            return pending.put_back();
        }
        let (sender, receiver) = oneshot::channel();
        let current = current.clone();
        let note = ChangeNote::own(Reason::Bind, shared.now()).encode();
        let job = move |write: &mut Write<'_>| {
            write.note(&note);
            let snapshot = current.read().unpoisoned().clone();
            accounts.iter().try_for_each(|(id, events)| update(&snapshot, write, *id, events))
        };
        if store.submit(job, move |result: Result<()>| drop(sender.send(result))).is_err() {
            // The committer is full, or the store has failed. The next bind tries again.
            return pending.put_back();
        }
        let _ = receiver.await;
        pending.end(store.read().map_or(0, |read| read.version()));
    }
}

/// Writes into an entry what has happened to its account.
fn update(snapshot: &Snapshot, write: &mut Write<'_>, id: EntryId, events: &Events) -> Result<()> {
    let Some(entry) = write.view().entry(id)? else { return Ok(()) };
    let policy = snapshot.shared.policies.of(snapshot, write.view(), None, subentry(&entry))?;
    let account = Account::read(&snapshot.schema, &entry).after(&policy, events);
    let mut entry = entry.to_entry();
    let old = entry.attributes.clone();
    account.put(&mut entry.attributes);
    if entry.attributes == old {
        return Ok(());
    }
    let (removed, added) = snapshot.indexes.difference(&snapshot.schema, &old, &entry.attributes);
    Ok(write.update(id, &entry, &removed, &added)?)
}
