//! The meaning of LDAP operations: search, planning, indexes, access control, writes, integrity, password policy,
//! virtual entries, bulk, records of logs.
//!
//! In the middle is the [`Directory`]: entries in a store, and what they mean. Above it is
//! `keyway-ldapd`, which speaks LDAP. The directory answers a read from the state that was committed last;
//! a change goes to the store's one committer, and is answered when it is on the
//! disk.
//!
//! ```text
//! request ──▶ search: filter ─▶ plan ─▶ candidates ─▶ evaluate ─▶ entries
//!         ──▶ write: checks ─▶ passwords hashed ─▶ job of the committer
//! ```
//!
//! Not allowed in here: bytes on disk (the store's), the form of messages and values (the codec's), the meaning of
//! names and filters (the schema's), passwords (those of `keyway-password`), cryptography (the engine's).
#![forbid(unsafe_code)]
#![warn(clippy::disallowed_methods)]

pub mod access;
mod bind;
mod bootstrap;
mod bulk;
mod candidate;
mod changelog;
mod clock;
mod compare;
pub mod controls;
mod credentials;
mod directory;
mod evaluate;
mod failure;
mod feed;
mod follow;
mod index;
mod integrity;
mod large;
mod learnt;
pub mod limits;
mod locate;
pub mod log;
mod naming;
mod naming_contexts;
mod open;
mod open_error;
mod plan;
mod policy;
mod redefine;
mod rootdse;
mod search;
mod settings;
mod state;
mod virtual_entries;
mod write;

#[cfg(test)]
mod tests;

pub use access::Subject;
pub use bind::{BindOutcome, PendingBind};
pub use bulk::{
    ExportError, ImportError, ImportOptions, ImportReport, Lost, MemberOfReport, Note, Noted,
    Notes, Progress, RecordError, Salvaged, Scratch, ScratchMaker, TakenDefinitions, Unfinished,
    Verdict, Verifying, salvage,
};
pub use clock::Clock;
pub use credentials::Credentials;
pub use directory::Directory;
pub use failure::Failure;
pub use feed::{
    AttributeChange, AttributeValues, ChangeNote, DescribedChange, Describer, EntryChange, Extent,
    FeedReader, FeedRetention, FeedStatus, META_READERS, Operation, Reason, Renaming, Room,
    RowOrEntry, Values,
};
pub use follow::{ApplyError, BindsTaken, BindsTaker};
pub use index::{IndexKind, IndexReport, IndexSetting, IndexStatus};
pub use integrity::{Allocate, Disagreement, IntegritySetting, MemberOf, Unique};
pub use learnt::KnownName;
pub use naming::{ADMINISTRATOR_DN, check_context};
pub use open_error::OpenError;
pub use plan::{Explained, Lack, Part, Use};
pub use policy::USER_PASSWORD;
pub use search::{Search, SearchCost, SearchProgress, SearchShape, Step, all_shapes};
pub use settings::{Announced, Settings};
pub use virtual_entries::{
    Modification, ModifiedAttribute, Placement, Provider, Reply, VirtualEntry, VirtualTree, Wanted,
};
pub use write::{PasswordModify, PreparedWrite, RequestOrigin, WriteDone, no_such_identity};
