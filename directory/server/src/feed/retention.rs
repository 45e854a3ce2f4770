//! How long changes are kept: rows of the feed that are too old or too many go, the oldest first.

use super::note::ChangeNote;
use super::readers::{FeedReader, readers};
use super::setting::FeedRetention;
use crate::directory::Directory;
use crate::failure::Result;
use crate::limits::{FEED_KEPT_FOR_READERS, FEED_TRIMMED_ROWS_MAX};
use crate::policy::micros;
use keyway_lock::Unpoisoned;
use keyway_store::{FeedHead, View};
use std::time::Duration;

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

/// How far the feed has come, and what is kept of it.
#[derive(Clone, Debug)]
pub struct FeedStatus {
    /// The store's.
    pub head: FeedHead,
    /// Since the oldest change that is kept; zero if none is.
    pub age: Duration,
    /// How far readers that have a name have come.
    pub readers: Vec<FeedReader>,
}

impl Directory {
    /// How far the feed has come; `None` if there is none.
    ///
    /// # Errors
    /// The store's.
    pub fn feed_status(&self) -> Result<Option<FeedStatus>> {
        let read = self.store.read()?;
        let Some(head) = read.view().feed_head()? else { return Ok(None) };
        let oldest = read.view().feed_note(head.first)?;
        let age = oldest.map_or(0, |note| age(Some(note), micros(self.now())));
        let readers = readers(read.view())?;
        Ok(Some(FeedStatus { head, age: Duration::from_micros(age), readers }))
    }
}

/// The part of a limit by which the feed may be over it before rows go, so that not every commit is followed by
/// one that trims.
const SLACK: u128 = 64;

/// The position up to which rows are to go; 0 if none is. It looks at no more rows than are removed at a time.
fn until(view: View<'_>, head: &FeedHead, kept: FeedRetention, now: u64) -> Result<u64> {
    let all_have_read = readers(view)?.iter().map(|reader| reader.position).min();
    let (mut left, mut until) = (head.bytes, 0);
    for row in view.feed_after(head.first - 1)?.take(FEED_TRIMMED_ROWS_MAX as usize) {
        let row = row?;
        let times = match all_have_read.is_some_and(|position| position < row.position) {
            true => u128::from(FEED_KEPT_FOR_READERS),
            false => 1,
        };
        let over = |number: u128, max: u128| {
            let slack = if until == 0 { max * times / SLACK } else { 0 };
            number > max * times + slack
        };
        let note = row.jobs.first().map(|job| job.note.as_slice());
        let age = u128::from(age(note, now));
        if !over(age, kept.keep.as_micros()) && !over(left.into(), kept.bytes_max.into()) {
            break;
        }
        left = left.saturating_sub(row.bytes);
        until = row.position;
    }
    Ok(until)
}

/// Microseconds since a commit with this note. One without a note is as old as can be.
fn age(note: Option<&[u8]>, now: u64) -> u64 {
    let note = note.and_then(ChangeNote::decode);
    now.saturating_sub(note.map_or(0, |note| note.at))
}
