//! An ordered, transactional store of directory entries on LMDB.
//!
//! What is here: entries and their identifiers, the tree that names them, posting lists
//! ([`Key`] → ascending [`EntryId`]s), read transactions ([`Read`]), and one committer thread that
//! gathers the changes which wait, makes them durable with one commit and then answers them all.
//!
//! What may not enter: any meaning of LDAP. The store knows neither schema nor matching rule nor
//! access right; names arrive as normalised component bytes, index keys arrive made.
//!
//! A change is acknowledged only after the commit that holds it is on the disk. A torn power
//! supply can lose what was not yet acknowledged, and nothing else.
#![deny(unsafe_code)]

mod check;
mod committer;
mod deferred;
mod disk;
mod entry;
mod error;
mod header;
mod key;
pub mod limits;
mod lmdb;
mod lock;
mod names;
mod open;
mod posting;
mod read;
mod record;
mod shared;
mod store;
mod task;
mod write;

pub use check::Checked;
pub use entry::{Entry, EntryId};
pub use error::{Error, OpenError};
pub use key::{Key, KeyRange};
pub use names::Names;
pub use open::Options;
pub use posting::Postings;
pub use read::{Entries, Read, View};
pub use record::{Attributes, EntryRef, RecordError, Values};
pub use store::Store;
pub use write::Write;
