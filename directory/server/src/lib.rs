//! ldapd: connections, operations, access control, planning.
//!
//! In the middle is the [`Directory`]: entries in a store, and what they mean. Around it are those
//! who speak LDAP. What the directory is asked it answers from the state that was committed last;
//! what it is told to change goes to the store's one committer, and is answered when it is on the
//! disk.
//!
//! ```text
//! bytes ── connection ── request ──▶ search: filter ─▶ plan ─▶ candidates ─▶ evaluate ─▶ entries
//!                                ──▶ write: checks ─▶ passwords hashed ─▶ job of the committer
//! ```
//!
//! What may not enter: bytes on disk (the store's), the form of messages and values (the codec's), what names
//! and filters mean (the schema's), passwords (those of `keyway-password`), cryptography (the engine's).
#![forbid(unsafe_code)]

pub mod access;
mod bootstrap;
mod bulk;
mod candidate;
mod compare;
pub mod controls;
mod directory;
mod evaluate;
mod failure;
mod index;
mod integrity;
mod large;
pub mod limits;
mod locate;
pub mod log;
mod made;
mod naming;
pub mod network;
mod plan;
mod policy;
mod redefine;
mod rootdse;
mod search;
mod settings;
mod write;

#[cfg(test)]
mod tests;

pub use access::Subject;
pub use bulk::{
    ExportError, ImportError, ImportOptions, ImportReport, Lost, MemberOfReport, Note, Noted,
    Notes, Progress, RecordError, Salvaged, Scratch, ScratchMaker, TakenDefinitions, Unfinished,
    Verdict, Verifying, salvage,
};
pub use directory::{ADMINISTRATOR_DN, Credentials, Directory, OpenError};
pub use failure::Failure;
pub use index::{IndexKind, IndexReport, IndexSetting, IndexStanding};
pub use integrity::{Allocate, Disagreement, IntegritySetting, MemberOf, Unique};
pub use made::{MadeEntry, MadeTree, Maker, Modification, ModifiedAttribute, Reply, Wanted};
pub use naming::check_context;
pub use plan::{Explained, Lack, Part, Use};
pub use search::{Search, Step};
pub use settings::{Announced, Settings};
pub use write::WriteDone;
