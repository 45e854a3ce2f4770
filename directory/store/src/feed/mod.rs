//! The feed of changes: a row for each commit, with all that it has changed.
//!
//! Each commit that changes an entry, or a row of [`Write::meta_put`](crate::Write::meta_put), has the next
//! *position*, and its row is written in its transaction: there is no position without its change and no
//! change without a position. Positions have no gaps and are in no relation to a clock. A row names the digest
//! of the one before it, so that a row that is missing, exchanged or older than it should be is noticed.
//!
//! The rows that are kept are the last ones. One that was removed takes all before it along
//! ([`Write::trim_feed`](crate::Write::trim_feed)). A commit of a store that was opened without the feed has a
//! position without a row, and takes all rows before it along too.
//!
//! A row holds values in the clear, those of passwords among them: it is as secret as the store.

mod change;
mod compare;
mod edits;
mod head;
mod record;
mod replay;
mod rows;

pub use change::{Change, LargeValuesEdit, MetaChange, Moved, Updated, Whole};
pub use edits::{AttributeEdit, EditKind};
pub(crate) use head::{FIRST_OF_A_NEW_STORE, head_row};
pub use head::{FeedDigest, FeedHead};
pub(crate) use record::{
    Came, LargeNotes, Recorder, put_large, put_meta, put_move, put_update, put_whole,
};
pub use replay::Relisted;
pub use rows::{FeedJob, FeedRow, FeedRows, RawRow};
pub(crate) use rows::{feed_key, row_bytes, seal};
