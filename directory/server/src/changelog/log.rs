//! The changelog, read from one number on to another.

use super::entry;
use super::range::{CHANGE_NUMBER, range};
use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::feed::{DescribedChange, Describer};
use crate::state::Snapshot;
use crate::virtual_entries::VirtualEntry;
use keyway_codec::Filter;
use keyway_codec::message::Scope;
use keyway_schema::EntryName;
use keyway_store::View;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Entries of the changelog, made one after the other. It holds no state of the store, and of the feed no more than
/// one row.
pub(crate) struct Changelog {
    describer: Describer,
    /// The base of the search.
    base: VirtualEntry,
    /// It is returned, and was not looked at.
    shows_base: bool,
    /// The number of the next change, and that of the last one.
    next: u64,
    last: u64,
    /// The row that was read last, and those of its changes that were not looked at.
    position: Option<u64>,
    pending: VecDeque<DescribedChange>,
    /// The bytes of all rows that it has read.
    bytes: u64,
    /// How many entries that do not match it may still look at.
    left: Option<usize>,
}

/// The place that a search has come to.
pub(crate) enum Next<'l> {
    /// An entry, and its number; that of the base is 0.
    Entry(u64, Cow<'l, VirtualEntry>),
    /// A row without changes that are shown.
    Nothing,
    /// The end.
    End,
}

impl Directory {
    /// The numbers of the first change that is kept and of the last one; the first is behind the last if none is
    /// kept. `None` without a feed.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn changelog_numbers(&self) -> Result<Option<[u64; 2]>> {
        if !self.store.keeps_feed() {
            return Ok(None);
        }
        numbers(self.store.read()?.view())
    }

    /// The part of the changelog that a search asks for, which may look at so many entries that do not match.
    ///
    /// # Errors
    /// `noSuchObject`, or the store's.
    pub(crate) fn changelog(
        &self,
        snapshot: &Snapshot,
        base: &EntryName,
        scope: Scope,
        filter: Option<&Filter<'_>>,
        unmatched_max: Option<usize>,
    ) -> Result<Changelog> {
        let read = self.store.read()?;
        let numbers = match self.store.keeps_feed() {
            true => numbers(read.view())?,
            false => None,
        };
        let [first, last] = numbers.ok_or_else(|| {
            Failure::no_such_object("").context("the feed is off (feed.enabled of keyway.toml)")
        })?;
        let top = entry::top(first <= last);
        let shows_base = matches!(scope, Scope::Base | Scope::Subtree);
        let mut changelog = Changelog {
            describer: Describer::within(snapshot.schema.clone()),
            base: top,
            shows_base: false,
            next: 1,
            last: 0,
            position: None,
            pending: VecDeque::new(),
            bytes: 0,
            left: unmatched_max,
        };
        match base.parts.as_slice() {
            [_] if scope == Scope::Base => {}
            [_] => {
                let wanted = filter.map_or(0..=u64::MAX, range);
                (changelog.next, changelog.last) =
                    ((*wanted.start()).max(first), (*wanted.end()).min(last));
            }
            [.., one, _] => {
                let top = changelog.base.dn.clone();
                let missing = || Failure::no_such_object(top.clone());
                let number = number_of(&one.text).ok_or_else(missing)?;
                (changelog.next, changelog.last) = (number, number);
                let found = match changelog.look(read.view())? {
                    Next::Entry(_, found) => found.into_owned(),
                    Next::Nothing | Next::End => return Err(missing()),
                };
                if base.parts.len() > 2 {
                    return Err(Failure::no_such_object(found.dn));
                }
                changelog.base = found;
                (changelog.next, changelog.last) = (1, 0);
            }
            [] => return Err(Failure::no_such_object("")),
        }
        changelog.shows_base = shows_base;
        Ok(changelog)
    }
}

impl Changelog {
    /// The base of the search.
    pub fn base(&self) -> &VirtualEntry {
        &self.base
    }

    /// The bytes of all rows that it has read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts an entry that does not match; whether there may be more.
    pub fn may_pass_over(&mut self) -> bool {
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Goes on with the entry of this number.
    pub fn resume(&mut self, number: u64) {
        if number > 0 {
            self.shows_base = false;
            self.next = self.next.max(number);
        }
    }

    /// The next entry, as this state of the store has it. It is given again until it is passed.
    ///
    /// # Errors
    /// The store's.
    pub fn look(&mut self, view: View<'_>) -> Result<Next<'_>> {
        if self.shows_base {
            return Ok(Next::Entry(0, Cow::Borrowed(&self.base)));
        }
        if self.next > self.last {
            return Ok(Next::End);
        }
        if self.pending.is_empty() && !self.read_row(view)? {
            return Ok(Next::End);
        }
        let change = self.pending.front();
        let Some((change, of_entry)) = change.and_then(|one| Some((one, one.entry()?))) else {
            return Ok(Next::Nothing);
        };
        if change.number > self.last {
            return Ok(Next::End);
        }
        let entry = entry::of(change.number, change, of_entry);
        Ok(Next::Entry(change.number, Cow::Owned(entry)))
    }

    /// Passes the next entry over.
    pub fn pass(&mut self) {
        if std::mem::take(&mut self.shows_base) {
            return;
        }
        if let Some(change) = self.pending.pop_front() {
            self.next = change.number.saturating_add(1);
        }
    }

    /// Reads the row that has the next change, or comes behind the last row; whether there is one. Rows that are not
    /// kept any more are passed over.
    fn read_row(&mut self, view: View<'_>) -> Result<bool> {
        let Some(head) = view.feed_head()? else { return Ok(false) };
        let behind = match self.position {
            Some(position) => position,
            None => view.feed_position(self.next)?.map_or(0, |position| position - 1),
        };
        let behind = behind.max(head.first - 1);
        if behind >= head.position {
            return Ok(false);
        }
        let Some(row) = view.feed_after(behind)?.next().transpose()? else { return Ok(false) };
        self.position = Some(row.position);
        self.bytes += row.bytes;
        if row.first_change > self.last {
            return Ok(false);
        }
        let changes = self.describer.describe(row).into_iter();
        let (next, shown) = (self.next, entry::is_shown);
        self.pending = changes.filter(|one| one.number >= next && shown(one)).collect();
        Ok(true)
    }
}

fn numbers(view: View<'_>) -> Result<Option<[u64; 2]>> {
    let Some(head) = view.feed_head()? else { return Ok(None) };
    let before = match head.is_empty() {
        true => head.changes,
        false => view.changes_before(head.first)?,
    };
    Ok(Some([before + 1, head.changes]))
}

/// The number of the change of a relative name.
fn number_of(rdn: &str) -> Option<u64> {
    let (attribute, value) = rdn.split_once('=')?;
    value.parse().ok().filter(|number| attribute == CHANGE_NUMBER && *number > 0)
}
