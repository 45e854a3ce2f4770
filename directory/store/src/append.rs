//! A place outside of the store that has each commit before the store's own disk.

use crate::Error;

/// Takes commits before they are on the disk: a log of several machines.
pub trait Append: Send + Sync {
    /// Takes the row of a position in its stored form ([`RawRow::parse`](crate::RawRow::parse) reads it). Runs on the committer's thread: changes
    /// wait for it, and gather meanwhile.
    ///
    /// # Errors
    /// [`Error::NotAppended`] if it was not taken, or that is not known: the group is answered with it, and nothing of it is
    /// in the store. [`Error::TooLargeToAppend`] if it will never be taken; then each of a group's jobs is tried by itself.
    /// A row of which it is not known comes back by [`Store::apply_row`](crate::Store::apply_row) if it was.
    fn append(&self, position: u64, stored: &[u8]) -> Result<(), Error>;
}
