//! Changes that are answered before they are on the disk, within limits.
//!
//! LMDB's `NO_SYNC` alone would lose more than those: heads reach the disk without their pages. So the last state that is
//! on the disk as a whole is held by a read transaction, which keeps its pages from being written over, and its head is
//! kept beside the data (`kept`). A thread of its own brings state after state to the disk, while the committer goes on.
//! After a cut of power the store goes back to the last of them ([`put_back`](crate::put_back)).
//!
//! A process that is killed loses nothing: the system has all that was written.

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use keyway_lock::Unpoisoned;
use keyway_meter::Gauge;

use crate::disk::DATA;
use crate::kept::{self, Kept};
use crate::shared::Shared;
use crate::snapshot::last_head;
use crate::{Error, OpenError, Read, lmdb};

/// How much may be lost by a cut of power although it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relaxed {
    /// Changes of entries.
    pub changes_max: u64,
    /// The age of the oldest of them.
    pub age_max: Duration,
}

/// The changes that are not on the disk yet.
#[derive(Default)]
pub(crate) struct Risk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    limits: Option<Relaxed>,
    /// Changes that were committed since the mode began, and those of them that are on the disk.
    committed: u64,
    durable: u64,
    /// When the oldest was committed that is not on the disk.
    oldest: Option<Instant>,
    /// When the first was committed that the sync under way may not have.
    behind: Option<Instant>,
    is_syncing: bool,
    /// The committer waits for room.
    is_urgent: bool,
    is_ending: bool,
    has_failed: bool,
}

impl State {
    fn at_risk(&self) -> u64 {
        self.committed - self.durable
    }

    /// When the thread is to begin, so that it has done within the limits; `None` if there is nothing to do.
    fn due(&self) -> Option<Instant> {
        let (limits, oldest) = (self.limits?, self.oldest?);
        let is_half_full = self.at_risk() >= limits.changes_max.div_ceil(2);
        Some(if self.is_urgent || is_half_full { oldest } else { oldest + limits.age_max / 2 })
    }
}

impl Risk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Waits until so many changes more are within the limits, or none is left that could be lost. For the committer.
    fn make_room(&self, changes: u64) {
        let mut state = self.state();
        loop {
            let Some(limits) = state.limits else { return };
            let is_old = state.oldest.is_some_and(|oldest| oldest.elapsed() > limits.age_max);
            let is_full = state.at_risk().saturating_add(changes) > limits.changes_max;
            if state.has_failed || state.at_risk() == 0 || !is_old && !is_full {
                state.is_urgent = false;
                return;
            }
            state.is_urgent = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unpoisoned();
        }
    }

    /// Notes changes that were committed, and waits for the disk if they are more than may be at risk. For the committer.
    /// How many are at risk.
    fn note(&self, changes: u64) -> u64 {
        let mut state = self.state();
        let Some(limits) = state.limits else { return 0 };
        state.committed += changes;
        let now = Instant::now();
        state.oldest.get_or_insert(now);
        if state.is_syncing {
            state.behind.get_or_insert(now);
        }
        self.changed.notify_all();
        let committed = state.committed;
        while changes > limits.changes_max && state.durable < committed && !state.has_failed {
            state.is_urgent = true;
            self.changed.notify_all();
            state = self.changed.wait(state).unpoisoned();
        }
        state.is_urgent = false;
        state.at_risk()
    }

    /// Waits until there is something to bring to the disk. How many changes that are; `None` at the end.
    fn begin_sync(&self) -> Option<u64> {
        let mut state = self.state();
        loop {
            if state.is_ending {
                return None;
            }
            let left = state.due().map(|due| due.saturating_duration_since(Instant::now()));
            match left {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    state = self.changed.wait_timeout(state, left).unpoisoned().0;
                }
                None => state = self.changed.wait(state).unpoisoned(),
            }
        }
        state.is_syncing = true;
        state.behind = None;
        Some(state.committed)
    }

    fn end_sync(&self, durable: u64) {
        self.change(|state| {
            state.is_syncing = false;
            state.durable = durable;
            state.oldest = state.behind.take();
        });
    }
}

/// The mode, while it is on; the committer has it.
pub(crate) struct Relaxation {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Error>>,
    at_risk: Gauge,
}

