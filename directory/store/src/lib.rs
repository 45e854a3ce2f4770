//! An ordered, transactional store of directory entries on LMDB.
//!
//! This crate has entries and their identifiers, the tree that names them, posting lists ([`Key`] →
//! ascending [`EntryId`]s), read transactions ([`Read`]), and one committer thread that gathers the
//! changes which wait, makes them durable with one commit and then answers them all.
//!
//! No meaning of LDAP may enter this crate. The store knows neither schema nor matching rule nor access
//! right; names arrive as normalised component bytes, index keys arrive made.
//!
//! A change is acknowledged only after the commit that holds it is on the disk: a cut of power can
//! lose what was not yet acknowledged, and nothing else. A full disk refuses changes and loses
//! none; deletions go on, out of a reserve. After a commit that failed in any other way nothing
//! more is accepted ([`Store::failed`]): a sync that failed is never tried again, because the
//! system has dropped what it could not write and would say that all is well.
//!
//! Values of an attribute that has very many of them can lie in a table of their own ([`Large`]), so
//! that one of them comes, goes and is found without the others; the caller says which and by what.
//!
//! Entries and such values carry checksums, and reading one that the disk has spoilt is an error. The tree and the
//! posting lists carry none; [`View::check`] compares all of them with the entries. LMDB believes
//! every page it reads, and one that is spoilt can kill the process: [`Store::open`] looks at the
//! pages first (of a large store not at the leaves), [`inspect`] at all of them, and [`Salvage`]
//! reads what is left without LMDB.
//!
//! ```
//! use keyway_store::{Entry, EntryId, Error, Key, Names, Options, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let store = Store::open(&folder.path().join("store"), Options::default())?;
//! let ann = store.write_now::<_, Error>(|write| {
//!     let top = Entry { rdn: "dc=Example".into(), ..Entry::default() };
//!     let top = write.insert(EntryId::ROOT, b"dc=example", &top, &[])?;
//!     let ann = Entry {
//!         rdn: "uid=Ann".into(),
//!         attributes: vec![("uid".into(), vec![b"Ann".to_vec()])],
//!         ..Entry::default()
//!     };
//!     let key = Key::new(b'e', &[b"uid", b"ann"]);
//!     write.insert(top, b"uid=ann", &ann, &[key])
//! })?;
//! let read = store.read()?;
//! let mut found = read.view().postings(&Key::new(b'e', &[b"uid", b"ann"]), EntryId::ROOT)?;
//! assert_eq!(found.next().transpose()?, Some(ann));
//! let name = read.view().dn(ann, &mut Names::new())?;
//! assert_eq!(name.as_deref(), Some("uid=Ann,dc=Example"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod append;
mod attributes;
mod check;
mod committer;
mod contents;
mod copy;
mod deferred;
mod disk;
mod entry;
mod error;
mod feed;
mod format;
mod header;
mod idle;
mod key;
mod large;
pub mod limits;
mod lmdb;
mod lock;
mod names;
mod open;
mod pages;
mod parts;
mod posting;
mod precheck;
mod read;
mod record;
mod restored;
mod salvage;
mod shared;
mod size;
mod snapshot;
mod store;
mod task;
mod values;
mod write;

pub use append::Append;
pub use attributes::{Attributes, Values};
pub use check::Checked;
pub use copy::copy_file;
pub use disk::network_file_system;
pub use entry::{Entry, EntryId};
pub use error::{Error, OpenError};
pub use feed::{
    AttributeEdit, Change, EditKind, FeedDigest, FeedHead, FeedJob, FeedRow, FeedRows,
    LargeValuesEdit, MetaChange, Moved, RawRow, Relisted, Updated, Whole,
};
pub use key::{Key, KeyRange};
pub use large::{Large, LargeEdit, ValueKey};
pub use names::Names;
pub use open::Options;
pub use pages::Damage;
pub use parts::RecordError;
pub use posting::Postings;
pub use read::{Entries, Read, View};
pub use record::{EntryRef, LargeAttributes};
pub use restored::restored;
pub use salvage::{Salvage, inspect};
pub use size::Size;
pub use snapshot::Snapshot;
pub use store::Store;
pub use values::{LargeValues, ValueChunk};
pub use write::Write;
