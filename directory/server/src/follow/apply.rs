//! Rows of another directory's feed, applied.

use super::effects::Effects;
use super::relist::relist;
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::index::{Kinds, turn};
use crate::redefine::{Redefined, install};
use crate::state::Snapshot;
use keyway_lock::Unpoisoned;
use keyway_store::{FeedDigest, RawRow, Write};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Why rows were not applied. Nothing of them was.
#[derive(Clone, Debug)]
pub enum ApplyError {
    /// The store's reason.
    Store(keyway_store::Error),
    /// One changes the schema into one that this server's files and sets do not make, or comes with others.
    Schema(String),
}

impl ApplyError {
    /// Whether it may be applied later: the disk is full, or the store is busy.
    pub fn may_pass(&self) -> bool {
        use keyway_store::Error::{Busy, DiskFull, TooManyReaders};
        matches!(self, ApplyError::Store(Busy | DiskFull | TooManyReaders))
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Store(why) => why.fmt(f),
            ApplyError::Schema(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ApplyError {}

impl From<keyway_store::Error> for ApplyError {
    fn from(why: keyway_store::Error) -> ApplyError {
        ApplyError::Store(why)
    }
}

impl From<Failure> for ApplyError {
    fn from(why: Failure) -> ApplyError {
        ApplyError::Schema(why.diagnostic)
    }
}

impl Directory {
    /// Whether it makes another one's changes again, and none of its own: see [`keyway_store::Store::follow`].
    pub fn is_following(&self) -> bool {
        self.store.is_following()
    }

    /// The last position that it has.
    ///
    /// # Errors
    /// The store's.
    pub fn position(&self) -> Result<u64> {
        Ok(self.store.read()?.view().feed_head()?.map_or(0, |head| head.position))
    }

    /// The digest of all entries at the last position that a thousand divides, if the feed has it.
    ///
    /// # Errors
    /// The store's.
    pub fn contents(&self) -> Result<Option<(u64, FeedDigest)>> {
        let read = self.store.read()?;
        Ok(read.view().last_contents()?)
    }

    /// Hears of the last position that reads see, from the next one on.
    pub fn positions(&self) -> watch::Receiver<u64> {
        self.shared.positions.subscribe()
    }

    /// The last position that it has, and a row of its store's table as of then.
    ///
    /// # Errors
    /// The store's.
    pub fn position_with(&self, name: &str) -> Result<(u64, Option<Vec<u8>>)> {
        let read = self.store.read()?;
        let position = read.view().feed_head()?.map_or(0, |head| head.position);
        Ok((position, read.view().meta_get(name)?.map(<[u8]>::to_vec)))
    }

    /// Resolves when it has this position; whether that came within the time.
    pub async fn reaches(&self, position: u64, within: Duration) -> bool {
        if self.position().is_ok_and(|last| last >= position) {
            return true;
        }
        let mut applied = self.shared.positions.subscribe();
        let reached = applied.wait_for(|last| *last >= position);
        matches!(tokio::time::timeout(within, reached).await, Ok(Ok(_)))
    }

    /// Makes the changes of rows again, which are the next ones of this history, lists entries in this directory's own
    /// indexes, and uses what has changed of rules, groups, naming contexts and the schema from then on. They are one commit,
    /// and all or none is done. A row that changes the schema comes alone. Blocks until they are on the disk.
    ///
    /// # Errors
    /// Why they were not.
    pub fn apply(&self, rows: Arc<[RawRow]>) -> std::result::Result<(), ApplyError> {
        let Some(last) = rows.last() else { return Ok(()) };
        let snapshot = self.snapshot();
        let mut redefined = None;
        for row in rows.iter() {
            redefined = self.redefined_by(row)?;
            if redefined.is_some() && rows.len() > 1 {
                return Err(ApplyError::Schema("a change of the schema comes alone".into()));
            }
        }
        let effects = Effects::of(&snapshot, &rows);
        let (position, latest) = (last.position(), self.current.clone());
        let (next, anew) = match redefined {
            Some(Redefined { next, anew }) => (Some(next), anew),
            None => (None, Kinds::new()),
        };
        let wanted = next.as_ref().map(|next: &Arc<Snapshot>| next.indexes.kinds());
        self.store.write_now(move |write: &mut Write<'_>| {
            let snapshot = latest.read().unpoisoned().clone();
            for row in rows.iter() {
                write.apply_row(row, &mut |view, change| {
                    relist(&snapshot, view, change).map_err(|failure| {
                        keyway_store::Error::Damaged { what: failure.diagnostic, entry: None }
                    })
                })?;
            }
            match &wanted {
                Some(wanted) => turn(write, wanted, &anew).map(drop).map_err(ApplyError::from),
                None => Ok(()),
            }
        })?;
        if let Some(next) = next {
            install(&self.shared, &self.current, Some(next), None);
        }
        effects.take(self)?;
        self.shared.positions.send_replace(position);
        Ok(())
    }

    /// The state of the schema that a row leaves, if it changes it.
    fn redefined_by(&self, row: &RawRow) -> Result<Option<Redefined>> {
        let settings = self.shared.settings.read().unpoisoned().clone();
        Redefined::by(&self.snapshot(), row.changes(), &settings)
    }
}
