//! Readers of the feed that have a name: how far each has come is kept in the store, and rows that it has not read
//! are kept for it for longer than for others.

use crate::directory::Directory;
use crate::failure::{Failure, Result};
use crate::limits::{FEED_READER_NAME_BYTES_MAX, FEED_READERS_MAX};
use keyway_codec::message::ResultCode;
use keyway_store::{View, Write};

/// The row of the store's meta table that has them. It is of each store alone.
pub const META_READERS: &str = "feed-readers";

/// A reader of the feed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedReader {
    /// Its name.
    pub name: String,
    /// It has read the changes up to this position.
    pub position: u64,
}

impl Directory {
    /// The readers that have a name.
    ///
    /// # Errors
    /// The store's.
    pub fn feed_readers(&self) -> Result<Vec<FeedReader>> {
        readers(self.store.read()?.view())
    }

    /// Notes how far a reader has come; one that is not known yet is from now on. Blocks until it is on the disk.
    ///
    /// # Errors
    /// `constraintViolation` for a name that is empty, too long or not plain, `adminLimitExceeded` if there are
    /// [`FEED_READERS_MAX`] others, or the store's.
    pub fn note_feed_reader(&self, name: &str, position: u64) -> Result<()> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_short = (1..=FEED_READER_NAME_BYTES_MAX).contains(&name.len());
        if !is_short || !name.bytes().all(is_plain) {
            let text =
                "the name of a reader has only letters, digits, - and _, and is not too long";
            return Err(Failure::new(ResultCode::ConstraintViolation, text));
        }
        let reader = FeedReader { name: name.to_owned(), position };
        self.change_readers(move |all| {
            if let Some(known) = all.iter_mut().find(|one| one.name == reader.name) {
                known.position = reader.position;
                return Ok(());
            }
            if all.len() >= FEED_READERS_MAX {
                let text = format!("there are {FEED_READERS_MAX} readers of the feed already");
                return Err(Failure::new(ResultCode::AdminLimitExceeded, text));
            }
            all.push(reader.clone());
            Ok(())
        })
    }

    /// Forgets a reader: no row is kept for it any more.
    ///
    /// # Errors
    /// `noSuchObject` if there is none of this name, or the store's.
    pub fn forget_feed_reader(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.change_readers(move |all| {
            let before = all.len();
            all.retain(|one| one.name != name);
            match all.len() < before {
                true => Ok(()),
                false => Err(Failure::no_such_object("")),
            }
        })
    }

    fn change_readers(
        &self,
        change: impl Fn(&mut Vec<FeedReader>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.store.write_now(move |write: &mut Write<'_>| {
            let mut all = readers(write.view())?;
            change(&mut all)?;
            let lines: Vec<String> =
                all.iter().map(|one| format!("{} {}", one.position, one.name)).collect();
            Ok(write.local_put(META_READERS, lines.join("\n").as_bytes())?)
        })
    }
}

/// Those of a state of the store.
pub(super) fn readers(view: View<'_>) -> Result<Vec<FeedReader>> {
    let row =
        String::from_utf8_lossy(view.meta_get(META_READERS)?.unwrap_or_default()).into_owned();
    let reader = |line: &str| {
        let (position, name) = line.split_once(' ')?;
        Some(FeedReader { name: name.to_owned(), position: position.parse().ok()? })
    };
    let all: Option<Vec<FeedReader>> = row.lines().map(reader).collect();
    // One that is forgotten would lose what is kept for it.
    all.ok_or_else(|| Failure::new(ResultCode::Other, "the list of the feed's readers is damaged"))
}
