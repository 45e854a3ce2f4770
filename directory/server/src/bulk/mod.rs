//! Much at once: import, export, and making keys anew.

mod check;
mod export;
mod import;
mod prepare;
mod reindex;
mod wait;

pub use export::ExportError;
pub use import::{ImportError, ImportOptions, ImportReport, Progress, RecordError, Unfinished};

/// Attributes that mean something only to the server that wrote them. An import leaves them out.
pub(crate) const IGNORED: &[&str] = &[
    // OpenLDAP
    "contextCSN",
    "entryCSN",
    "memberOf",
    "pwdChangedTime",
    // 389 Directory Server
    "aci",
    "entryId",
    "modifyTimestampUsec",
    "nsUniqueId",
    "parentid",
    // OpenDJ, PingDirectory
    "ds-sync-generation-id",
    "ds-sync-hist",
    "ds-sync-state",
];
