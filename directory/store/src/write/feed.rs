//! The feed's part in a change: each change is noted as it is made, and their row is put before the commit.

use super::Write;
use crate::contents::{CONTENTS, CONTENTS_EVERY};
use crate::feed::{
    FeedHead, LargeNotes, RawRow, Recorder, feed_key, head_row, put_meta, row_bytes, seal,
};
use crate::format::{FORMAT_WITH_FEED, META_CONTENTS, META_FEED};
use crate::lmdb::Table;
use crate::{EntryId, EntryRef, Error};

impl Write<'_> {
    /// The caller's note on all changes of this job that the feed has: who has made them, when, and what else the
    /// caller will want to know of them. The store gives it no meaning.
    pub fn note(&mut self, note: &[u8]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(note);
        }
    }

    /// Leaves the whole commit, with all its jobs, out of the feed: for a load of so much that readers take the whole
    /// state anew. What the feed has does not lead to the state after it, and goes.
    pub fn leave_feed_out(&mut self) {
        self.recorder = None;
    }

    /// Removes rows of the feed from its beginning: those up to the position `until`, and `rows_max` at most.
    /// Whether there are more of them.
    ///
    /// # Errors
    /// The store's.
    pub fn trim_feed(&mut self, until: u64, rows_max: u64) -> Result<bool, Error> {
        let head = self.view().feed_head()?;
        let Some(mut head) = head.filter(|head| head.first <= until.min(head.position)) else {
            return Ok(false);
        };
        let last = until.min(head.position).min(head.first.saturating_add(rows_max) - 1);
        let table = self.feed_table()?;
        for position in head.first..=last {
            let row = self.shared.get(table, &self.txn, &feed_key(position))?;
            head.bytes = head.bytes.saturating_sub(row.map_or(0, row_bytes));
            self.remove(table, &feed_key(position))?;
        }
        head.first = last.saturating_add(1);
        self.put(self.shared.tables.meta, META_FEED, &head_row(&head))?;
        Ok(last < until.min(head.position))
    }

    /// Removes rows of the feed from its beginning that have so many bytes together, or all. Whether there was any.
    pub(crate) fn trim_feed_by(&mut self, bytes: u64) -> Result<bool, Error> {
        let Some(head) = self.view().feed_head()?.filter(|head| !head.is_empty()) else {
            return Ok(false);
        };
        let table = self.feed_table()?;
        let (mut last, mut found) = (head.first - 1, 0);
        while found < bytes && last < head.position {
            last += 1;
            let row = self.shared.get(table, &self.txn, &feed_key(last))?;
            found += row.map_or(0, row_bytes);
        }
        self.trim_feed(last, u64::MAX)?;
        Ok(true)
    }

    /// The store makes changes of its own from this one on: see [`Store::follow`](crate::Store::follow). To be undone by the
    /// caller if the commit fails.
    pub fn lead(&mut self) {
        self.shared.follow(false);
    }

    /// The next job begins.
    pub(crate) fn begin_job(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.begin_job();
        }
    }

    /// Where changes are noted; nowhere without a feed.
    pub(super) fn large_notes(&self) -> LargeNotes {
        LargeNotes::new(self.recorder.is_some())
    }

    /// The name of an entry for a change of one below it; empty without a feed, which has no use for it.
    pub(super) fn above(&mut self, parent: EntryId) -> Result<String, Error> {
        if self.recorder.is_none() {
            return Ok(String::new());
        }
        let mut names = std::mem::take(&mut self.names);
        let name = names.dn_of(self.view(), parent);
        self.names = names;
        name
    }

    /// The value that says which entry it is.
    pub(super) fn identity<'t>(&self, entry: &EntryRef<'t>) -> &'t [u8] {
        let attribute = self.shared.feed.flatten();
        attribute.and_then(|name| entry.values(name).next()).unwrap_or_default()
    }

    /// Takes a change that was made.
    ///
    /// # Errors
    /// [`Error::Following`] if it is none of a row that is applied, and the store makes no changes of its own.
    pub(super) fn record(&mut self, change: impl FnOnce() -> Vec<u8>) -> Result<(), Error> {
        if !self.is_applying && self.shared.is_following() {
            return Err(Error::Following);
        }
        self.recordable += 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.push(&change());
        }
        Ok(())
    }

    /// Takes the change of a row that is about to be made.
    pub(super) fn record_meta(
        &mut self,
        name: &str,
        row: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), Error> {
        let old = self.shared.get(self.shared.tables.meta, &self.txn, row)?;
        let differs = old != value;
        let change = (differs && self.recorder.is_some()).then(|| put_meta(name, [old, value]));
        match differs {
            true => self.record(|| change.unwrap_or_default()),
            false => Ok(()),
        }
    }

    /// Puts the row of all changes, as the last thing before the commit.
    pub(super) fn write_feed(&mut self) -> Result<(), Error> {
        if self.recordable == 0 {
            return Ok(());
        }
        let head = self.view().feed_head()?;
        let Some(recorder) = self.recorder.take() else {
            return match head {
                Some(head) => self.leave_out_of_feed(head),
                None => Ok(()),
            };
        };
        let head = head.unwrap_or_else(FeedHead::of_an_older_store);
        self.extend_feed(head, recorder)
    }

    /// Compares the digest of all entries with the one that another store has had in this state. A store that keeps none
    /// takes it as it is.
    pub(crate) fn compare_contents(&mut self, value: Option<&[u8]>) -> Result<(), Error> {
        let own = self.contents.map(|contents| contents.to_bytes());
        match own {
            Some(own) if value != Some(own.as_slice()) => Err(Error::ContentsDiffer),
            _ => self.record(|| put_meta(CONTENTS, [None, value])),
        }
    }

    /// Has `make` make the changes of a row, which another store has had, and puts that row.
    pub(crate) fn apply_as(
        &mut self,
        head: FeedHead,
        row: &RawRow,
        make: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.is_applying = true;
        let made = make(self);
        self.is_applying = false;
        made?;
        let none = || Error::damaged("a store without a feed takes no row of one");
        let recorder = self.recorder.replace(Recorder::default()).ok_or_else(none)?;
        self.recordable = 0;
        self.put_applied(head, row, recorder)
    }

    fn put_applied(
        &mut self,
        head: FeedHead,
        raw: &RawRow,
        recorder: Recorder,
    ) -> Result<(), Error> {
        let (row, (_, changes)) = (raw.row(), recorder.finish());
        if changes != row.changes() {
            let what = format!("position {} of the feed is not what was changed", row.position);
            return Err(Error::damaged(what));
        }
        let head = FeedHead {
            position: row.position,
            changes: head.changes + changes,
            bytes: head.bytes + row.bytes,
            digest: row.digest,
            ..head
        };
        self.position = Some((head.position, true));
        self.put_row(&head, raw.bytes())
    }

    fn extend_feed(&mut self, mut head: FeedHead, mut recorder: Recorder) -> Result<(), Error> {
        if let Some(contents) = self.contents
            && (head.position + 1).is_multiple_of(CONTENTS_EVERY)
        {
            recorder.push(&put_meta(CONTENTS, [None, Some(&contents.to_bytes())]));
        }
        let (jobs, changes) = recorder.finish();
        let (row, digest) = seal(&head, &jobs);
        head.position += 1;
        head.changes += changes;
        head.bytes += row_bytes(&row);
        head.digest = digest;
        if self.shared.append().is_some() {
            self.sealed = Some((head.position, row.clone()));
        }
        self.position = Some((head.position, false));
        self.put_row(&head, &row)
    }

    fn put_row(&mut self, head: &FeedHead, row: &[u8]) -> Result<(), Error> {
        self.require_format(FORMAT_WITH_FEED)?;
        self.put(self.feed_table()?, &feed_key(head.position), row)?;
        self.put(self.shared.tables.meta, META_FEED, &head_row(head))
    }

    /// Changes that the feed does not get: what it has does not lead to this state, so it goes.
    fn leave_out_of_feed(&mut self, head: FeedHead) -> Result<(), Error> {
        // Values apart from their entries were not counted.
        if self.contents.take().is_some() {
            self.remove(self.shared.tables.meta, META_CONTENTS)?;
        }
        if !head.is_empty() {
            let table = self.feed_table()?;
            self.puts += 1;
            let cleared = table.clear(&mut self.txn);
            self.note_failure(cleared.map_err(|e| self.shared.error("clearing the feed", e)))?;
        }
        self.put(self.shared.tables.meta, META_FEED, &head_row(&head.without_a_row()))
    }

    fn feed_table(&self) -> Result<Table<'static>, Error> {
        self.shared.tables.feed.ok_or_else(|| Error::damaged("the table of the feed is missing"))
    }
}
