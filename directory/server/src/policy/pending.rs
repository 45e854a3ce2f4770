//! Effects of binds on accounts that are not in their entries yet.
//!
//! They count from the moment they happened, so that many guesses at once are no way around a lock. They
//! are written by one job at a time: however many binds fail, one job waits for the committer, takes
//! all that has happened meanwhile with it, and shares its sync with every other write. So a flood
//! of wrong passwords costs no more syncs than one client that writes. Events that were not written when
//! the process was killed are forgotten.

use super::account::{Account, Events};
use super::limits::{FAILURES_MAX, PENDING_ACCOUNTS_MAX};
use super::rules::Policy;
use keyway_lock::Unpoisoned;
use keyway_store::EntryId;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
    /// How many accounts there are, to be asked without the lock.
    count: AtomicUsize,
    /// How often some were written.
    written: AtomicU64,
    /// A state of the store that has all that was written; those before may lack what was written last.
    written_version: AtomicU64,
}

#[derive(Default)]
struct State {
    accounts: HashMap<EntryId, Events>,
    /// Those that a job is writing. They count until it is done.
    writing: HashMap<EntryId, Events>,
    /// Those that were written last, for who looks at an earlier state of the store.
    last: HashMap<EntryId, Events>,
    is_writing: bool,
}

impl Pending {
    /// How often events have been written so far. A read of the store while this stayed
    /// the same lacks nothing that [`Pending::of`] lacks as well.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The account of this entry after all that has happened, from what its entry says.
    pub fn apply(&self, policy: &Policy, id: EntryId, account: Account) -> Account {
        if self.count.load(Ordering::Acquire) == 0 {
            return account;
        }
        let state = self.lock();
        let events = [state.writing.get(&id), state.accounts.get(&id)];
        events.into_iter().flatten().fold(account, |account, events| account.after(policy, events))
    }

    /// Whether an entry in this state of the store may lack what has happened to its account.
    pub fn is_ahead_of(&self, version: u64) -> bool {
        self.count.load(Ordering::Acquire) != 0
            || version < self.written_version.load(Ordering::Acquire)
    }

    /// All that has happened to an account which its entry may lack, in order.
    pub fn events(&self, id: EntryId) -> Vec<Events> {
        let state = self.lock();
        let events = [&state.last, &state.writing, &state.accounts];
        events.iter().filter_map(|of| of.get(&id).cloned()).collect()
    }

    /// Forgets what has happened to an account, whose entry says something else now.
    pub fn forget(&self, id: EntryId) {
        let mut state = self.lock();
        state.accounts.remove(&id);
        state.writing.remove(&id);
        state.last.remove(&id);
        self.recount(&state);
    }

    /// Notes how a bind ended.
    pub fn add(&self, id: EntryId, event: Event) {
        let mut state = self.lock();
        if state.accounts.len() >= PENDING_ACCOUNTS_MAX && !state.accounts.contains_key(&id) {
            return;
        }
        let events = state.accounts.entry(id).or_default();
        match event {
            // Two at once are two.
            Event::Failure(now) => {
                let last = events.failures.last().copied().unwrap_or_default();
                events.failures.push(now.max(last + 1));
                let more = events.failures.len().saturating_sub(2 * FAILURES_MAX);
                events.failures.drain(..more);
            }
            Event::Success { now, clears, grace, notes } => {
                if clears {
                    events.cleared = true;
                    events.failures.clear();
                }
                if grace {
                    let last = events.graces.last().copied().unwrap_or_default();
                    events.graces.push(now.max(last + 1));
                }
                events.last_success = notes.then_some(now).or(events.last_success);
            }
        }
        self.recount(&state);
    }

    fn recount(&self, state: &State) {
        self.count.store(state.accounts.len() + state.writing.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

/// How a bind ended.
pub(crate) enum Event {
    /// With a wrong password.
    Failure(u64),
    /// With a right one.
    Success {
        now: u64,
        /// Earlier failures are forgotten.
        clears: bool,
        /// The password has expired, and this was one of the binds it is still good for.
        grace: bool,
        /// The time of it is noted.
        notes: bool,
    },
}

impl Pending {
    /// Whether no task writes; then the caller is to.
    pub fn is_free(&self) -> bool {
        !std::mem::replace(&mut self.lock().is_writing, true)
    }

    /// The events to be written next. Without any, no task writes from now on.
    pub fn begin(&self) -> Option<HashMap<EntryId, Events>> {
        let mut state = self.lock();
        state.writing = std::mem::take(&mut state.accounts);
        state.is_writing = !state.writing.is_empty();
        state.is_writing.then(|| state.writing.clone())
    }

    /// It is written, as the store has it since this state; events that could not be are forgotten.
    pub fn end(&self, version: u64) {
        let mut state = self.lock();
        state.last = std::mem::take(&mut state.writing);
        self.written_version.store(version, Ordering::Release);
        self.written.fetch_add(1, Ordering::Release);
        self.recount(&state);
    }

    /// Nothing was written of it.
    pub fn put_back(&self) {
        let mut state = self.lock();
        let later = std::mem::take(&mut state.accounts);
        state.accounts = std::mem::take(&mut state.writing);
        for (id, events) in later {
            state.accounts.entry(id).or_default().append(events);
        }
        state.is_writing = false;
        self.recount(&state);
    }

    /// All there is, what is being written before what came later.
    pub fn all(&self) -> Vec<(EntryId, Events)> {
        let state = self.lock();
        let all = state.writing.iter().chain(&state.accounts);
        all.map(|(id, events)| (*id, events.clone())).collect()
    }
}
