//! The upgrade of a stored password: it was right, so it is known, and stored again as a new one.

use crate::credentials::Credentials;
use crate::directory::Directory;
use crate::failure::Result;
use crate::feed::{ChangeNote, Reason};
use crate::policy::USER_PASSWORD;
use crate::state::{DirectoryState, Snapshot};
use keyway_lock::Unpoisoned;
use keyway_store::{EntryId, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use zeroize::Zeroizing;

/// The place of one of them.
struct Turn(Arc<DirectoryState>);

impl Turn {
    fn take(shared: &Arc<DirectoryState>) -> Option<Turn> {
        shared.upgrades.take().then(|| Turn(shared.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.upgrades.give_back();
    }
}

impl Directory {
    /// Starts to store a password again as new ones are stored. It is the one that the entry's
    /// value at `outdated` matched.
    ///
    /// `None` if that is not to be, or not now: it is switched off, or there is no room. Nothing
    /// depends on it, and the next right password is another chance. No answer has to wait for the future.
    pub(crate) fn upgrade_password(
        &self,
        found: &Credentials,
        outdated: usize,
        password: Zeroizing<Vec<u8>>,
    ) -> Option<impl Future<Output = ()> + Send + 'static + use<>> {
        if !self.shared.upgrade_passwords.load(Ordering::Relaxed) || self.is_following() {
            return None;
        }
        let (id, old) = (found.subject.id()?, found.passwords.get(outdated)?.clone());
        let turn = Turn::take(&self.shared)?;
        let hash = self.shared.passwords.hash(password).ok()?;
        let (store, current) = (self.store.clone(), self.current.clone());
        Some(async move {
            if let Ok(new) = hash.await {
                let (sender, receiver) = oneshot::channel();
                let upgrade = Upgrade { id, old, new };
                let job = move |write: &mut Write<'_>| {
                    let snapshot = current.read().unpoisoned().clone();
                    write.note(&ChangeNote::own(Reason::Upgrade, snapshot.shared.now()).encode());
                    upgrade.apply(&snapshot, write)
                };
                if store.submit(job, move |result| drop(sender.send(result))).is_ok() {
                    let _ = receiver.await;
                }
            }
            drop(turn);
        })
    }
}

/// One value in the place of another.
struct Upgrade {
    id: EntryId,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Upgrade {
    /// Does it if the old value is still there: a password that was changed meanwhile stays
    /// changed. It is the same password, so when it was changed, and the entry, stays the same.
    fn apply(&self, snapshot: &Snapshot, write: &mut Write<'_>) -> Result<()> {
        snapshot.require_current(write)?;
        let Some(entry) = write.view().entry(self.id)? else { return Ok(()) };
        let mut entry = entry.to_entry();
        let old = entry.attributes.clone();
        let passwords = entry.attributes.iter_mut().filter(|(name, _)| name == USER_PASSWORD);
        let mut values = passwords.flat_map(|(_, values)| values);
        let Some(value) = values.find(|value| **value == self.old) else { return Ok(()) };
        value.clone_from(&self.new);
        let (removed, added) =
            snapshot.indexes.difference(&snapshot.schema, &old, &entry.attributes);
        Ok(write.update(self.id, &entry, &removed, &added)?)
    }
}
