//! How long changes are kept: rows of the feed that are too old or too many go, the oldest first.

use super::note::ChangeNote;
use super::readers::readers;
use super::setting::FeedRetention;
use crate::directory::Directory;
use crate::failure::Result;
use crate::limits::{FEED_KEPT_FOR_READERS, FEED_TRIMMED_ROWS_MAX};
use crate::policy::micros;
use keyway_lock::Unpoisoned;
use keyway_store::{FeedHead, View};

impl Directory {
    /// Removes rows of the feed that are too old or too many, some at a time; whether there are more. Blocks until
    /// that is on the disk.
    ///
    /// # Errors
    /// The store's.
    pub fn trim_feed(&self) -> Result<bool> {
        let kept = self.shared.settings.read().unpoisoned().feed;
        let now = micros(self.now());
        let until = {
            let read = self.store.read()?;
            read.view().feed_head()?.map(|head| until(read.view(), &head, kept, now)).transpose()?
        };
        match until {
            Some(until) if until > 0 => self
                .store
                .write_now(move |write| Ok(write.trim_feed(until, FEED_TRIMMED_ROWS_MAX)?)),
            _ => Ok(false),
        }
    }
}

/// The position up to which rows are to go; 0 if none is. It looks at no more rows than are removed at a time.
fn until(view: View<'_>, head: &FeedHead, kept: FeedRetention, now: u64) -> Result<u64> {
    let all_have_read = readers(view)?.iter().map(|reader| reader.position).min();
    let (mut left, mut until) = (head.bytes, 0);
    for row in view.feed_after(head.first - 1)?.take(FEED_TRIMMED_ROWS_MAX as usize) {
        let row = row?;
        let times = match all_have_read.is_some_and(|position| position < row.position) {
            true => FEED_KEPT_FOR_READERS,
            false => 1,
        };
        let note = row.jobs.first().and_then(|job| ChangeNote::decode(&job.note));
        let age = now.saturating_sub(note.map_or(0, |note| note.at));
        let is_old = u128::from(age) > kept.keep.as_micros() * u128::from(times);
        if !is_old && left <= kept.bytes_max.saturating_mul(times.into()) {
            break;
        }
        left = left.saturating_sub(row.bytes);
        until = row.position;
    }
    Ok(until)
}
