//! Reads the feed of a store, a piece at a time, so that no page of the store is held while changes are printed or
//! waited for.

use crate::limits::FEED_PIECE_BYTES;
use crate::offline;
use keyway_config::{Configuration, Given};
use keyway_host::failure::Failure;
use keyway_server::{DescribedChange, Describer};
use keyway_store::{Error, FeedDigest, FeedHead, Store};
use std::path::{Path, PathBuf};

/// A reader of the feed.
pub struct Reading {
    pub store: Store,
    pub describer: Describer,
    folder: PathBuf,
    shows_passwords: bool,
    /// The position that was read last, and the digest of its row if it was read here.
    last: (u64, Option<FeedDigest>),
}

/// Why the feed cannot be read on.
pub enum Refusal {
    /// It does not have this any more.
    Trimmed { position: u64, first: u64 },
    /// It has not come so far.
    Ahead { position: u64, last: u64 },
    /// Something else.
    Other(Failure),
}

impl Reading {
    /// Opens the store of a data folder, beside a server if one serves it; the first change that is kept comes first.
    ///
    /// # Errors
    /// If there is no store, or it has no feed.
    pub fn open(folder: &Path, shows_passwords: bool) -> Result<Reading, Failure> {
        Reading::of(offline::store_to_read(folder)?, folder, shows_passwords)
    }

    /// As [`Reading::open`], of a store that this process has opened to read.
    ///
    /// # Errors
    /// If it has no feed, or cannot be read.
    pub fn of(store: Store, folder: &Path, shows_passwords: bool) -> Result<Reading, Failure> {
        let read = store.read().map_err(|why| unreadable(&why))?;
        let describer = Describer::new(read.view(), shows_passwords);
        let describer = describer
            .map_err(|why| Failure::new(format!("cannot read the schema of the store: {why}")))?;
        drop(read);
        let (folder, last) = (folder.to_owned(), (0, None));
        let mut reading = Reading { store, describer, folder, shows_passwords, last };
        reading.begin(reading.head()?.first);
        Ok(reading)
    }

    /// How far the feed has come.
    ///
    /// # Errors
    /// If there is none, or the store cannot be read.
    pub fn head(&self) -> Result<FeedHead, Failure> {
        let read = self.store.read().map_err(|why| unreadable(&why))?;
        let head = read.view().feed_head().map_err(|why| unreadable(&why))?;
        if head.is_some_and(|head| head.is_empty()) && self.is_off() {
            return Err(Failure::new(format!(
                "the feed of {} is off (feed.enabled = false in keyway.toml), so that no change is kept; a server that \
                 is started with feed.enabled = true begins anew",
                self.folder.display()
            )));
        }
        head.ok_or_else(|| {
            Failure::new(format!(
                "the store of {} has no feed of changes: it was made by an earlier version, or with feed.enabled = \
                 false in keyway.toml; a server that is started with feed.enabled = true begins one",
                self.folder.display()
            ))
        })
    }

    /// Whether the next server will keep no changes.
    pub fn is_off(&self) -> bool {
        Configuration::ahead(&self.folder, &Given::none()).is_ok_and(|read| !read.feed)
    }

    /// The store's incarnation in hexadecimal digits, as backups name it: one that was restored has another than the one
    /// that it is a copy of.
    pub fn incarnation(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.store.incarnation()))
    }

    /// The note on a commit, if it is kept.
    pub fn note(&self, position: u64) -> Option<keyway_server::ChangeNote> {
        let read = self.store.read().ok()?;
        keyway_server::ChangeNote::decode(read.view().feed_note(position).ok()??)
    }

    /// The position that was read last.
    pub fn position(&self) -> u64 {
        self.last.0
    }

    /// Reads from this position on.
    pub fn begin(&mut self, position: u64) {
        self.last = (position.saturating_sub(1), None);
    }

    /// The next changes up to a position, those of whole commits; `None` if there are no more now.
    ///
    /// # Errors
    /// If they are not there, or the store is another one by now.
    pub fn next(&mut self, to: u64) -> Result<Option<Vec<DescribedChange>>, Refusal> {
        let read = self.store.read()?;
        let (mut rows, mut bytes, mut redefines) = (Vec::new(), 0, false);
        for row in read.view().feed_after(self.last.0)? {
            let row = row?;
            if row.position > to {
                break;
            }
            if self.last.1.is_some_and(|digest| digest != row.before) {
                return Err(Refusal::Other(self.is_another()));
            }
            self.last = (row.position, Some(row.digest));
            bytes += row.bytes;
            redefines |= Describer::redefines(&row);
            rows.push(row);
            if bytes >= FEED_PIECE_BYTES {
                break;
            }
        }
        if redefines {
            let describer = Describer::new(read.view(), self.shows_passwords);
            self.describer = describer.map_err(|why| Refusal::Other(Failure::new(why)))?;
        }
        drop(read);
        if rows.is_empty() {
            return match self.store.is_in_place() {
                Err(Error::Displaced { .. }) => Err(Refusal::Other(self.is_another())),
                _ => Ok(None),
            };
        }
        Ok(Some(rows.into_iter().flat_map(|row| self.describer.describe(row)).collect()))
    }

    fn is_another(&self) -> Failure {
        Failure::new(format!(
            "the store of {} was moved, removed or replaced: what comes behind position {} in the one that is there \
             now does not follow what was read",
            self.folder.display(),
            self.last.0
        ))
    }
}

impl From<Error> for Refusal {
    fn from(why: Error) -> Refusal {
        match why {
            Error::FeedTrimmed { position, first } => Refusal::Trimmed { position, first },
            Error::FeedAhead { position, last } => Refusal::Ahead { position, last },
            why => Refusal::Other(unreadable(&why)),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(why: Refusal) -> Failure {
        match why {
            Refusal::Other(failure) => failure,
            Refusal::Trimmed { position, first } => Failure::new(format!(
                "the feed does not have position {} any more: it begins with position {first} (how much is kept: \
                 keyway config get feed). Read from there on with --from {first}, or, to miss nothing, take all \
                 entries anew (keyway directory export) and go on from there",
                position.saturating_add(1)
            )),
            Refusal::Ahead { position, last } => Failure::new(format!(
                "there is no position {}: the last one is {last}. If it was there once, this is another store, or an \
                 earlier state of that one, restored from a copy: take all entries anew (keyway directory export), \
                 and go on from position {}",
                position.saturating_add(1),
                last.saturating_add(1)
            )),
        }
    }
}

fn unreadable(why: &Error) -> Failure {
    Failure::new(format!("cannot read the store: {why}"))
}
