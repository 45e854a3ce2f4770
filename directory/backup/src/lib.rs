//! A repository of backups in a folder: encrypted, and each piece of a file stored once. It knows nothing of
//! what is backed up.
//!
//! ```text
//! keyway-backup, .copy   what the repository's secret is sealed under; twice, since all hangs on it
//! chunks/ab/HEX64        a piece of a file (64 KiB), or a list of names of chunks
//! manifests/NAME         a backup: its files, the names of their pieces, what its maker adds
//! segments/HEX32/A-B     changes of the feed of one history, positions A to B
//! drafts/                files until they are whole, of the process that has the lock
//! damaged/               damaged files that were moved out of the way
//! lock, lock.*           who writes, who reads
//! ```
//!
//! **Chunks.** A file is cut every 64 KiB: the pages of a store do not move, so that pieces need not follow
//! their content. A piece's name is a keyed hash of its text, so equal pieces are one file, and the folder does
//! not show what is in them. Names of a file's pieces are in lists, lists in lists, and at most 16 names in the
//! manifest, which so stays small for a store of any size; a list that did not change is stored once as well
//! (`list`).
//!
//! **Durability.** A chunk gets its name after it was synced, so what has a name is whole also after a power cut,
//! and a later backup may use it. Each file is synced by itself, by several threads at a time, whose syncs a
//! journalling file system takes together; `syncfs` would be one call, but network and FUSE file systems need not
//! heed it, and a busy server's files would be written out with it. At the end the folders of all chunks that the
//! backup names are synced, and then the manifest is put in place. A killed create leaves drafts,
//! which the next one removes, and chunks that no manifest names, which it uses or `prune` removes.
//!
//! **Trust.** The folder may be hostile. It learns sizes, times, and which chunks are new. It cannot alter or swap
//! a file unnoticed: each is authenticated with its name. It can remove a backup whole, the newest too, or bring
//! back one that was pruned, under its own name and time: compare the list with what you expect. A chunk that is
//! there is not read again by the next backup, so verify regularly; `Repository::set_aside` helps with what that
//! finds.
//!
//! **Order.** A backup's name begins with a number that counts upwards, so that a clock that was set back makes
//! no old backup the latest.
#![forbid(unsafe_code)]

mod backup;
mod creating;
mod disk;
mod error;
mod header;
pub mod limits;
mod list;
mod lock;
mod manifest;
mod name;
mod objects;
mod parallel;
mod protection;
mod prune;
mod repository;
mod sealed;
mod verify;

pub use backup::{Backup, Contents};
pub use creating::{Creating, Put};
pub use error::{Error, Fault};
pub use header::{Header, Sealer, Secret};
pub use manifest::{FeedPosition, Manifest, StoredFile};
pub use name::{BackupName, Name, SEGMENTS, Segment};
pub use protection::Protection;
pub use prune::{Keep, Pruned};
pub use repository::{Listed, Repository};
pub use sealed::{Envelope, Kind, unpack};
pub use verify::{Damage, Gap, Verified};