impl Relaxation {
    /// Begins. To be called by the committer, between two changes.
    pub fn begin(shared: &Arc<Shared>, limits: Relaxed) -> Result<Relaxation, Error> {
        let opening =
            |why: OpenError| Error::system("relaxing the store", std::io::Error::other(why));
        let reading = |e| Error::system("reading the data file", e);
        let file = File::open(shared.dir().join(DATA)).map_err(reading)?;
        shared.is_in_place()?;
        let (held, page) = head(shared, &file)?;
        shared.env.force_sync().map_err(|e| shared.error("syncing the store", e))?;
        let kept = Kept::create(shared.dir(), &page).map_err(opening)?;
        let syncer = Syncer { shared: shared.clone(), file, kept, held };
        shared.risk.change(|state| *state = State { limits: Some(limits), ..State::default() });
        let thread = thread::Builder::new().name("store-syncer".into()).spawn(move || syncer.run());
        let thread = match thread {
            Ok(thread) => thread,
            Err(why) => {
                kept::forget(shared.dir()).map_err(opening)?;
                return Err(Error::system("starting a thread", why));
            }
        };
        let at_risk = keyway_meter::gauge("store.at_risk");
        let relaxation = Relaxation { shared: shared.clone(), thread, at_risk };
        match lmdb::set_sync(&shared.env, false) {
            Ok(()) => Ok(relaxation),
            Err(why) => {
                relaxation.end()?;
                Err(shared.error("relaxing the store", why))
            }
        }
    }

    /// Other limits, from the next change on.
    pub fn limit(&self, limits: Relaxed) {
        self.shared.risk.change(|state| state.limits = Some(limits));
    }

    /// Waits until a group of so many changes may be committed.
    ///
    /// # Errors
    /// If the store has failed meanwhile.
    pub fn make_room(&self, changes: u64) -> Result<(), Error> {
        self.shared.risk.make_room(changes);
        self.has_not_failed()
    }

    /// Notes a group that was committed; if it alone is more than may be at risk, it is on the disk then.
    ///
    /// # Errors
    /// If the store has failed meanwhile.
    pub fn note(&self, changes: u64) -> Result<(), Error> {
        self.at_risk.set(self.shared.risk.note(changes));
        self.has_not_failed()
    }

    fn has_not_failed(&self) -> Result<(), Error> {
        self.shared.failure().map_or(Ok(()), |why| Err(Error::Failed { why }))
    }

    /// Ends: all is on the disk then.
    pub fn end(self) -> Result<(), Error> {
        let Relaxation { shared, thread, at_risk } = self;
        shared.risk.change(|state| state.is_ending = true);
        let ended = thread.join().unwrap_or_else(|_| Err(Error::closed()));
        let set =
            lmdb::set_sync(&shared.env, true).map_err(|e| shared.error("syncing the store", e));
        let synced = ended.and(set).and_then(|()| {
            shared.env.force_sync().map_err(|e| shared.error("syncing the store", e))
        });
        shared.risk.change(|state| *state = State::default());
        at_risk.set(0);
        synced?;
        let forgetting =
            |why: OpenError| Error::system("syncing the store", std::io::Error::other(why));
        kept::forget(shared.dir()).map_err(forgetting)
    }
}

/// The last state, and its head. Changes that come too fast for it come to an end when no more may be at risk.
fn head(shared: &Arc<Shared>, file: &File) -> Result<(Read, Vec<u8>), Error> {
    loop {
        if let Some((read, _, [page, _])) = last_head(shared, file)? {
            return Ok((read, page));
        }
    }
}

/// The thread that brings states to the disk.
struct Syncer {
    shared: Arc<Shared>,
    file: File,
    kept: Kept,
    /// The last state that is on the disk; none of its pages is written over while this lives.
    held: Read,
}

impl Syncer {
    fn run(mut self) -> Result<(), Error> {
        let shared = self.shared.clone();
        let at_risk = keyway_meter::gauge("store.at_risk");
        while let Some(committed) = shared.risk.begin_sync() {
            if let Err(why) = self.sync() {
                // The system has dropped what it could not write, and would have the next process believe it is there.
                let _ = self.kept.distrust();
                shared.fail(&why);
                shared.risk.change(|state| state.has_failed = true);
                return Err(why);
            }
            shared.risk.end_sync(committed);
            at_risk.set(shared.risk.state().at_risk());
        }
        Ok(())
    }

    /// Brings the present state to the disk, and keeps its head.
    fn sync(&mut self) -> Result<(), Error> {
        let (held, page) = head(&self.shared, &self.file)?;
        self.shared.env.force_sync().map_err(|e| self.shared.error("syncing the store", e))?;
        self.kept.put(&page).map_err(|e| Error::system("keeping the store's head", e))?;
        self.held = held;
        Ok(())
    }
}
