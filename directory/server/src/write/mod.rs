//! Writes: what is asked for is checked and made ready on the caller's thread, then done in one
//! job of the store's committer, and answered when it is on the disk.
//!
//! A job makes all its checks before its first change, and can be run again.

mod add;
mod delete;
mod done;
mod draft;
pub(crate) mod edit;
mod modify;
mod operation;
mod password_modify;
mod rdn;
mod read_entry;
mod redefine;
mod rename;
mod request;
mod secret;
mod submit;
mod upgrade;
mod upgrades;
mod validate;
mod values;

pub(crate) use add::{Add, Source};
pub(crate) use delete::Delete;
pub use done::WriteDone;
pub(crate) use draft::{Draft, sharing};
pub(crate) use edit::{describe, keep_once};
pub(crate) use modify::Modify;
pub(crate) use operation::Operation;
pub use password_modify::{PasswordModify, no_such_identity};
pub(crate) use rename::Rename;
pub(crate) use request::Stamp;
pub(crate) use secret::{PasswordSource, Secrets};
pub(crate) use submit::take_rules;
pub use submit::{PreparedWrite, RequestOrigin};
pub(crate) use upgrades::Upgrades;
pub(crate) use values::LargeDraft;
