//! Changes that are answered before they are on the disk, within limits.
//!
//! LMDB's `NO_SYNC` alone would lose more than those: heads reach the disk without their pages. So the last state that is
//! on the disk as a whole is held by a read transaction, which keeps its pages from being written over, and its head is
//! kept beside the data (`kept`). A thread of its own brings state after state to the disk, while the committer goes on.
//! After a cut of power the store goes back to the last of them ([`put_back`](crate::put_back)).
//!
//! A process that is killed loses nothing: the system has all that was written.

use std::fs::File;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use keyway_meter::Gauge;

use crate::disk::DATA;
use crate::kept::{self, Kept};
use crate::shared::Shared;
use crate::snapshot::{LastHead, last_head};
use crate::{Error, OpenError, Read, Relaxed, lmdb};

/// The mode, while it is on; the committer has it.
pub(crate) struct Relaxation {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(), Error>>,
    at_risk: Gauge,
    page_bytes: u64,
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
        let page_bytes = page.len() as u64;
        shared.risk.begin(limits, data_bytes(shared, page_bytes), shared.map_bytes as u64);
        let thread = thread::Builder::new().name("store-syncer".into()).spawn(move || syncer.run());
        let thread = match thread {
            Ok(thread) => thread,
            Err(why) => {
                kept::forget(shared.dir()).map_err(opening)?;
                return Err(Error::system("starting a thread", why));
            }
        };
        let at_risk = keyway_meter::gauge("store.at_risk");
        let relaxation = Relaxation { shared: shared.clone(), thread, at_risk, page_bytes };
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
        self.shared.risk.limit(limits);
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
        self.at_risk.set(self.shared.risk.note(changes, data_bytes(&self.shared, self.page_bytes)));
        self.has_not_failed()
    }

    fn has_not_failed(&self) -> Result<(), Error> {
        self.shared.failure().map_or(Ok(()), |why| Err(Error::Failed { why }))
    }

    /// Ends: all is on the disk then.
    pub fn end(self) -> Result<(), Error> {
        let Relaxation { shared, thread, at_risk, .. } = self;
        shared.risk.end();
        let ended = thread.join().unwrap_or_else(|_| Err(Error::closed()));
        let set =
            lmdb::set_sync(&shared.env, true).map_err(|e| shared.error("syncing the store", e));
        let synced = ended.and(set).and_then(|()| {
            shared.env.force_sync().map_err(|e| shared.error("syncing the store", e))
        });
        shared.risk.clear();
        at_risk.set(0);
        synced?;
        let forgetting =
            |why: OpenError| Error::system("syncing the store", std::io::Error::other(why));
        kept::forget(shared.dir()).map_err(forgetting)
    }
}

/// The length of the data file, as the last state has it.
fn data_bytes(shared: &Shared, page_bytes: u64) -> u64 {
    (shared.env.info().last_page_number as u64 + 1) * page_bytes
}

/// The last state, and its head. Changes that come too fast for it come to an end when no more may be at risk.
fn head(shared: &Arc<Shared>, file: &File) -> Result<(Read, Vec<u8>), Error> {
    loop {
        if let Some(LastHead { read, pages: [page, _], .. }) = last_head(shared, file)? {
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
                shared.risk.fail();
                return Err(why);
            }
            shared.risk.end_sync(committed);
            at_risk.set(shared.risk.at_risk());
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
